#include "streamvec/format/text_vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/format/test_support.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

class TextVectorsTest : public ::testing::Test {
 protected:
  Result<Snapshot> word2vec(const std::string& text) { return read(text, read_word2vec_text); }
  Result<Snapshot> glove(const std::string& text) { return read(text, read_glove); }
  Result<Snapshot> read(const std::string& text, Result<Snapshot> (*reader)(InputStream&)) {
    write_bytes(path_, text);
    STREAMVEC_ASSIGN_OR_RETURN(InputStream input, InputStream::open(path_));
    return reader(input);
  }
  void expect_error(const Result<Snapshot>& result, const std::string& reason) {
    ASSERT_FALSE(result.ok()) << "wanted: " << reason;
    EXPECT_THAT(result.status().message(), HasSubstr(path_));
    EXPECT_THAT(result.status().message(), HasSubstr(reason));
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.path("v.txt");
};

TEST_F(TextVectorsTest, RowsAreReadAsWordAndValues) {
  const auto snapshot = word2vec("2 3\nking 1 -0.5 1e-3\n\xec\x99\x95 +2 .25 3E2 \n");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->vocabulary.word(0), "king");
  EXPECT_EQ(snapshot->vocabulary.word(1), "\xec\x99\x95");
  EXPECT_EQ(snapshot->input.row(0)[1], -0.5f);
  EXPECT_EQ(snapshot->input.row(0)[2], 1e-3f);
  EXPECT_EQ(snapshot->input.row(1)[0], 2.0f);
  EXPECT_EQ(snapshot->input.row(1)[2], 300.0f);
}

TEST_F(TextVectorsTest, TabsWindowsLinesAndTrailingBlanksAreTaken) {
  const auto snapshot = word2vec("2 2\r\na\t1\t2 \r\nb 3  4\r\n");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->input.row(1)[1], 4.0f);
}

TEST_F(TextVectorsTest, WordsOfAFileWithoutCountsFallByZipfsLaw) {
  const auto snapshot = glove("a 1\nb 1\nc 1\nd 1\n");
  ASSERT_TRUE(snapshot.ok());
  for (Slot slot = 0; slot < 4; ++slot) EXPECT_EQ(snapshot->vocabulary.count(slot), (4 + slot) / (slot + 1));
  EXPECT_EQ(snapshot->vocabulary.count(0), 4);
  EXPECT_EQ(snapshot->vocabulary.count(3), 1);
}

TEST_F(TextVectorsTest, GloveTakesItsDimensionFromTheFirstLine) {
  const auto snapshot = glove("7 1 2\nb 3 4\n");
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->dim(), 2);
  EXPECT_EQ(snapshot->vocabulary.word(0), "7");
}

TEST_F(TextVectorsTest, BlanksInAGloveWordAreTaken) {
  const auto snapshot = glove("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->vocabulary.word(1), ". . .");
  EXPECT_EQ(snapshot->vocabulary.word(2), "at name@domain.com");
  EXPECT_EQ(snapshot->input.row(2)[0], 5.0f);
  const auto first = glove(". . . 3 4\nthe 1 2\n");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->vocabulary.word(0), ". . .");
}

