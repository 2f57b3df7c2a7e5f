#include "streamvec/source/file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "streamvec/source/piece.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Source> open_files(const std::vector<std::string>& paths) {
  return open_ok<FileSource>(paths);
}

std::vector<Document> documents_of(const std::vector<std::string>& paths) {
  Result<std::vector<Document>> documents = read_all(*open_files(paths));
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  return std::move(documents).value();
}

Status reading_error(const std::vector<std::string>& paths) {
  return read_all(*open_files(paths)).status();
}

TEST(FileSource, GivesAFileInPiecesCutAtLineEnds) {
  TemporaryDirectory directory;
  const std::string text = sample_text(300'000);
  const std::vector<Document> documents = documents_of({directory.write("a.txt", text)});
  EXPECT_EQ(joined(documents), text);
  EXPECT_GE(documents.size(), 5U);
  for (const Document& document : documents) {
    EXPECT_LE(document.text.size(), kPieceBytes);
    EXPECT_EQ(document.text.back(), '\n');
  }
}

TEST(FileSource, ReadsCompressedFilesWhateverTheirName) {
  TemporaryDirectory directory;
  const std::string text = sample_text(200'000);
  for (const Compression compression : kCompressions) {
    const std::string bytes = compressed(compression, text);
    EXPECT_EQ(joined(documents_of({directory.write("text", bytes)})), text) << compression_name(compression);
    EXPECT_EQ(joined(documents_of({directory.write("text", bytes + bytes)})), text + text);
  }
}

TEST(FileSource, ReadsPathsInOrderAndDirectoriesSortedWithoutHiddenFiles) {
  TemporaryDirectory directory;
  directory.write("d/b.txt", "b\n");
  directory.write("d/a/z.txt", "z\n");
  directory.write("d/a/y.gz", gzip_bytes("y\n"));
  directory.write("d/.hidden", "hidden\n");
  directory.write("d/.git/config", "hidden\n");
  const std::string last = directory.write("last.txt", "last\n"), first = directory.write("first.txt", "first\n");
  EXPECT_EQ(joined(documents_of({first, directory.path("d"), last})), "first\ny\nz\nb\nlast\n");
}

TEST(FileSource, LinksToDirectoriesAreFollowedButNotRoundInCircles) {
  TemporaryDirectory directory;
  directory.write("d/b.txt", "b\n");
  directory.write("elsewhere/c.txt", "c\n");
  std::filesystem::create_directory_symlink("../elsewhere", directory.path("d/link"));
  std::filesystem::create_directory_symlink("../d", directory.path("elsewhere/back"));
  std::filesystem::create_directory_symlink(".", directory.path("d/self"));
  std::filesystem::create_symlink("nowhere", directory.path("d/nothing"));
  directory.write("d/month/d.txt", "d\n");
  std::filesystem::create_directory_symlink("month", directory.path("d/latest"));
  EXPECT_EQ(joined(documents_of({directory.path("d")})), "b\nc\nd\n") << "each file once";
}

TEST(FileSource, APieceNeverSpansTwoFiles) {
  TemporaryDirectory directory;
  const std::vector<Document> documents =
      documents_of({directory.write("a", "no line end"), directory.write("b", "either")});
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].text, "no line end");
}

TEST(FileSource, CutsTenMegabytesWithoutSpaceAtABound) {
  TemporaryDirectory directory;
  const std::string text(10'000'000, 'x');
  const std::vector<Document> documents = documents_of({directory.write("a", text)});
  EXPECT_EQ(joined(documents), text);
  for (const Document& document : documents) EXPECT_LE(document.text.size(), kPieceBytes);
}

TEST(FileSource, TakesTheByteOrderMarkOff) {
  TemporaryDirectory directory;
  EXPECT_EQ(joined(documents_of({directory.write("a", "\xef\xbb\xbftext\n")})), "text\n");
}

TEST(FileSource, GoesOnAfterAnyDocumentExactlyAsIfNeverStopped) {
  TemporaryDirectory directory;
  const std::string text = sample_text(200'000);
  const std::vector<std::string> paths = {directory.write("a.txt", "\xef\xbb\xbf" + text),
                                          directory.write("b.xz", xz_bytes(text)), directory.write("empty", ""),
                                          directory.write("c.gz", gzip_bytes(text) + gzip_bytes(text))};
  const std::unique_ptr<Source> whole = open_files(paths);
  std::vector<Document> documents;
  std::vector<int64_t> bytes_read;
  while (whole->read(1, Deadline::never(), documents).value() > 0) bytes_read.push_back(whole->bytes_read());
  ASSERT_GT(documents.size(), 10U);
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const std::unique_ptr<Source> resumed = open_files(paths);
    const Status status = resumed->seek(documents[stop].cursor);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]);
    std::vector<Document> rest;
    for (size_t i = stop + 1; i < documents.size(); ++i) {
      ASSERT_EQ(resumed->read(1, Deadline::never(), rest).value(), 1);
      ASSERT_EQ(rest.back().text, documents[i].text);
      ASSERT_EQ(rest.back().cursor, documents[i].cursor);
      ASSERT_EQ(resumed->bytes_read(), bytes_read[i]);
    }
    ASSERT_EQ(resumed->read(1, Deadline::never(), rest).value(), 0);
  }
}

