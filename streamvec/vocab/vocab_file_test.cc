#include "streamvec/vocab/vocab_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace streamvec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message(const std::string& text) {
  const Result<Vocabulary> result = parse_vocabulary(text, "vocab.tsv");
  EXPECT_FALSE(result.ok()) << text;
  EXPECT_EQ(result.status().code(), Code::kDataLoss);
  return result.status().message();
}

Vocabulary awkward() {
  Vocabulary vocabulary;
  vocabulary.add("plain", 9);
  vocabulary.add("tab\tnew\nline\rback\\slash", 8);
  vocabulary.add(std::string("n\0ul", 4), 7);
  vocabulary.add("#hash", 6);
  vocabulary.add("New York", 5);
  vocabulary.add("\xff\xfe", 4);
  vocabulary.add("한국어", 0);
  return vocabulary;
}

void expect_equal(const Vocabulary& a, const Vocabulary& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.alias_count(), b.alias_count());
  for (Slot slot = 0; slot < a.size(); ++slot) {
    EXPECT_EQ(a.word(slot), b.word(slot));
    EXPECT_EQ(a.count(slot), b.count(slot));
  }
  for (int64_t i = 0; i < a.alias_count(); ++i) {
    EXPECT_EQ(a.alias(i).spelling, b.alias(i).spelling);
    EXPECT_EQ(a.alias(i).slot, b.alias(i).slot);
  }
}

TEST(VocabFile, IsAHeaderAndALinePerSlot) {
  Vocabulary vocabulary;
  vocabulary.add("the", 12);
  vocabulary.add("a\tb", 3);
  EXPECT_EQ(format_vocabulary(vocabulary), "#word\tcount\nthe\t12\na\\tb\t3\n");
}

TEST(VocabFile, ReadsBackWhatItWrote) {
  const Vocabulary vocabulary = awkward();
  const Result<Vocabulary> read = parse_vocabulary(format_vocabulary(vocabulary), "vocab.tsv");
  ASSERT_TRUE(read.ok()) << read.status().message();
  expect_equal(*read, vocabulary);
}

TEST(VocabFile, ReadsBackAliases) {
  Vocabulary vocabulary = awkward();
  vocabulary.add_alias("plains", 0);
  vocabulary.add_alias("more plain", 0);
  vocabulary.add_alias("\\s", 4);
  const std::string text = format_vocabulary(vocabulary);
  EXPECT_THAT(text, HasSubstr("plain\t9\tplains more\\splain\n"));
  const Result<Vocabulary> read = parse_vocabulary(text, "vocab.tsv");
  ASSERT_TRUE(read.ok()) << read.status().message();
  expect_equal(*read, vocabulary);
  EXPECT_EQ(read->find("more plain"), 0);
}

TEST(VocabFile, AStreamReadsLikeAString) {
  Vocabulary vocabulary;
  for (int i = 0; i < 20'000; ++i) vocabulary.add("word" + std::to_string(i), i);
  std::istringstream in(format_vocabulary(vocabulary));
  const Result<Vocabulary> read = read_vocabulary(in, "vocab.tsv");
  ASSERT_TRUE(read.ok()) << read.status().message();
  expect_equal(*read, vocabulary);
}

TEST(VocabFile, AVocabularyMayBeEmpty) {
  const Result<Vocabulary> read = parse_vocabulary("#word\tcount\n", "vocab.tsv");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->size(), 0);
}

TEST(VocabFile, SkipsColumnsItDoesNotKnow) {
  const Result<Vocabulary> read =
      parse_vocabulary("# word\tcount\tlast_seen\tspellings\nrun\t3\t77\truns\n", "vocab.tsv");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->find("runs"), 0);
}