TEST_F(TextVectorsTest, BadRowsAreRefusedWithTheirLine) {
  expect_error(word2vec("2 3\na 1.5 2 3\nb 1 2\n"), "line 3: 2 values where 3 are wanted");
  expect_error(word2vec("2 3\na 1 2 3\nb 1 2 3 4\n"), "line 3: more than 3 values");
  expect_error(word2vec("2 3\na 1 2 3\nb 1 x 3\n"), "line 3: value 2 is not a number");
  expect_error(word2vec("2 3\na 1 2 3\nb 1 nan 3\n"), "line 3: value 2 is not finite");
  expect_error(word2vec("2 3\na 1 2 3\nb 1 2 -inf\n"), "line 3: value 3 is not finite");
  expect_error(word2vec("2 3\na 1 2 3\nb 1 2 1e39\n"), "line 3: value 3 is not finite");
  expect_error(word2vec("2 3\na 1 2 3\na 1 2 3\n"), "line 3: 'a' was there already as word number 1");
  expect_error(word2vec("2 3\na 1.5 2 3\n 1 2 3\n"), "line 3: the word is empty");
  expect_error(word2vec("2 3\na 1.500000000 2 3\n\n"), "line 3: 0 values");
  expect_error(glove("a 1 2\nb 1 2 3\n"), "line 2: more than 2 values");
  expect_error(glove("a 1 2\nb 1\n"), "line 2: 1 values where 2 are wanted");
  expect_error(glove("a 1 2\n\nb 1 2\n"), "line 3: a row after an empty line");
  expect_error(glove("hello world\n"), "line 1 is not a word and its values");
  expect_error(word2vec("2 1\na 1\n" + std::string(70'000, 'b') + " 1\n"), "line 3: a word of 70000 bytes");
}

TEST_F(TextVectorsTest, AValueTooSmallForFloat32IsZero) {
  const auto snapshot = glove("a 1e-60 -1e-60\n");
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->input.row(0)[0], 0.0f);
}

TEST_F(TextVectorsTest, AHeaderThatPromisesOtherThanThereIsIsRefused) {
  expect_error(word2vec("3 1\na 1.5\nb 1.5\nc 1.5"), "line 4 has no end at byte 21");
  expect_error(word2vec("3 1\na 1\nb 1\n\n\n\n\n"), "line 4");
  expect_error(word2vec("4 1\na 1.00000\nb 2.00000\n"), "the file ends after 2 words; its first line says 4");
  expect_error(word2vec("1 1\na 1\nb 1\n"), "line 3: more words than the first line says");
  expect_error(word2vec("0 3\n"), "no vectors at all");
  expect_error(word2vec("3 0\na\n"), "no vectors at all");
  expect_error(word2vec("1000000000 300\na 1\n"), "more than a file of");
  expect_error(word2vec("1 99999999\na 1\n"), "more than can be");
  expect_error(word2vec("99999999999999999999999999 3\na 1 2 3\n"), "more than can be");
  expect_error(word2vec("3 99999999999999999999999999\na 1 2 3\n"), "more than can be");
}

TEST_F(TextVectorsTest, ALineWithoutEndIsRefusedBeforeItFillsTheMemory) {
  expect_error(glove(std::string(17 << 20, 'x')), "longer than");
}

TEST_F(TextVectorsTest, WordsThatOtherProgramsWouldSplitAreNotWritten) {
  const std::string words[] = {"New York", "a\tb", "a\nb", "a\rb", std::string("a\0b", 3)};
  for (const std::string& word : words) {
    const Snapshot snapshot = make_snapshot({"fine", word}, 2);
    auto file = FileWriter::create(path_);
    ASSERT_TRUE(file.ok());
    const Status status = write_word2vec_text(snapshot, *file);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(word));
    EXPECT_THAT(status.message(), HasSubstr("safetensors"));
    EXPECT_EQ(file->size(), 0) << "nothing is written";
  }
}

TEST_F(TextVectorsTest, ProjectorMetadataOfOneColumnHasNoNames) {
  write_bytes(scratch_.path("t.tsv"), "1\t2\n3\t4\n");
  write_bytes(scratch_.path("m.tsv"), "New York\nParis\n");
  auto tensors = InputStream::open(scratch_.path("t.tsv"));
  auto metadata = InputStream::open(scratch_.path("m.tsv"));
  ASSERT_TRUE(tensors.ok() && metadata.ok());
  const auto snapshot = read_projector(*tensors, *metadata);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->vocabulary.word(0), "New York");
  EXPECT_EQ(snapshot->input.row(1)[0], 3.0f);
}

TEST_F(TextVectorsTest, ProjectorFilesThatDoNotBelongTogetherAreRefused) {
  const struct {
    const char *tensors, *metadata, *reason;
  } cases[] = {{"1\t2\n3\t4\n", "word\tcount\na\t1\n", "part after 1 rows"},
               {"1\t2\n", "word\tcount\na\t1\nb\t1\n", "part after 1 rows"},
               {"1\t2\n3\n", "a\nb\n", "line 2: value 2 of 2"},
               {"1\t2\n3\t4\t5\n", "a\nb\n", "line 2: more than 2 values"},
               {"1\t2\n3\tx\n", "a\nb\n", "line 2: value 2 of 2"},
               {"1\t2\n3\tinf\n", "a\nb\n", "line 2: value 2 is not finite"},
               {"1\t2\n3\t4\n", "a\na\n", "line 2: 'a' was there already"},
               {"1\t2\n", "word\tcount\na\tmany\n", "line 2: the count"},
               {"", "", "holds no rows"}};
  for (const auto& [tensors_text, metadata_text, reason] : cases) {
    write_bytes(scratch_.path("t.tsv"), tensors_text);
    write_bytes(scratch_.path("m.tsv"), metadata_text);
    auto tensors = InputStream::open(scratch_.path("t.tsv"));
    auto metadata = InputStream::open(scratch_.path("m.tsv"));
    ASSERT_TRUE(tensors.ok() && metadata.ok());
    const auto snapshot = read_projector(*tensors, *metadata);
    ASSERT_FALSE(snapshot.ok()) << reason;
    EXPECT_THAT(snapshot.status().message(), HasSubstr(reason));
  }
}

}  // namespace
}  // namespace streamvec
