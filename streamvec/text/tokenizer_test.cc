#include "streamvec/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/text/testing.h"

namespace streamvec {
namespace {

using Split = TokenizerOptions::Split;
using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<std::string>;

Words words(std::string_view text, TokenizerOptions options = {}) {
  Tokens tokens;
  Tokenizer(options).tokenize(text, tokens);
  return {tokens.words.begin(), tokens.words.end()};
}

std::vector<Words> sentences(std::string_view text, TokenizerOptions options = {}) {
  Tokens tokens;
  Tokenizer(options).tokenize(text, tokens);
  std::vector<Words> result;
  int32_t begin = 0;
  for (const int32_t end : tokens.sentence_ends) {
    result.emplace_back(tokens.words.begin() + begin, tokens.words.begin() + end);
    begin = end;
  }
  EXPECT_EQ(static_cast<size_t>(begin), tokens.words.size());
  return result;
}

TEST(Tokenizer, CutsAtPunctuationAndFoldsCase) {
  EXPECT_THAT(words("Hello, World! (It WORKS.)"), ElementsAre("hello", "world", "it", "works"));
}

TEST(Tokenizer, KeepsOneApostropheOrUnderscoreInsideAWord) {
  EXPECT_THAT(words("don't 'tis dogs' rock'n'roll new_york __init__ a''b a_'b"),
              ElementsAre("don't", "tis", "dogs", "rock'n'roll", "new_york", "init", "a", "b", "a", "b"));
}

TEST(Tokenizer, WritesTheTypographicApostropheAsTheStraightOne) {
  EXPECT_THAT(words("don’t l’été ‘quoted’ L'ÉTÉ"), ElementsAre("don't", "l'été", "quoted", "l'été"));
  EXPECT_THAT(words("don’t", {.nfkc = false}), ElementsAre("don’t"));
}

TEST(Tokenizer, HyphensAndDashesPartWords) {
  EXPECT_THAT(words("state-of-the-art a—b x‑y"), ElementsAre("state", "of", "the", "art", "a", "b", "x", "y"));
}

TEST(Tokenizer, DigitsStayInWordsAndPointsInNumbers) {
  EXPECT_THAT(words("covid19 3.14 1,000. 1.2.3 v2.0 u.s. x.1 1..2 3,a"),
              ElementsAre("covid19", "3.14", "1,000", "1.2.3", "v2.0", "u", "s", "x", "1", "1", "2", "3", "a"));
}

TEST(Tokenizer, SymbolsFallAwayBeforeNfkcCouldSpellThem) {
  EXPECT_THAT(words("Windows™ 3½ ©2020 I😀you m²"), ElementsAre("windows", "3", "2020", "i", "you", "m2"));
}

TEST(Tokenizer, FoldsCaseOfAllScripts) {
  EXPECT_THAT(words("STRASSE Straße ΣΊΣΥΦΟΣ Σίσυφος МОСКВА ＡＢＣ ﬁn"),
              ElementsAre("strasse", "strasse", "σίσυφοσ", "σίσυφοσ", "москва", "abc", "fin"));
}

TEST(Tokenizer, FoldingAndNfkcSwitchOffSeparately) {
  const char* text = "Straße ＡＢ ﬁN";
  EXPECT_THAT(words(text, {.fold_case = false}), ElementsAre("Straße", "AB", "fiN"));
  EXPECT_THAT(words(text, {.nfkc = false}), ElementsAre("strasse", "ａｂ", "fin"));
  EXPECT_THAT(words(text, {.fold_case = false, .nfkc = false}), ElementsAre("Straße", "ＡＢ", "ﬁN"));
}

TEST(Tokenizer, ComposedAndDecomposedSpellingsGiveEqualWords) {
  EXPECT_EQ(words("cafe\u0301 A\u030Angstro\u0308m"), words("café Ångström"));
  // 한국어 as conjoining jamo, then as syllables.
  EXPECT_EQ(words("\u1112\u1161\u11AB\u1100\u116E\u11A8\u110B\u1165"), words("\uD55C\uAD6D\uC5B4"));
  EXPECT_NE(words("cafe\u0301", {.nfkc = false}), words("café", {.nfkc = false}));
}

TEST(Tokenizer, KoreanIsCutAtSpacesAndPunctuation) {
  EXPECT_THAT(words("정말 웃깁니다. 스머프등장 ㅋ 6점,택시"),
              ElementsAre("정말", "웃깁니다", "스머프등장", "ㅋ", "6점", "택시"));
  EXPECT_THAT(words("'트루먼'만큼은 ’파일럿’이라는 iPhone'은 인공_지능"),
              ElementsAre("트루먼", "만큼은", "파일럿", "이라는", "iphone", "은", "인공_지능"));
}

TEST(Tokenizer, SingleKoreanLettersStayAsTheyAreTyped) {
  EXPECT_THAT(words("ㅋㅋ ㅠㅠ ㅎㅏ 웃겨ㅋㅋ"), ElementsAre("ㅋㅋ", "ㅠㅠ", "ㅎㅏ", "웃겨ㅋㅋ"));
}

TEST(Tokenizer, ScriptsWithoutSpacesAreCutByDictionary) {
  EXPECT_THAT(words("我们在北京。"), ElementsAre("我们", "在", "北京"));
  EXPECT_THAT(words("東京に行く"), ElementsAre("東京", "に", "行く"));
  EXPECT_THAT(words("ภาษาไทยน้ำ"), ElementsAre("ภาษา", "ไทย", "น้ำ"));
}

TEST(Tokenizer, AChangeOfScriptKindEndsAWord) {
  EXPECT_THAT(words("2008年"), ElementsAre("2008", "年"));
  EXPECT_THAT(words("北京은"), ElementsAre("北京", "은"));
  EXPECT_THAT(words("iPhone手机"), ElementsAre("iphone", "手机"));
}

TEST(Tokenizer, MarksBelongToTheWordAndStartNone) {
  EXPECT_THAT(words("हिन्दी भाषा"), ElementsAre("हिन्दी", "भाषा"));
  EXPECT_THAT(words("\u0301 \u0301a"), ElementsAre("a"));
}

TEST(Tokenizer, InvisibleCodePointsDropOutOfWords) {
  EXPECT_THAT(words("co\u00ADoperate hour\u2060\u2014who می\u200Cخواهم"),
              ElementsAre("cooperate", "hour", "who", "میخواهم"));
  EXPECT_THAT(words("a\u200Bb"), ElementsAre("a", "b"));  // a zero width space parts words
}

TEST(Tokenizer, ALineEndEndsASentenceAndEmptySentencesAreNotGiven) {
  EXPECT_THAT(sentences("\n\none two\r\n\r\nthree\n...\nfour"),
              ElementsAre(Words{"one", "two"}, Words{"three"}, Words{"four"}));
  EXPECT_THAT(sentences("a\rb\u2028c\u2029d\u0085é"),
              ElementsAre(Words{"a"}, Words{"b"}, Words{"c"}, Words{"d"}, Words{"é"}));
  EXPECT_THAT(sentences(""), IsEmpty());
  EXPECT_THAT(sentences(" .\n"), IsEmpty());
}

TEST(Tokenizer, WhitespaceSplitsWhereFastTextDoes) {
  EXPECT_THAT(sentences("The U.S.\tstate-of-the-art\v(x)\f!\rDon’t\nÉté\u00A0x ", kPlainWhitespace),
              ElementsAre(Words{"The", "U.S.", "state-of-the-art", "(x)", "!", "Don’t"}, Words{"Été\u00A0x"}));
  EXPECT_THAT(words("a\x01\x1F\x7F-", kPlainWhitespace), ElementsAre("a\x01\x1F\x7F-"));
}

TEST(Tokenizer, WhitespaceFoldsAndNormalisesOnlyWhenAsked) {
  EXPECT_THAT(words("ÉTÉ ＡＢ!", {.split = Split::kWhitespace}), ElementsAre("été", "ab!"));
  EXPECT_THAT(words("ÉTÉ ＡＢ!", {.split = Split::kWhitespace, .fold_case = false}), ElementsAre("ÉTÉ", "AB!"));
  EXPECT_THAT(words("A\u00A0B", {.split = Split::kWhitespace}), ElementsAre("a", "b"));
}

TEST(Tokenizer, WordsAreTheSameWhereverTheyStandInTheText) {
  const std::string sample = "It's 3.14 Naïve_test Don’t ONE,two. 한국어 l'été end.\nx";
  const Words expected = words(sample);
  for (size_t shift = 0; shift < 200; ++shift) {
    const std::string text = std::string(4000 + shift, ' ') + sample;
    ASSERT_EQ(words(text), expected) << shift;
  }
}

TEST(Tokenizer, UnchangedWordsAreViewsIntoTheText) {
  const std::string text = "plain 한국어 naïve";
  Tokens tokens;
  Tokenizer(TokenizerOptions{}).tokenize(text, tokens);
  for (const std::string_view word : tokens.words) {
    EXPECT_GE(word.data(), text.data());
    EXPECT_LT(word.data(), text.data() + text.size());
  }
}

TEST(Tokenizer, TokensKeepTheirWordsWhenMoved) {
  const std::string text = "ONE Été THREE";
  auto tokens = std::make_unique<Tokens>();
  Tokenizer().tokenize(text, *tokens);
  const Tokens moved = std::move(*tokens);
  tokens->storage.copy("overwritten if the two still shared memory");
  tokens.reset();
  EXPECT_THAT(moved.words, ElementsAre("one", "été", "three"));
}

TEST(Tokenizer, EachCallReplacesWhatTheLastOneLeft) {
  Tokenizer tokenizer;
  Tokens tokens;
  tokenizer.tokenize("ONE\xFF TWO\nThree", tokens);
  tokenizer.tokenize("Four", tokens);
  EXPECT_THAT(tokens.words, ElementsAre("four"));
  EXPECT_THAT(tokens.sentence_ends, ElementsAre(1));
  EXPECT_EQ(tokens.bytes_replaced, 0);
}

}  // namespace
}  // namespace streamvec
