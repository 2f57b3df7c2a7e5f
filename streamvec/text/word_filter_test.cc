#include "streamvec/text/word_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/text/stop_words.h"

namespace streamvec {
namespace {

using testing::HasSubstr;
using testing::Optional;

class WordFilterTest : public testing::Test {
 protected:
  WordFilterTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("streamvec_word_filter_" + std::to_string(::getpid()) + "_" + info->name());
    std::filesystem::create_directories(folder_);
  }
  ~WordFilterTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& content) {
    const auto path = folder_ / ("file" + std::to_string(++count_));
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  static WordFilter open(const WordFilterOptions& options) {
    auto filter = WordFilter::open(options);
    EXPECT_TRUE(filter.ok()) << filter.status().message();
    return std::move(filter).value();
  }
  static void expect_error(const WordFilterOptions& options, Code code, const std::string& part) {
    const auto filter = WordFilter::open(options);
    ASSERT_FALSE(filter.ok()) << part;
    EXPECT_EQ(filter.status().code(), code) << filter.status().message();
    EXPECT_THAT(filter.status().message(), HasSubstr(part));
  }

  std::filesystem::path folder_;
  int count_ = 0;
};

TEST_F(WordFilterTest, WithoutOptionsEveryWordStaysAsItIs) {
  const WordFilter filter = open({});
  EXPECT_TRUE(filter.empty());
  EXPECT_THAT(filter.apply("the"), Optional(std::string("the")));
}

TEST_F(WordFilterTest, TheBuiltInEnglishListLeavesOutFunctionWordsOnly) {
  const WordFilter filter = open({.stop_words = {"english"}});
  EXPECT_EQ(filter.apply("the"), std::nullopt);
  EXPECT_EQ(filter.apply("don't"), std::nullopt);
  EXPECT_THAT(filter.apply("bishop"), Optional(std::string("bishop")));
}

TEST_F(WordFilterTest, TheBuiltInListHoldsDistinctWordsThatTheTokeniserMakes) {
  std::set<std::string_view> seen;
  Tokenizer tokenizer;
  Tokens tokens;
  for (const std::string_view word : english_stop_words()) {
    EXPECT_TRUE(seen.insert(word).second) << word;
    tokenizer.tokenize(word, tokens);
    EXPECT_THAT(tokens.words, testing::ElementsAre(word));
  }
}

TEST_F(WordFilterTest, StopWordsOfAFileAreNormalisedLikeText) {
  const WordFilter filter = open({.stop_words = {"english", file("\uFEFFFoo\r\n\nDon’t\nÉTÉ\ni.e.\nlast")}});
  for (const char* word : {"foo", "don't", "été", "last", "the"}) EXPECT_EQ(filter.apply(word), std::nullopt) << word;
  EXPECT_THAT(filter.apply("e"), Optional(std::string("e")));
}

TEST_F(WordFilterTest, StopWordsKeepTheirCaseWhereTextDoes) {
  WordFilterOptions options{.stop_words = {file("US\n")}};
  options.tokenizer.fold_case = false;
  const WordFilter filter = open(options);
  EXPECT_EQ(filter.apply("US"), std::nullopt);
  EXPECT_THAT(filter.apply("us"), Optional(std::string("us")));
}

TEST_F(WordFilterTest, StemsBySnowball) {
  const WordFilter english = open({.stem = "English"});
  EXPECT_THAT(english.apply("running"), Optional(std::string("run")));
  EXPECT_THAT(english.apply("bishop's"), Optional(std::string("bishop")));
  EXPECT_THAT(english.apply("한국어"), Optional(std::string("한국어")));
  EXPECT_THAT(open({.stem = "german"}).apply("häuser"), Optional(std::string("haus")));
}

TEST_F(WordFilterTest, StemsAreNeverEmpty) {
  const WordFilter filter = open({.stem = "english"});
  for (const char* word : {"'", "''", "'s", "'s'", "s", "\xFF", "ing", "ed"}) {
    const auto stem = filter.apply(word);
    ASSERT_TRUE(stem.has_value());
    EXPECT_FALSE(stem->empty()) << word;
  }
}

TEST_F(WordFilterTest, AnUnknownStemmerIsAnErrorThatNamesTheKnownOnes) {
  expect_error({.stem = "klingon"}, Code::kInvalidArgument, "no stemmer for \"klingon\"");
  expect_error({.stem = "klingon"}, Code::kInvalidArgument, "known are arabic");
  expect_error({.stem = "klingon"}, Code::kInvalidArgument, " english ");
}

TEST_F(WordFilterTest, LemmasReplaceTheirFormsAndComeBeforeTheStem) {
  const WordFilter filter =
      open({.lemmas = file("Mice\tMouse\r\nmice\tmus\n\nbetter\tgood\nwere\tbe\n"), .stem = "english"});
  EXPECT_THAT(filter.apply("mice"), Optional(std::string("mouse")));
  EXPECT_THAT(filter.apply("better"), Optional(std::string("good")));
  EXPECT_THAT(filter.apply("horses"), Optional(std::string("hors")));
}

TEST_F(WordFilterTest, AWordWhoseLemmaIsAStopWordIsLeftOut) {
  const WordFilter filter = open({.stop_words = {"english"}, .lemmas = file("ain't\tbe\n")});
  EXPECT_EQ(filter.apply("ain't"), std::nullopt);
}

TEST_F(WordFilterTest, MissingEmptyAndBinaryFilesAreErrorsThatNamePathAndLine) {
  const std::string missing = (folder_ / "missing").string();
  const std::string empty = file(""), blank = file("\n \n"), folder = folder_.string();
  const std::string binary = file(std::string("one\ntwo\nth\0ree\n", 15)), latin1 = file("one\ncaf\xE9\n");
  for (const bool lemmas : {false, true}) {
    const auto options = [lemmas](const std::string& path) {
      return lemmas ? WordFilterOptions{.lemmas = path} : WordFilterOptions{.stop_words = {path}};
    };
    expect_error(options(missing), Code::kNotFound, missing);
    expect_error(options(empty), Code::kInvalidArgument, empty + " is empty");
    expect_error(options(blank), Code::kInvalidArgument, blank + ":1:");
    expect_error(options(folder), Code::kInvalidArgument, folder);
    expect_error(options(binary), Code::kInvalidArgument, binary + ":3:");
    expect_error(options(latin1), Code::kInvalidArgument, latin1 + ":2:");
  }
}

TEST_F(WordFilterTest, MalformedLemmaLinesAreErrorsThatNamePathAndLine) {
  for (const char* line : {"mice mouse", "mice\tmouse\tmus", "mice\t", "mice\tdo not"}) {
    const std::string path = file("a\tb\n" + std::string(line) + "\n");
    expect_error({.lemmas = path}, Code::kInvalidArgument, path + ":2:");
  }
}

TEST_F(WordFilterTest, AnswersTheSameFromManyThreads) {
  const WordFilter filter = open({.stem = "english"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&filter] {
      for (int k = 0; k < 2000; ++k) {
        ASSERT_THAT(filter.apply("running"), Optional(std::string("run")));
        ASSERT_THAT(filter.apply("nationalisation"), Optional(std::string("nationalis")));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace streamvec
