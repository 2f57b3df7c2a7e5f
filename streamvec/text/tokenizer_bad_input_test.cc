// Text that is not text: the tokeniser mends, drops and counts, in linear time and bounded memory, and never fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/text/testing.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {
namespace {

using Split = TokenizerOptions::Split;
using testing::ElementsAre;
using testing::IsEmpty;

// Tokens that do not depend on the text any more.
struct Outcome {
  std::vector<std::string> words;
  int64_t bytes_replaced, words_dropped;
};

Outcome tokens_of(const std::string& text, TokenizerOptions options = {}) {
  Tokens tokens;
  Tokenizer(options).tokenize(text, tokens);
  return {{tokens.words.begin(), tokens.words.end()}, tokens.bytes_replaced, tokens.words_dropped};
}

TEST(TokenizerBadInput, ASequenceCutAnywhereBecomesOneReplacementCharacter) {
  for (const std::string& whole : {std::string("é"), std::string("한"), std::string("😀")}) {
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      const std::string start = whole.substr(0, cut);
      for (const std::string& text : {"ab" + start, start + " ab", "ab " + start + "cd", start + start}) {
        const int64_t bad = static_cast<int64_t>(text == start + start ? 2 * cut : cut);
        const Outcome words = tokens_of(text);
        EXPECT_EQ(words.bytes_replaced, bad) << text;
        for (const std::string& word : words.words) EXPECT_TRUE(word == "ab" || word == "cd") << word;
      }
      EXPECT_THAT(tokens_of("x" + start + "y", kPlainWhitespace).words, ElementsAre("x\uFFFDy"));
      EXPECT_THAT(tokens_of("x" + start, kPlainWhitespace).words, ElementsAre("x\uFFFD"));
    }
    for (size_t cut = 1; cut < whole.size(); ++cut)  // the other half: continuation bytes on their own
      EXPECT_EQ(tokens_of("x" + whole.substr(cut)).bytes_replaced, static_cast<int64_t>(whole.size() - cut));
  }
}

TEST(TokenizerBadInput, OverlongFormsSurrogatesAndFarCodePointsAreReplaced) {
  for (const std::string& bad :
       {std::string("\xC0\xAF"), std::string("\xC1\xBF"), std::string("\xE0\x80\xAF"), std::string("\xF0\x80\x80\xAF"),
        std::string("\xED\xA0\x80"), std::string("\xED\xBF\xBF"), std::string("\xF4\x90\x80\x80"),
        std::string("\xF8\x88"), std::string("\xFE\xFF"), std::string("\xC0\x80")}) {
    const Outcome words = tokens_of("left" + bad + "right");
    EXPECT_THAT(words.words, ElementsAre("left", "right"));
    EXPECT_EQ(words.bytes_replaced, static_cast<int64_t>(bad.size()));
    const Outcome kept = tokens_of("left" + bad + "right", kPlainWhitespace);
    EXPECT_THAT(kept.words, ElementsAre("left" + repeat("\uFFFD", bad.size()) + "right"));
  }
}

