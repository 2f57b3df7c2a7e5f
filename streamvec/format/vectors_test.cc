#include "streamvec/format/vectors.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <limits>
#include <map>

#include "streamvec/core/durable_file.h"
#include "streamvec/format/test_support.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr VectorFormat kEveryFormat[] = {VectorFormat::kWord2vecText, VectorFormat::kWord2vecBinary,
                                         VectorFormat::kGlove,        VectorFormat::kNpy,
                                         VectorFormat::kSafetensors,  VectorFormat::kProjector};

// Every file below `path`, or `path` itself.
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

void compress(const std::string& from, const std::string& to, int (*filter)(archive*)) {
  const std::string bytes = read_bytes(from);
  archive* writer = archive_write_new();
  ASSERT_EQ(filter(writer), ARCHIVE_OK);
  archive_write_set_format_raw(writer);
  ASSERT_EQ(archive_write_open_filename(writer, to.c_str()), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, bytes.data(), bytes.size());
  archive_entry_free(entry);
  ASSERT_EQ(archive_write_free(writer), ARCHIVE_OK);
}

class VectorsTest : public ::testing::TestWithParam<VectorFormat> {
 protected:
  void SetUp() override { fs::create_directory(directory_); }

  ScratchDirectory scratch_;
  std::string directory_ = scratch_.path("made");
  std::string out_ = directory_ + "/out";
};

TEST_P(VectorsTest, EveryBitOfEveryFloatSurvivesTheRoundTrip) {
  const Snapshot snapshot = make_snapshot({"the", "\xec\x99\x95", "a'b\"c\\d", "</s>", "#", "12", "\xff\xfe"}, 17);
  const Status status = export_vectors(snapshot, GetParam(), out_);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto back = import_vectors(out_);
  ASSERT_TRUE(back.ok()) << back.status().message();
  expect_same_words(snapshot.vocabulary, back->vocabulary);
  expect_same_table(snapshot.input.view(), back->input.view());
}

TEST_P(VectorsTest, ManyRowsAndLongOnesSurviveTheRoundTrip) {
  std::vector<std::string> words;
  for (int i = 0; i < 3000; ++i) words.push_back("w" + std::to_string(i));
  const Snapshot snapshot = make_snapshot(words, 301, 7);
  ASSERT_TRUE(export_vectors(snapshot, GetParam(), out_).ok());
  const auto back = import_vectors(out_);
  ASSERT_TRUE(back.ok()) << back.status().message();
  expect_same_words(snapshot.vocabulary, back->vocabulary);
  expect_same_table(snapshot.input.view(), back->input.view());
}

TEST_P(VectorsTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const Snapshot snapshot = make_snapshot({"one", "two", "three"}, 3);
  ASSERT_TRUE(export_vectors(snapshot, GetParam(), out_).ok());
  for (const std::string& file : files_of(directory_)) {
    const std::string whole = read_bytes(file);
    for (size_t length = 0; length < whole.size(); ++length) {
      write_bytes(file, whole.substr(0, length));
      const auto back = import_vectors(out_);
      // GloVe has no count of rows: a cut between two lines is a shorter file.
      const bool fair_cut = GetParam() == VectorFormat::kGlove && length > 0 && whole[length - 1] == '\n';
      // A line feed ends a vector in word2vec.c's files and not in gensim's: without the last one the file is whole.
      const bool line_feed_only = GetParam() == VectorFormat::kWord2vecBinary && length + 1 == whole.size();
      if (fair_cut || line_feed_only) continue;
      ASSERT_FALSE(back.ok()) << file << " cut at " << length << " of " << whole.size();
      ASSERT_THAT(back.status().message(), HasSubstr(directory_)) << length;
    }
    write_bytes(file, whole);
  }
  ASSERT_TRUE(import_vectors(out_).ok()) << "the whole files still load";
}