TEST(FileSource, ASeekAheadGoesOnExactlyAsIfAllBetweenHadBeenRead) {
  TemporaryDirectory directory;
  const std::string text = sample_text(700'000);
  std::vector<std::string> paths = {directory.write("plain", text)};
  for (const Compression compression : kCompressions)
    paths.push_back(directory.write(std::string(compression_name(compression)), compressed(compression, text)));
  for (const std::string& path : paths) {
    const std::vector<Document> documents = documents_of({path, paths[0]});
    for (size_t from = 0; from + 1 < documents.size(); from += 3)
      for (size_t to = from; to + 1 < documents.size(); ++to) {
        const auto source = open_files({path, paths[0]}), unbroken = open_files({path, paths[0]});
        std::vector<Document> read, expected;
        for (size_t i = 0; i <= from; ++i) ASSERT_TRUE(source->read(1, Deadline::never(), read).ok());
        ASSERT_TRUE(source->seek(documents[to].cursor).ok());
        for (size_t i = 0; i <= to + 1; ++i) ASSERT_TRUE(unbroken->read(1, Deadline::never(), expected).ok());
        ASSERT_TRUE(source->read(1, Deadline::never(), read).ok());
        ASSERT_EQ(read.back().text, expected.back().text) << path << " from " << from << " to " << to;
        ASSERT_EQ(read.back().cursor, expected.back().cursor) << path << " from " << from << " to " << to;
        ASSERT_EQ(source->bytes_read(), unbroken->bytes_read());
      }
  }
}

TEST(FileSource, ASeekAheadDecodesOnWhereItIs) {
  TemporaryDirectory directory;
  const std::string bytes = gzip_bytes(sample_text(300'000));
  const std::string path = directory.write("a.gz", bytes);
  const std::vector<Document> documents = documents_of({path});
  const auto source = open_files({path});
  std::vector<Document> read;
  ASSERT_TRUE(source->read(1, Deadline::never(), read).ok());
  // Who opens it anew finds another that looks the same.
  const std::string other = directory.write("other", std::string(bytes.size(), 'x'));
  fs::last_write_time(other, fs::last_write_time(path));
  fs::rename(other, path);
  EXPECT_FALSE(open_files({path})->seek(documents[2].cursor).ok());
  ASSERT_TRUE(source->seek(documents[2].cursor).ok());
  ASSERT_TRUE(source->read(1, Deadline::never(), read).ok());
  EXPECT_EQ(read.back().text, documents[3].text);
}

TEST(FileSource, SeekingTheBeginningReadsEverythingAgain) {
  TemporaryDirectory directory;
  const std::unique_ptr<Source> source = open_files({directory.write("a", sample_text(100'000))});
  const std::string once = joined(read_all(*source).value());
  ASSERT_TRUE(source->seek("").ok());
  EXPECT_EQ(source->bytes_read(), 0);
  EXPECT_EQ(joined(read_all(*source, 100).value()), once);
}

TEST(FileSource, BytesAreCountedAsStored) {
  TemporaryDirectory directory;
  const std::string packed = gzip_bytes(sample_text(500'000));
  const std::unique_ptr<Source> source = open_files({directory.write("a.gz", packed), directory.write("b", "plain\n")});
  EXPECT_EQ(source->bytes_total(), static_cast<int64_t>(packed.size()) + 6);
  std::vector<Document> documents;
  int64_t last = 0;
  while (source->read(1, Deadline::never(), documents).value() > 0) {
    EXPECT_GE(source->bytes_read(), last);
    last = source->bytes_read();
  }
  EXPECT_EQ(last, source->bytes_total());
}

TEST(FileSource, RefusesACursorWhenTheFileHasChanged) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a", "some text\n");
  const std::string cursor = documents_of({path})[0].cursor;
  directory.write("a", "some other text\n");
  Status status = open_files({path})->seek(cursor);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("10 bytes"), HasSubstr("16")));
  directory.write("a", "SOME TEXT\n");
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
  status = open_files({path})->seek(cursor);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("has changed"));
}

TEST(FileSource, RefusesACursorOfOtherFiles) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "a\n"), b = directory.write("b", "b\n");
  const std::string cursor = documents_of({a, b})[1].cursor;
  EXPECT_EQ(open_files({a})->seek(cursor).code(), Code::kFailedPrecondition);
  const Status status = open_files({b, a})->seek(cursor);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(a), HasSubstr(b)));
}

TEST(FileSource, ContentsAreOthersWhenAFileHasComeOrGrown) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "a\n");
  const std::string before = open_files({directory.path()})->contents();
  EXPECT_EQ(open_files({directory.path()})->contents(), before);
  directory.write("a", "a\na\n");
  const std::string grown = open_files({directory.path()})->contents();
  directory.write("b", "b\n");
  EXPECT_NE(grown, before);
  EXPECT_NE(open_files({directory.path()})->contents(), grown);
}

