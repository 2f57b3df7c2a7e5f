#include "streamvec/text/charset.h"

#include <gtest/gtest.h>
#include <unicode/ucnv.h>

#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/text/charset_sniff.h"

namespace streamvec {
namespace {

constexpr std::string_view kKorean =
    "오늘 아침 서울에는 비가 내렸다. 시민들은 우산을 들고 지하철역으로 걸어갔다. 저녁에는 날씨가 갤 것으로 보인다.";
constexpr std::string_view kRussian =
    "Сегодня утром в городе шёл дождь. Люди спешили на работу и говорили о погоде, а вечером вышло солнце.";
constexpr std::string_view kJapanese =
    "今朝の東京は雨でした。人々は傘をさして駅まで歩きました。夕方には晴れるでしょう。明日も仕事があります。";
constexpr std::string_view kFrench =
    "L'été dernier, nous étions à la plage où les élèves s'amusaient. Ça va être l'année de tous les succès, dit-il.";

std::string encode(std::string_view utf8, const char* encoding) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out(utf8.size() * 4 + 16, '\0');
  const int32_t length = ucnv_convert(encoding, "UTF-8", out.data(), static_cast<int32_t>(out.size()), utf8.data(),
                                      static_cast<int32_t>(utf8.size()), &status);
  EXPECT_TRUE(U_SUCCESS(status)) << encoding;
  out.resize(static_cast<size_t>(length));
  return out;
}

std::string text_of(std::string_view bytes, std::string_view declared = "") {
  std::string scratch;
  return std::string(to_utf8(bytes, declared, /*html=*/false, scratch));
}

std::string page_of(std::string_view bytes, std::string_view declared = "") {
  std::string scratch;
  return std::string(to_utf8(bytes, declared, /*html=*/true, scratch));
}

TEST(Charset, Utf8IsHandedBackWithoutACopy) {
  std::string scratch;
  const std::string_view text = to_utf8(kKorean, "utf-8", false, scratch);
  EXPECT_EQ(text.data(), kKorean.data());
  EXPECT_EQ(text.size(), kKorean.size());
  EXPECT_EQ(to_utf8(kKorean, "", false, scratch).data(), kKorean.data());
  EXPECT_TRUE(scratch.empty());
}

TEST(Charset, AByteOrderMarkWinsOverWhatIsDeclaredAndIsTakenOff) {
  EXPECT_EQ(text_of("\xEF\xBB\xBFnaïve", "windows-1252"), "naïve");
  EXPECT_EQ(text_of("\xFF\xFE" + encode(kKorean, "UTF-16LE"), "euc-kr"), kKorean);
  EXPECT_EQ(text_of("\xFE\xFF" + encode(kKorean, "UTF-16BE"), "euc-kr"), kKorean);
  EXPECT_EQ(text_of(std::string("\xFF\xFE\0\0", 4) + encode(kKorean, "UTF-32LE")), kKorean);
  EXPECT_EQ(text_of(std::string("\0\0\xFE\xFF", 4) + encode(kKorean, "UTF-32BE")), kKorean);
}

TEST(Charset, LabelsMeanWhatTheyMeanOnTheWeb) {
  for (const std::string_view label : {"latin1", "ISO-8859-1", "iso_8859-1:1987", "us-ascii", " 'l1' ", "cp1252"})
    EXPECT_STREQ(encoding_of_label(label), "windows-1252") << label;
  for (const std::string_view label : {"euc-kr", "EUC_KR", "ks_c_5601-1987", "cp949", "korean", "windows-949"})
    EXPECT_STREQ(encoding_of_label(label), "windows-949") << label;
  EXPECT_STREQ(encoding_of_label("gb2312"), "gb18030");
  EXPECT_STREQ(encoding_of_label("iso-8859-11"), "windows-874");
  EXPECT_STREQ(encoding_of_label("utf8"), "UTF-8");
  for (const std::string_view label : {"", "utf-7", "ebcdic-cp-us", "no such thing", "utf-88"})
    EXPECT_EQ(encoding_of_label(label), nullptr) << label;
  EXPECT_EQ(text_of("\x93quoted\x94 \x80", "iso-8859-1"), "“quoted” €");
}

TEST(Charset, WhatIsDeclaredMayBeAWholeContentType) {
  const std::string bytes = encode(kKorean, "windows-949");
  for (const std::string_view declared : {"euc-kr", "text/html; charset=EUC-KR",
                                          "text/html;charset=\"ks_c_5601-1987\"; x=y", "text/plain; CHARSET = euc-kr"})
    EXPECT_EQ(text_of(bytes, declared), kKorean) << declared;
}

TEST(Charset, KoreanSyllablesBeyondKsx1001AreRead) {
  EXPECT_EQ(text_of(encode("똠방각하 펲시콜라", "windows-949"), "euc-kr"), "똠방각하 펲시콜라");
}

TEST(Charset, AMetaInTheFirst1024BytesNamesTheEncoding) {
  const std::string word = encode("한국어", "windows-949");
  for (const std::string_view meta :
       {"<meta charset=euc-kr>", "<META CHARSET='euc-kr'/>", "<meta\nname=x  charset = \"EUC-KR\" >",
        "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=euc-kr\">",
        "<meta content='text/html;charset=euc-kr' http-equiv=content-type>",
        "<!-- <meta charset=koi8-r> --><meta charset=euc-kr>", "<meta charset=nonsense><meta charset=euc-kr>",
        "<meta =x charset=euc-kr>"}) {
    const std::string page = "<html><head>" + std::string(meta) + "<title>" + word;
    EXPECT_TRUE(page_of(page).ends_with("한국어")) << meta;
  }
  const std::string padding(1'100, ' ');
  EXPECT_EQ(encoding_of_document(padding + "<meta charset=euc-kr>", true), nullptr);
  EXPECT_EQ(encoding_of_document("<meta charset=euc-kr>", false), nullptr);
  EXPECT_EQ(encoding_of_document("<meta name=x content='charset=euc-kr'>", true), nullptr);
  EXPECT_EQ(encoding_of_document("<metadata charset=euc-kr>", true), nullptr);
  EXPECT_EQ(encoding_of_document("<meta charset=", true), nullptr);
}

TEST(Charset, AMetaThatSaysUtf16CannotBeRightAndMeansUtf8) {
  EXPECT_EQ(page_of("<meta charset=utf-16>naïve"), "<meta charset=utf-16>naïve");
}

TEST(Charset, AnXmlDeclarationNamesTheEncoding) {
  const std::string declaration = "<?xml version='1.0' encoding=\"windows-1251\"?><p>";
  EXPECT_EQ(text_of(declaration + encode(kRussian, "windows-1251")), declaration + std::string(kRussian));
  EXPECT_EQ(text_of(declaration + encode(kRussian, "KOI8-R"), "koi8-r"), declaration + std::string(kRussian));
  const std::string wide = "<?xml version='1.0' encoding='utf-16'?><p>" + std::string(kRussian);
  EXPECT_EQ(text_of(encode(wide, "UTF-16LE")), wide);
  EXPECT_EQ(text_of(encode(wide, "UTF-16BE")), wide);
  EXPECT_EQ(text_of("<?xml version='1.0'?>encoding='koi8-r' naïve"), "<?xml version='1.0'?>encoding='koi8-r' naïve");
}

TEST(Charset, WhatIsNoTextIsNotTakenForUtf16) {
  std::string bytes = "<html><p>";
  for (int i = 0; i < 4'096; ++i) bytes += static_cast<char>(i * 151 % 256);
  EXPECT_TRUE(text_of(bytes).starts_with("<html><p>"));
}

TEST(Charset, TextThatSaysNothingOfItselfIsRecognised) {
  EXPECT_EQ(text_of(encode(kKorean, "windows-949")), kKorean);
  EXPECT_EQ(text_of(encode(kRussian, "windows-1251")), kRussian);
  EXPECT_EQ(text_of(encode(kRussian, "KOI8-R")), kRussian);
  EXPECT_EQ(text_of(encode(kJapanese, "windows-31j")), kJapanese);
  EXPECT_EQ(text_of(encode(kJapanese, "EUC-JP")), kJapanese);
  EXPECT_EQ(text_of(encode(kJapanese, "ISO-2022-JP")), kJapanese);
  EXPECT_EQ(text_of(encode(kFrench, "windows-1252")), kFrench);
}

TEST(Charset, Utf8WithAFewBadBytesOrCutAtItsEndStaysUtf8) {
  EXPECT_EQ(text_of(std::string(kKorean) + "\xFF!"), std::string(kKorean) + "\uFFFD!");
  const std::string cut(kKorean.substr(0, kKorean.find("비가") + 2));
  EXPECT_EQ(text_of(cut), cut.substr(0, cut.size() - 2) + "\uFFFD");
  EXPECT_EQ(text_of("caf\xC3"), "caf\uFFFD");
}

TEST(Charset, BadBytesBecomeTheReplacementCharacter) {
  EXPECT_EQ(text_of("a\xFFz\xED\xA0\x80q", "utf-8"), "a\uFFFDz\uFFFD\uFFFD\uFFFDq");
  EXPECT_EQ(text_of("\x80", "utf-8"), "\uFFFD");
  EXPECT_EQ(text_of("a\x81 z", "euc-kr"), "a\uFFFD z");
  EXPECT_EQ(text_of("a\xFD z", "shift_jis"), "a\uFFFD z");
  EXPECT_EQ(text_of(std::string("a\0\0\xDC", 4), "utf-16le"), "a\uFFFD");
  EXPECT_EQ(text_of(std::string("a\0b", 3), "utf-16le"), "a\uFFFD");
}

TEST(Charset, AnUnknownLabelIsAsIfNoneWereGiven) {
  EXPECT_EQ(text_of(kKorean, "x-klingon"), kKorean);
  EXPECT_EQ(text_of(kKorean, "text/html"), kKorean);
  EXPECT_EQ(page_of("<meta charset=koi8-r>" + encode(kRussian, "KOI8-R"), "text/html; charset=??"),
            "<meta charset=koi8-r>" + std::string(kRussian));
}

TEST(Charset, NothingGivesNothing) {
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of(std::string_view(), "utf-16"), "");
  EXPECT_EQ(text_of("\xFE\xFF"), "");
}

TEST(Charset, LongTextIsConvertedWhole) {
  std::string text;
  while (text.size() < 300'000) text.append(kKorean).append("😀\n");
  EXPECT_EQ(text_of(encode(text, "UTF-16LE"), "utf-16"), text);
  EXPECT_EQ(text_of(encode(text, "gb18030"), "gbk"), text);
}

TEST(Charset, AnyBytesUnderAnyLabelGiveWellFormedUtf8) {
  Random random(7);
  const std::vector<std::string> labels = {"",       "utf-8",        "euc-kr", "shift_jis",     "gbk",
                                           "big5",   "iso-2022-jp",  "utf-16", "utf-16be",      "utf-32",
                                           "koi8-r", "windows-1255", "euc-jp", "x-mac-cyrillic"};
  for (int round = 0; round < 400; ++round) {
    std::string bytes(random.below(200), '\0');
    const bool ascii = random.below(2) == 0;
    for (char& byte : bytes)
      byte = static_cast<char>(ascii ? "<meta charset=\x1B$B\"'?xml"[random.below(23)] : random.next());
    for (const std::string& label : labels) {
      const std::string text = page_of(bytes, label);
      std::string scratch;
      EXPECT_EQ(to_utf8(text, "utf-8", false, scratch).size() + (text.starts_with("\uFEFF") ? 3 : 0), text.size());
      EXPECT_TRUE(scratch.empty()) << label;
    }
  }
}

}  // namespace
}  // namespace streamvec