TEST(VocabFile, NamesPathAndLineOfWhatIsWrong) {
  EXPECT_THAT(message(""), HasSubstr("vocab.tsv is empty"));
  EXPECT_THAT(message("the\t3\n"), AllOf(HasSubstr("vocab.tsv:1:"), HasSubstr("starts with")));
  EXPECT_THAT(message("#count\tword\n"), HasSubstr("vocab.tsv:1:"));
  EXPECT_THAT(message("#word\tcount\na\t1\nb\n"), AllOf(HasSubstr("vocab.tsv:3:"), HasSubstr("1 columns")));
  EXPECT_THAT(message("#word\tcount\na\t1\t2\n"), HasSubstr("3 columns"));
  EXPECT_THAT(message("#word\tcount\na\t1\na\t2\n"), AllOf(HasSubstr("vocab.tsv:3:"), HasSubstr("twice")));
  EXPECT_THAT(message("#word\tcount\n\t1\n"), HasSubstr("empty"));
  EXPECT_THAT(message("#word\tcount\na\\q\t1\n"), HasSubstr("escape"));
  EXPECT_THAT(message("#word\tcount\na\\\t1\n"), HasSubstr("escape"));
  EXPECT_THAT(message("#word\tcount\na\t1"), AllOf(HasSubstr("vocab.tsv:2:"), HasSubstr("cut short")));
}

TEST(VocabFile, RefusesCountsThatAreNoWholeNumbers) {
  for (const char* count : {"", "x", "-1", "1.5", "1e3", " 1", "1 ", "9223372036854775808", "0x10"})
    EXPECT_THAT(message(std::string("#word\tcount\na\t") + count + "\n"), HasSubstr("vocab.tsv:2: the count")) << count;
  EXPECT_THAT(message("#word\tcount\na\t9223372036854775807\nb\t1\n"), HasSubstr("add up"));
}

TEST(VocabFile, AnAliasMayBeAnotherWord) {
  const std::string text = "#word\tcount\tspellings\nsee\t2\tsaw\nsaw\t1\tsaws\n";
  const Result<Vocabulary> read = parse_vocabulary(text, "vocab.tsv");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->find("saw"), 1);
  EXPECT_EQ(read->find_token("saw"), 0);
  EXPECT_EQ(format_vocabulary(*read), text);
}

TEST(VocabFile, RefusesAnAliasThatIsThereAlready) {
  const std::string header = "#word\tcount\tspellings\n";
  for (const char* rows : {"a\t1\tb b\n", "a\t1\ta\n", "a\t1\tb b\nb\t1\t\n", "a\t1\tc\nb\t1\tc\nc\t1\t\n"})
    EXPECT_THAT(message(header + rows), AllOf(HasSubstr("vocab.tsv:"), HasSubstr("twice"))) << rows;
  EXPECT_THAT(message("#word\tcount\tspellings\na\t1\tc  d\n"), HasSubstr("empty"));
}

TEST(VocabFile, RefusesOverlongWordsAndLines) {
  EXPECT_THAT(message("#word\tcount\n" + std::string(70'000, 'x') + "\t1\n"), HasSubstr("70000 bytes"));
  const std::string endless = "#word\tcount\n" + std::string(17 << 20, 'x');
  EXPECT_THAT(message(endless), HasSubstr("longer than"));
  std::istringstream in(endless);
  EXPECT_THAT(read_vocabulary(in, "vocab.tsv").status().message(), HasSubstr("longer than"));
}

TEST(VocabFile, NoTruncationReadsAsTheWhole) {
  const std::string text = format_vocabulary(awkward());
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<Vocabulary> string_result = parse_vocabulary(text.substr(0, size), "vocab.tsv");
    std::istringstream in(text.substr(0, size));
    const Result<Vocabulary> stream_result = read_vocabulary(in, "vocab.tsv");
    ASSERT_EQ(string_result.ok(), stream_result.ok()) << size;
    ASSERT_EQ(string_result.ok(), size > 0 && text[size - 1] == '\n') << size;
    if (string_result.ok()) {
      ASSERT_LT(string_result->size(), 7);
    }
  }
}

}  // namespace
}  // namespace streamvec