TEST_P(VectorsTest, BytesThatFollowAreAnError) {
  const Snapshot snapshot = make_snapshot({"one", "two", "three"}, 3);
  ASSERT_TRUE(export_vectors(snapshot, GetParam(), out_).ok());
  for (const std::string& file : files_of(directory_)) {
    const std::string whole = read_bytes(file);
    write_bytes(file, whole + "x");
    ASSERT_FALSE(import_vectors(out_).ok()) << file;
    write_bytes(file, whole);
  }
}

TEST_P(VectorsTest, FlippedBitsNeverCrash) {
  const Snapshot snapshot = make_snapshot({"one", "two"}, 3);
  ASSERT_TRUE(export_vectors(snapshot, GetParam(), out_).ok());
  for (const std::string& file : files_of(directory_)) {
    const std::string whole = read_bytes(file);
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      write_bytes(file, bytes);
      (void)import_vectors(out_).ok();
    }
    write_bytes(file, whole);
  }
}

TEST_P(VectorsTest, AValueThatIsNotFiniteIsNotWritten) {
  Snapshot snapshot = make_snapshot({"fine", "broken"}, 3);
  snapshot.input.row(1)[2] = std::numeric_limits<float>::quiet_NaN();
  const Status status = export_vectors(snapshot, GetParam(), out_);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'broken'"));
  EXPECT_TRUE(files_of(directory_).empty());
}

TEST_P(VectorsTest, AnExportIsWholeOrNotThere) {
  const Snapshot snapshot = make_snapshot({"one", "two"}, 3);
  const Status status = export_vectors(snapshot, GetParam(), scratch_.path("no/such/place"));
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no/such/place"));
}

INSTANTIATE_TEST_SUITE_P(Every, VectorsTest, ::testing::ValuesIn(kEveryFormat), [](const auto& param) {
  std::string name(format_name(param.param));
  std::erase(name, '-');
  return name;
});

// While it lives no file grows beyond this: what a full disk does, at a place of our choosing.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class PairOfFilesTest : public ::testing::TestWithParam<VectorFormat> {
 protected:
  // Exports `next` over `first` where no file may have more than 2,000 bytes: one of its two files has.
  void expect_first_stays(const Snapshot& first, const Snapshot& next) {
    const std::string out = scratch_.path("v");
    ASSERT_TRUE(export_vectors(first, GetParam(), out).ok());
    const auto before = contents();
    Status status;
    {
      const FileSizeLimit full(2000);
      status = export_vectors(next, GetParam(), out);
    }
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.message();
    EXPECT_EQ(contents(), before);
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const std::string& file : files_of(scratch_.path())) all[file] = read_bytes(file);
    return all;
  }

  ScratchDirectory scratch_;
};

TEST_P(PairOfFilesTest, AFullDiskLeavesBothFilesOfTheExportBefore) {
  const Snapshot first = make_snapshot({"one", "two"}, 3);
  expect_first_stays(first, make_snapshot({"three", "four"}, 800, 2));
  expect_first_stays(first, make_snapshot({std::string(3000, 'x'), "four"}, 3, 2));
}

INSTANTIATE_TEST_SUITE_P(Both, PairOfFilesTest,
                         ::testing::Values(VectorFormat::kNpy, VectorFormat::kSafetensors, VectorFormat::kProjector),
                         [](const auto& param) { return std::string(format_name(param.param)); });

