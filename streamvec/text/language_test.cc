#include "streamvec/text/language.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace streamvec {
namespace {

constexpr std::string_view kEnglishCouncil =
    "The council met on Tuesday evening to talk about the new bridge. Most people who spoke were in favour of it, "
    "although some of them worried about the noise.";
constexpr std::string_view kKoreanCouncil =
    "시의회는 화요일 저녁에 새 다리에 대해 논의했다. 발언한 사람들은 대부분 찬성했지만 소음을 걱정하는 이들도 있었다.";
constexpr std::string_view kGermanCouncil =
    "Der Stadtrat hat am Dienstagabend über die neue Brücke gesprochen. Die meisten waren dafür, obwohl sich manche "
    "wegen des Lärms Sorgen machten.";

const std::vector<std::pair<std::string, std::string_view>> kTexts = {
    {"en", kEnglishCouncil},
    {"ko", kKoreanCouncil},
    {"de", kGermanCouncil},
    {"fr",
     "Le conseil municipal s'est réuni mardi soir pour parler du nouveau pont. La plupart des habitants y étaient "
     "favorables, même si certains craignaient le bruit."},
    {"es",
     "El ayuntamiento se reunió el martes por la noche para hablar del nuevo puente. La mayoría de los vecinos estaba "
     "a favor, aunque a algunos les preocupaba el ruido."},
    {"ru",
     "Городской совет собрался во вторник вечером, чтобы обсудить новый мост. Большинство выступавших поддержали его, "
     "хотя некоторые опасались шума."},
    {"ja",
     "市議会は火曜日の夜に新しい橋について話し合いました。多くの人は賛成しましたが、騒音を心配する声もありました。"},
    {"zh", "市议会星期二晚上开会讨论新桥的问题。大多数发言的人都表示赞成，不过也有人担心噪音会影响附近的居民。"},
    {"zh-Hant", "市議會星期二晚上開會討論新橋的問題。大多數發言的人都表示贊成，不過也有人擔心噪音會影響附近的居民。"},
    {"ar",
     "اجتمع مجلس المدينة مساء الثلاثاء للحديث عن الجسر الجديد. وكان معظم الناس يؤيدونه رغم قلق بعضهم من الضوضاء."},
};

TEST(Language, IsRecognised) {
  for (const auto& [code, text] : kTexts) {
    const LanguageGuess guess = guess_language(text);
    EXPECT_EQ(guess.code, code);
    EXPECT_TRUE(guess.reliable) << code;
    EXPECT_EQ(detect_language(text), code);
  }
}

TEST(Language, IsNotGuessedFromNothing) {
  for (const std::string_view text : {"", "   ", "12345 67 89.00", "\xFF\xFE\xFD", "😀😀😀"})
    EXPECT_EQ(detect_language(text), "") << text;
  EXPECT_FALSE(guess_language("ok").reliable);
}

TEST(Language, TextIsReadUpToTheFirstBadByte) {
  EXPECT_EQ(detect_language(std::string(kEnglishCouncil) + "\xFF\xFE" + std::string(kEnglishCouncil)), "en");
}

TEST(Language, WhatStandsBehindTheFirstBadByteDoesNoHarm) {
  EXPECT_EQ(guess_language(" longer than seven bytes, \xE1\x9E\x81\xE1\x9F\x92\xE0\xBA\xA5\xE0\x98\xB2\xE0\xBA\xA7 "
                           "\xE1\x80\x99\xE1\x80\xBC")
                .code,
            "en");
}

TEST(Language, LongTextIsCutBetweenCharacters) {
  for (const std::string_view start : {"", "a", "ab"}) {
    std::string long_text(start);
    while (long_text.size() < 100'000) long_text += kKoreanCouncil;
    EXPECT_EQ(detect_language(long_text), "ko");
  }
}

TEST(LanguageFilter, LetsTheWantedPassAndNoOthers) {
  const LanguageFilter filter = LanguageFilter::create({.wanted = {"en", "ko"}}).value();
  EXPECT_TRUE(filter.passes(kEnglishCouncil));
  EXPECT_TRUE(filter.passes(kKoreanCouncil));
  EXPECT_FALSE(filter.passes(kGermanCouncil));
  const LanguageFilter chinese = LanguageFilter::create({.wanted = {"zh"}}).value();
  EXPECT_TRUE(chinese.passes(kTexts[7].second));
  EXPECT_TRUE(chinese.passes(kTexts[8].second));
  EXPECT_FALSE(chinese.passes(kEnglishCouncil));
}

TEST(LanguageFilter, WhatIsUncertainPassesUnlessToldOtherwise) {
  EXPECT_TRUE(LanguageFilter::create({.wanted = {"en"}}).value().passes("ok"));
  EXPECT_FALSE(LanguageFilter::create({.wanted = {"en"}, .keep_unsure = false}).value().passes("ok"));
}

TEST(LanguageFilter, WithoutWishesEverythingPasses) {
  const LanguageFilter filter = LanguageFilter::create({}).value();
  for (const auto& [code, text] : kTexts) EXPECT_TRUE(filter.passes(text)) << code;
}

TEST(LanguageFilter, ACodeThatNobodyKnowsIsNamed) {
  for (const std::string code : {"xx", "english", "EN ", "", "un"}) {
    const auto filter = LanguageFilter::create({.wanted = {code}});
    EXPECT_EQ(filter.status().code(), Code::kInvalidArgument) << code;
    EXPECT_NE(filter.status().message().find("\"" + code + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace streamvec