TEST(TokenizerBadInput, NulsVanishAndAreCounted) {
  using namespace std::string_literals;
  for (const TokenizerOptions& options : all_options()) {
    const Outcome tokens = tokens_of("h\0e\0llo\0 don\0't \0\0 e\0x\0"s, options);
    EXPECT_THAT(tokens.words, ElementsAre("hello", "don't", "ex"));
    EXPECT_EQ(tokens.bytes_replaced, 8);
  }
  EXPECT_THAT(tokens_of(std::string(10'000, '\0')).words, IsEmpty());
}

TEST(TokenizerBadInput, AByteOrderMarkAtTheStartIsSkipped) {
  for (const TokenizerOptions& options : all_options()) {
    const Outcome tokens = tokens_of("\uFEFFone two", options);
    EXPECT_THAT(tokens.words, ElementsAre("one", "two"));
    EXPECT_EQ(tokens.bytes_replaced, 0);
  }
  EXPECT_THAT(tokens_of("\uFEFF").words, IsEmpty());
}

TEST(TokenizerBadInput, AWordOfTenMegabytesIsDroppedAndCounted) {
  constexpr size_t kBytes = 10'000'000;
  for (const std::string& unit : {std::string("x"), std::string("X"), std::string("é"), std::string("É"),
                                  std::string("한"), std::string("a'"), std::string("1,")}) {
    const std::string text = "one " + repeat(unit, kBytes / unit.size()) + "z9 two";
    for (const TokenizerOptions& options : {TokenizerOptions{}, kPlainWhitespace}) {
      const Outcome tokens = tokens_of(text, options);
      // "1,1,…1,z9": the last comma is not between digits, so that z9 is a word of its own.
      if (unit == "1," && options.split == Split::kWords)
        EXPECT_THAT(tokens.words, ElementsAre("one", "z9", "two"));
      else
        EXPECT_THAT(tokens.words, ElementsAre("one", "two")) << unit;
      EXPECT_EQ(tokens.words_dropped, 1) << unit;
    }
  }
}

TEST(TokenizerBadInput, AMillionMarksOnOneLetterAreDroppedAndCounted) {
  // The second kind of marks has to be sorted before the first, which costs ICU quadratic time.
  const std::string marks = repeat("\u0301", 500'000) + repeat("\u0323", 500'000);
  for (const TokenizerOptions& options : all_options()) {
    const Outcome tokens = tokens_of("one e" + marks + " two中" + marks + " three", options);
    if (options.split == Split::kWords) {
      EXPECT_THAT(tokens.words, ElementsAre("one", "two", "three"));
    } else {
      EXPECT_THAT(tokens.words, ElementsAre("one", "three"));
    }
    EXPECT_EQ(tokens.words_dropped, 2);
  }
}

TEST(TokenizerBadInput, FourKibibytesOfMarksOnOneLetterAreTheMostThatAnyLimitAllows) {
  const TokenizerOptions options{.word_bytes_max = 1'000'000};
  EXPECT_THAT(tokens_of("a" + repeat("\u0323", 2000), options).words, testing::SizeIs(1));
  EXPECT_EQ(tokens_of("a" + repeat("\u0323", 2100), options).words_dropped, 1);
}

TEST(TokenizerBadInput, AMegabyteWithoutSpacesIsCutIntoWordsAllTheSame) {
  const Outcome tokens = tokens_of(repeat("我们在北京", 70'000));
  EXPECT_GT(tokens.words.size(), 200'000u);
  EXPECT_EQ(tokens.words_dropped, 0);
}

TEST(TokenizerBadInput, TheLengthLimitIsInBytesAfterNormalisation) {
  const TokenizerOptions options{.word_bytes_max = 4};
  const Outcome tokens = tokens_of("abcd abcde éé ééé ＡＢＣＤ ABCD ABCDE e\u0301e\u0301", options);
  EXPECT_THAT(tokens.words, ElementsAre("abcd", "éé", "abcd", "abcd", "éé"));
  EXPECT_EQ(tokens.words_dropped, 3);
  EXPECT_THAT(tokens_of("a bc", {.word_bytes_max = 0}).words, ElementsAre("a"));
  EXPECT_THAT(tokens_of("a bc", {.word_bytes_max = -7}).words, ElementsAre("a"));
}

TEST(TokenizerBadInput, RandomBytesGiveValidWordsWithoutWhiteSpace) {
  Random random(7);
  for (const TokenizerOptions& options : all_options()) {
    Tokenizer tokenizer(options);
    Tokens tokens;
    for (int round = 0; round < 200; ++round) {
      std::string text(random.below(2000), ' ');
      for (char& byte : text) byte = static_cast<char>(random.next());
      tokenizer.tokenize(text, tokens);
      for (const std::string_view word : tokens.words) {
        ASSERT_FALSE(word.empty());
        ASSERT_LE(word.size(), 256u);
        ASSERT_EQ(word.find_first_of(std::string_view(" \t\n\v\f\r\0", 7)), word.npos);
        Tokens again;
        tokenizer.tokenize(word, again);
        ASSERT_EQ(again.bytes_replaced, 0);
      }
    }
  }
}

}  // namespace
}  // namespace streamvec
