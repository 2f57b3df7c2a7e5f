// Pages that are broken, cut or made to hurt: the extractor never fails, and its work stays linear.
#include <gtest/gtest.h>
#include <unicode/utf8.h>

#include <string>
#include <string_view>

#include "streamvec/core/random.h"
#include "streamvec/text/article.h"
#include "streamvec/text/testing.h"

namespace streamvec {
namespace {

bool is_clean(std::string_view text) {
  int32_t at = 0;
  while (at < static_cast<int32_t>(text.size())) {
    UChar32 c;
    U8_NEXT(reinterpret_cast<const uint8_t*>(text.data()), at, static_cast<int32_t>(text.size()), c);
    if (c <= 0 || (c < 0x20 && c != '\n')) return false;
  }
  return true;
}

void expect_clean(const std::string& html, ArticleExtractor& extractor, Article& article) {
  extractor.extract(html, article);
  EXPECT_TRUE(is_clean(article.text)) << html;
  EXPECT_TRUE(is_clean(article.title)) << html;
}

constexpr std::string_view kPage =
    "<!DOCTYPE html><html lang=\"ko\"><head><title>긴 제목 &amp; 더 | 신문</title><meta property='og:title' "
    "content=\"제목\">"
    "<script type=\"application/ld+json\">{\"datePublished\":\"2024-05-01\",\"articleBody\":\"몸 \\u00e9 "
    "\\ud83d\\ude00\"}"
    "</script><style>p>a{}</style></head><body class=single><!-- menu --><nav><ul><li><a href=/a>하나</a></ul></nav>"
    "<article><h1>제목</h1><p>첫째 문단은 충분히 길어서, 본문으로 여겨집니다. 그리고 조금 더 이어집니다 &hellip;</p>"
    "<table><tr><td>칸<td>Zelle é 😀</table><svg><path d='M0'/></svg><p>둘째 문단도 마찬가지로 길고, 쉼표가 "
    "있습니다.<br><br>끝</p>"
    "</article><form><input name=q><textarea>x</textarea></form><footer>© 2024</footer></body></html>";

TEST(ArticleBadInput, EveryPrefixAndEverySuffixOfAPageIsRead) {
  ArticleExtractor extractor;
  Article article;
  for (size_t cut = 0; cut <= kPage.size(); ++cut) {
    expect_clean(std::string(kPage.substr(0, cut)), extractor, article);
    expect_clean(std::string(kPage.substr(cut)), extractor, article);
  }
}

TEST(ArticleBadInput, DamagedBytesAreMended) {
  ArticleExtractor extractor;
  Article article;
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string html(kPage);
    for (int i = 0; i < 8; ++i)
      html[random.below(static_cast<uint32_t>(html.size()))] = static_cast<char>(random.below(256));
    expect_clean(html, extractor, article);
  }
}

TEST(ArticleBadInput, NulsVanishAndBadUtf8BecomesReplacementCharacters) {
  ArticleExtractor extractor;
  Article article;
  const std::string prose = "Enough words, and commas, to be taken for a paragraph of text.";
  extractor.extract("<p>" + prose + std::string(" a\0b \xFF\xC3( \xED\xA0\x80", 12) + "</p>", article);
  EXPECT_EQ(article.text.substr(0, prose.size() + 4), prose + " ab ");
  EXPECT_NE(article.text.find("\uFFFD"), std::string::npos);
  EXPECT_TRUE(is_clean(article.text));
}

TEST(ArticleBadInput, AMillionNestedTagsLeaveTheTextReadable) {
  const std::string prose = "A paragraph in the middle of it all, with commas, and long enough to count as prose.";
  ArticleExtractor extractor;
  Article article;
  for (const char* tag : {"div", "p", "span", "a href=/x", "table><tr><td", "ul><li", "blockquote", "x-y", "b"}) {
    extractor.extract(repeat("<" + std::string(tag) + ">", 1'000'000) + prose, article);
    EXPECT_LT(extractor.work(), 40'000'000) << tag;
    if (std::string(tag) != "a href=/x") {
      EXPECT_EQ(article.text, prose) << tag;
    }
  }
  extractor.extract(repeat("<div>", 1'000'000) + "<p>" + prose + repeat("</div>", 1'000'000), article);
  EXPECT_EQ(article.text, prose);
}

TEST(ArticleBadInput, AnAttributeOfMegabytesIsPassedOver) {
  ArticleExtractor extractor;
  Article article;
  const std::string prose = "A paragraph after a very long attribute, with a comma, is found all the same.";
  for (const char* name : {"class", "id", "style", "data-x", "href"}) {
    const std::string html =
        "<div " + std::string(name) + "=\"" + repeat("word-a ", 600'000) + "\"><p>" + prose + "</div>";
    extractor.extract(html, article);
    EXPECT_EQ(article.text, prose) << name;
  }
}

constexpr const char* kHostile[] = {
    "<div>",
    "<a href=/b>",
    "</div>",
    "<div></p></span>",
    "<table><tr><td></div>",
    "<!-- ",
    "<!-- >",
    "<![CDATA[",
    "<![CDATA[>",
    "<p class=\"",
    "<p class='",
    "<svg>",
    "<title>",
    "<noscript></noscrip",
    "<",
    "&",
    "&#",
    "<a b=",
    "<li><ul>",
    "<div class=a-b-c-d>",
    "</a",
    "<br>",
    "x<br><br>",
    "<h1>a</h1>",
    "<form><input>",
    "<td>a",
    "<dl><dd>a<dt>b",
    "<script type='application/ld+json'>{\"a\":\"</script>",
    "<p>\xE2\x80",
    "<p>A paragraph, with commas, long enough, to be prose, and to vote for its parents.",
    "<div><p>A paragraph, with commas, long enough, to be prose, and to vote for its parents.",
    "<ul><li>An entry, with commas, long enough, to be prose, and to vote for its parents.",
    "<p>A paragraph, with commas, long enough, to be prose.<div>Another one, with commas, as well.</div><h2>x</h2>"};

// Work per byte must not grow with the page.
TEST(ArticleBadInput, WorkOnAdversarialPagesIsLinear) {
  ArticleExtractor extractor;
  Article article;
  for (const std::string_view part : kHostile) {
    extractor.extract(repeat(part, 500'000 / part.size()), article);
    const double small = static_cast<double>(extractor.work() + 1'000'000);
    extractor.extract(repeat(part, 4'000'000 / part.size()), article);
    EXPECT_LT(static_cast<double>(extractor.work()), 12 * small) << part;
    EXPECT_LT(extractor.work(), 100'000'000) << part;
  }
}

}  // namespace
}  // namespace streamvec