class ImportTest : public ::testing::Test {
 protected:
  Result<Snapshot> import(const std::string& name, const std::string& bytes) {
    write_bytes(scratch_.path(name), bytes);
    return import_vectors(scratch_.path(name));
  }
  static std::string floats(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  ScratchDirectory scratch_;
};

TEST_F(ImportTest, BothFlavoursOfBinaryAreRead) {
  const std::string a = "a " + floats({1, 2}), b = "b " + floats({3, 4});
  for (const std::string& bytes : {"2 2\n" + a + b, "2 2\n" + a + "\n" + b + "\n", "2 2\n" + a + "\n" + b}) {
    const auto snapshot = import("v.bin", bytes);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    EXPECT_EQ(snapshot->vocabulary.word(1), "b");
    EXPECT_EQ(snapshot->input.row(1)[1], 4.0f);
  }
}

TEST_F(ImportTest, BadBinaryRowsAreRefusedWithTheirOffset) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(import("v.bin", "2 2\na " + floats({1, 2}) + "b " + floats({3, inf})).status().message(),
              HasSubstr("byte 20: value 2 of word 2 is not finite"));
  EXPECT_THAT(import("v.bin", "2 2\na " + floats({1, 2}) + "a " + floats({3, 4})).status().message(),
              HasSubstr("byte 14: 'a' was there already"));
  EXPECT_THAT(import("v.bin", "9000000 2\na " + floats({1, 2})).status().message(), HasSubstr("more than a file of"));
  EXPECT_THAT(import("v.bin", "1 2\n" + std::string(70'000, '\x01') + " " + floats({1, 2})).status().message(),
              HasSubstr("byte 4: "));
}

TEST_F(ImportTest, CompressedTextAndBinaryAreRead) {
  const Snapshot snapshot = make_snapshot({"one", "two", "three"}, 5);
  for (const VectorFormat format : {VectorFormat::kWord2vecText, VectorFormat::kWord2vecBinary, VectorFormat::kGlove})
    for (const auto filter : {archive_write_add_filter_gzip, archive_write_add_filter_xz,
                              archive_write_add_filter_bzip2, archive_write_add_filter_zstd}) {
      ASSERT_TRUE(export_vectors(snapshot, format, scratch_.path("plain")).ok());
      compress(scratch_.path("plain"), scratch_.path("packed"), filter);
      const auto back = import_vectors(scratch_.path("packed"));
      ASSERT_TRUE(back.ok()) << back.status().message();
      expect_same_table(snapshot.input.view(), back->input.view());
    }
}

TEST_F(ImportTest, AByteOrderMarkIsPassedOver) {
  for (const char* text : {"2 2\na 1 2\nb 3 4\n", "a 1 2\nb 3 4\n"}) {
    const auto snapshot = import("f", std::string("\xef\xbb\xbf") + text);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    EXPECT_EQ(snapshot->vocabulary.word(0), "a");
    EXPECT_EQ(snapshot->input.row(1)[1], 4.0f);
  }
}

TEST_F(ImportTest, ACompressedFileCutShortIsRefused) {
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) words.push_back("w" + std::to_string(i));
  ASSERT_TRUE(export_vectors(make_snapshot(words, 120), VectorFormat::kGlove, scratch_.path("plain")).ok());
  compress(scratch_.path("plain"), scratch_.path("packed"), archive_write_add_filter_gzip);
  const std::string whole = read_bytes(scratch_.path("packed"));
  ASSERT_TRUE(import("whole", whole).ok());
  // GloVe has no count of rows: only the compressed stream itself can tell that something is missing.
  for (size_t missing = 1; missing < whole.size(); missing += missing < 30 ? 1 : 99'991)
    ASSERT_FALSE(import("cut", whole.substr(0, whole.size() - missing)).ok()) << missing;
}

TEST_F(ImportTest, APromiseInACompressedFileTakesNoMemory) {
  write_bytes(scratch_.path("plain"), "2000000000 1000000\na 1\n");
  compress(scratch_.path("plain"), scratch_.path("packed"), archive_write_add_filter_gzip);
  EXPECT_THAT(import_vectors(scratch_.path("packed")).status().message(), HasSubstr("line 2"));
}

TEST_F(ImportTest, WhatIsNoFileOfVectorsIsRefusedWithItsPath) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "is empty"},
      {"\n", "line 1 is not a word"},
      {std::string("PK\x03\x04rest", 8), "zip archive; unpack it"},
      {std::string("\x7f"
                   "ELF\0\0\0\0",
                   8) +
           std::string(100, '\x02'),
       "binary file of no known format"},
      {"once upon a time\nthere was\n", "line 1 is not a word and its values"}};
  for (const auto& [bytes, reason] : cases) {
    const auto result = import("f", bytes);
    ASSERT_FALSE(result.ok()) << reason;
    EXPECT_THAT(result.status().message(), HasSubstr(scratch_.path("f")));
    EXPECT_THAT(result.status().message(), HasSubstr(reason));
  }
  EXPECT_EQ(import_vectors(scratch_.path("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(import_vectors(scratch_.path()).status().code(), Code::kInvalidArgument);
}

TEST_F(ImportTest, GarbageNeverCrashes) {
  Random random(3);
  const std::string heads[] = {"",         "2 2\n", std::string("\x93NUMPY\x01\0", 8),
                               "\x1f\x8b", "BZh9",  std::string("\x08\0\0\0\0\0\0\0{", 9)};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = heads[round % 6];
    for (uint32_t i = random.below(300); i-- > 0;) bytes += static_cast<char>(random.next());
    ASSERT_FALSE(import("f", bytes).ok());
  }
}

TEST_F(ImportTest, NumpyArraysOfOtherKindsAreRefusedWithWhatToCall) {
  const auto npy = [](const std::string& header, const std::string& data) {
    std::string text = header + "\n";
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + data;
  };
  write_bytes(scratch_.path("f.vocab.txt"), "a\nb\n");
  const auto good =
      import("f.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }", std::string(16, '\0')));
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(good->vocabulary.word(1), "b");
  const struct {
    const char *header, *reason;
  } cases[] = {
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1), }", "astype('float32')"},
      {"{'descr': '>f8', 'fortran_order': False, 'shape': (2, 1), }", "astype('float32')"},
      {"{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), }", "ascontiguousarray"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", "two dimensions"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 1), }", "two dimensions"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9), }", "two dimensions"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 1), }", "ends before the array"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "ends before the array"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", "bytes follow the array"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }", "do not belong together"}};
  for (const auto& [header, reason] : cases)
    EXPECT_THAT(import("f.npy", npy(header, std::string(16, '\0'))).status().message(), HasSubstr(reason)) << header;
}