// The next run of a stream: what it reads of these files, and then what it saves.
std::vector<std::string> read_in_stream(const std::vector<std::string>& paths, std::string& saved,
                                        std::vector<std::string>* notes = nullptr) {
  const std::unique_ptr<Source> source = open_files(paths);
  source->join_stream(true);
  const Status sought = source->seek(saved);
  EXPECT_TRUE(sought.ok()) << sought.message();
  Result<std::vector<Document>> read = read_all(*source);
  EXPECT_TRUE(read.ok()) << read.status().message();
  std::vector<std::string> texts;
  for (const Document& document : *read) texts.push_back(document.text);
  if (!read->empty()) saved = source->saved(read->back().cursor);
  if (notes != nullptr) *notes = source->notes();
  return texts;
}

TEST(FileSource, InAStreamEachFileIsReadOnceWhicheverAreNamedBesideIt) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "of a\n"), b = directory.write("b", "of b\n");
  std::string saved;
  EXPECT_THAT(read_in_stream({a, b}, saved), ElementsAre("of a\n", "of b\n"));
  const std::string c = directory.write("c", "of c\n"), d = directory.write("\xe9", "of d\n");
  EXPECT_THAT(read_in_stream({c}, saved), ElementsAre("of c\n"));
  EXPECT_THAT(read_in_stream({d, b, c, a}, saved), ElementsAre("of d\n"));
  std::vector<std::string> notes;
  EXPECT_THAT(read_in_stream({directory.path()}, saved, &notes), ElementsAre());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("nothing is new")));
}

TEST(FileSource, InAStreamItsPlaceIsFoundAmongFilesOfOtherNamesAndOfAClustersNode) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "of a\n");
  const std::unique_ptr<Source> source = open_files({a});
  EXPECT_THAT(source->keys(), ElementsAre(a));
  source->join_stream(true);
  EXPECT_THAT(source->keys(), ElementsAre("files", a));
  source->join_stream(false);
  EXPECT_THAT(source->keys(), ElementsAre(a, "files"));
}

TEST(FileSource, InAStreamWhatIsAddedToAFileIsReadAndAnotherFileAnew) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "of a\n"), b = directory.write("b", "of b, long\n");
  const std::string packed = directory.write("c.gz", compressed(Compression::kGzip, "of c\n"));
  std::string saved;
  EXPECT_EQ(read_in_stream({a, b, packed}, saved).size(), 3u);
  directory.write("a", "of a\nand more\n");
  directory.write("b", "anew\n");
  directory.write("c.gz", compressed(Compression::kGzip, "of c\n") + compressed(Compression::kGzip, "and more\n"));
  std::vector<std::string> notes;
  EXPECT_THAT(read_in_stream({a, b, packed}, saved, &notes), ElementsAre("and more\n", "anew\n", "and more\n"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("b is another file")));
  EXPECT_THAT(read_in_stream({a, b, packed}, saved), ElementsAre());
}