TEST_F(ImportTest, ATableWithoutWordsIsRefusedWithWhereToPutThem) {
  const Snapshot snapshot = make_snapshot({"one", "two"}, 3);
  ASSERT_TRUE(export_vectors(snapshot, VectorFormat::kNpy, scratch_.path("v.npy")).ok());
  fs::remove(scratch_.path("v.vocab.tsv"));
  const auto result = import_vectors(scratch_.path("v.npy"));
  EXPECT_EQ(result.status().code(), Code::kNotFound);
  EXPECT_THAT(result.status().message(), HasSubstr("v.vocab.tsv"));
}

TEST_F(ImportTest, WordsOfAnotherExportAreRefusedWithBothPaths) {
  const std::string npy = scratch_.path("v.npy"), safetensors = scratch_.path("v.safetensors");
  ASSERT_TRUE(export_vectors(make_snapshot({"one", "two"}, 3, 1), VectorFormat::kNpy, npy).ok());
  ASSERT_TRUE(export_vectors(make_snapshot({"uno", "due"}, 3, 2), VectorFormat::kSafetensors, safetensors).ok());
  const Status mixed = import_vectors(npy).status();
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
  EXPECT_THAT(mixed.message(), HasSubstr(npy));
  EXPECT_THAT(mixed.message(), HasSubstr(scratch_.path("v.vocab.tsv")));
  EXPECT_THAT(mixed.message(), HasSubstr("different exports"));
  const auto own = import_vectors(safetensors);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->vocabulary.word(0), "uno");
  ASSERT_TRUE(export_vectors(make_snapshot({"one", "two"}, 3, 1), VectorFormat::kNpy, npy).ok());
  EXPECT_THAT(import_vectors(safetensors).status().message(), HasSubstr("different exports"));
}