TEST(FileSource, InAStreamAFileReadInPartGoesOnThereOrIsRefused) {
  TemporaryDirectory directory;
  const std::string text = sample_text(200'000);
  const std::string a = directory.write("a", "of a\n"), b = directory.write("b", text);
  const std::unique_ptr<Source> source = open_files({a, b});
  source->join_stream(true);
  std::vector<Document> documents;
  ASSERT_EQ(source->read(2, Deadline::never(), documents).value(), 2);
  std::string saved = source->saved(documents[1].cursor);
  const std::string first = documents[1].text, after = saved;
  directory.write("b", text + "and more\n");
  std::string rest;
  for (const std::string& piece : read_in_stream({b, a}, saved)) rest += piece;
  EXPECT_EQ(first + rest, text + "and more\n");
  directory.write("b", "other\n");
  const std::unique_ptr<Source> changed = open_files({b});
  changed->join_stream(true);
  ASSERT_TRUE(changed->seek(after).ok());
  EXPECT_EQ(changed->read(1, Deadline::never(), documents).status().code(), Code::kFailedPrecondition);
}

TEST(FileSource, RefusesACursorThatIsNone) {
  TemporaryDirectory directory;
  const std::unique_ptr<Source> source = open_files({directory.write("a", "a\n")});
  for (const char* cursor :
       {"{", "[]", "7", "{}", R"({"file":-1,"path":"a","offset":0,"size":2,"mtime_ns":0,"bytes_read":0})",
        R"({"file":0,"path":"a","offset":18446744073709551615,"size":2,"mtime_ns":0,"bytes_read":0})",
        R"({"file":0,"path":3,"offset":0,"size":2,"mtime_ns":0,"bytes_read":0})",
        R"({"file":0,"path":"a","offset":1e300,"size":2,"mtime_ns":0,"bytes_read":0})"})
    EXPECT_EQ(source->seek(cursor).code(), Code::kInvalidArgument) << cursor;
}

TEST(FileSource, ACursorSurvivesAPathThatIsNoUtf8) {
  TemporaryDirectory directory;
  const std::string path = directory.write("bad\xff name", sample_text(100'000));
  const std::unique_ptr<Source> source = open_files({path});
  std::vector<Document> documents;
  ASSERT_EQ(source->read(1, Deadline::never(), documents).value(), 1);
  EXPECT_TRUE(source->seek(documents[0].cursor).ok());
}

TEST(FileSource, AWrongPathFailsBeforeAnythingIsRead) {
  TemporaryDirectory directory;
  const std::string good = directory.write("a", "a\n");
  const Result<std::unique_ptr<Source>> source = FileSource::open({good, good, directory.path("typo.txt")});
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), Code::kNotFound);
  EXPECT_THAT(source.status().message(), HasSubstr("typo.txt"));
}

TEST(FileSource, ADirectoryWithoutFilesIsAnError) {
  TemporaryDirectory directory;
  directory.write(".hidden", "text\n");
  const Result<std::unique_ptr<Source>> source = FileSource::open({directory.path()});
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), Code::kNotFound);
  EXPECT_THAT(source.status().message(), HasSubstr("has no files"));
}

TEST(FileSource, AnUnreadableFileIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  TemporaryDirectory directory;
  const std::string path = directory.write("a", "a\n");
  ::chmod(path.c_str(), 0);
  EXPECT_EQ(FileSource::open({path}).status().code(), Code::kPermissionDenied);
}

TEST(FileSource, AnEmptyFileAmongOthersIsNoted) {
  TemporaryDirectory directory;
  const std::string empty = directory.write("empty", ""), packed = directory.write("packed", gzip_bytes(""));
  const std::unique_ptr<Source> source = open_files({empty, directory.write("a", "text\n"), packed});
  EXPECT_EQ(joined(read_all(*source).value()), "text\n");
  EXPECT_THAT(source->notes(), ElementsAre(empty + " is empty", packed + " is empty"));
}

TEST(FileSource, NothingButEmptyFilesIsAnError) {
  TemporaryDirectory directory;
  const std::string empty = directory.write("empty", "");
  EXPECT_EQ(reading_error({empty}).code(), Code::kInvalidArgument);
  EXPECT_THAT(reading_error({empty}).message(), HasSubstr(empty + " is empty"));
  EXPECT_THAT(reading_error({empty, directory.write("mark", "\xef\xbb\xbf")}).message(), HasSubstr("all empty"));
}

TEST(FileSource, RefusesBinaryFilesAndUtf16ByName) {
  TemporaryDirectory directory;
  const std::string binary = directory.write("a.bin", std::string(1'000, '\0'));
  EXPECT_EQ(reading_error({binary}).code(), Code::kInvalidArgument);
  EXPECT_THAT(reading_error({binary}).message(), HasSubstr(binary));
  EXPECT_THAT(reading_error({directory.write("packed.gz", gzip_bytes(std::string(1'000, '\0')))}).message(),
              HasSubstr("is not text"));
  EXPECT_THAT(reading_error({directory.write("w.txt", "\xff\xfeh")}).message(), HasSubstr("UTF-16"));
}

TEST(FileSource, ACompressedFileCutShortOrDamagedNamesPathAndOffset) {
  TemporaryDirectory directory;
  for (const Compression compression : kCompressions) {
    const std::string bytes = compressed(compression, sample_text(50'000));
    const std::string cut = directory.write("cut", bytes.substr(0, bytes.size() - 3));
    EXPECT_EQ(reading_error({cut}).code(), Code::kDataLoss) << compression_name(compression);
    EXPECT_THAT(reading_error({cut}).message(),
                AllOf(HasSubstr(cut), HasSubstr("at byte"), HasSubstr(std::string(compression_name(compression)))));
    std::string flipped = bytes;
    flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 0x10);
    EXPECT_EQ(reading_error({directory.write("flipped", flipped)}).code(), Code::kDataLoss);
  }
}

TEST(FileSource, AFileThatGoesAwayAfterOpeningIsAnError) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a", "a\n");
  const std::unique_ptr<Source> source = open_files({path});
  fs::remove(path);
  EXPECT_EQ(read_all(*source).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace streamvec