TEST_F(ImportTest, OneModelInTwoFormatsSharesItsWords) {
  Snapshot snapshot = make_snapshot({"one", "two"}, 3);
  snapshot.output = Matrix::make(2, 3).value();
  snapshot.vocabulary.add_alias("ones and all", 0);
  ASSERT_TRUE(export_vectors(snapshot, VectorFormat::kNpy, scratch_.path("v.npy")).ok());
  ASSERT_TRUE(export_vectors(snapshot, VectorFormat::kSafetensors, scratch_.path("v.safetensors")).ok());
  for (const char* name : {"v.npy", "v.safetensors"}) {
    const auto back = import_vectors(scratch_.path(name));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->vocabulary.find("ones and all"), 0);
  }
}

TEST_F(ImportTest, AListWithoutASumOrWithTheColumnRenamedFitsAnyValues) {
  ASSERT_TRUE(export_vectors(make_snapshot({"one", "two"}, 3, 1), VectorFormat::kNpy, scratch_.path("v.npy")).ok());
  std::string renamed = read_bytes(scratch_.path("v.vocab.tsv"));
  ASSERT_NE(renamed.find("\txxh3="), std::string::npos);
  renamed.replace(renamed.find("xxh3="), 4, "mine");
  ASSERT_TRUE(export_vectors(make_snapshot({"one", "two"}, 3, 2), VectorFormat::kNpy, scratch_.path("v.npy")).ok());
  for (const std::string& list : {std::string("#word\tcount\none\t2\ntwo\t1\n"), renamed}) {
    write_bytes(scratch_.path("v.vocab.tsv"), list);
    const auto back = import_vectors(scratch_.path("v.npy"));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->vocabulary.word(1), "two");
  }
}

TEST_F(ImportTest, CountsAndContextVectorsTravelInSafetensors) {
  Snapshot snapshot = make_snapshot({"New York", "a\tb", "c"}, 4);
  snapshot.output = Matrix::make(3, 4).value();
  fill_with_any_floats(snapshot.output, 9);
  snapshot.model = "cbow";
  ASSERT_TRUE(export_vectors(snapshot, VectorFormat::kSafetensors, scratch_.path("v.safetensors")).ok());
  const auto back = import_vectors(scratch_.path("v.safetensors"));
  ASSERT_TRUE(back.ok()) << back.status().message();
  expect_same_words(snapshot.vocabulary, back->vocabulary);
  expect_same_table(snapshot.output.view(), back->output.view());
  EXPECT_EQ(back->model, "cbow");
  for (Slot slot = 0; slot < 3; ++slot) EXPECT_EQ(back->vocabulary.count(slot), snapshot.vocabulary.count(slot));
}

TEST_F(ImportTest, ProjectorKeepsCountsAndWordsWithSpaces) {
  const Snapshot snapshot = make_snapshot({"New York", "b"}, 4);
  ASSERT_TRUE(export_vectors(snapshot, VectorFormat::kProjector, scratch_.path("p")).ok());
  for (const char* path : {"p", "p/tensors.tsv"}) {
    const auto back = import_vectors(scratch_.path(path));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->vocabulary.word(0), "New York");
    EXPECT_EQ(back->vocabulary.count(0), snapshot.vocabulary.count(0));
  }
}

TEST_F(ImportTest, AMissingDirectoryIsNamedByThePathThatWasGiven) {
  const auto snapshot = import("f", "a 1 2\n");
  ASSERT_TRUE(snapshot.ok());
  const std::string path = scratch_.path("no/dir/x");
  for (const char* name : {"word2vec", "npy", "projector"}) {
    const Status status = export_vectors(*snapshot, parse_format(name).value(), path);
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_THAT(status.message(), HasSubstr(path + ":")) << name;
  }
}

TEST_F(ImportTest, FormatsAreKnownByTheirNames) {
  for (const VectorFormat format : kEveryFormat) EXPECT_EQ(parse_format(format_name(format)).value(), format);
  const Status unknown = parse_format("word3vec").status();
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_THAT(unknown.message(), HasSubstr("word2vec-bin"));
}

}  // namespace
}  // namespace streamvec
