// Article extraction from HTML (text/article.h). Title and text are clean UTF-8, lines hold something, equal pages give
// equal articles from an extractor that was used before, and the work is linear in the page.
#include "streamvec/text/article.h"

#include "fuzz/fuzz.h"

namespace streamvec {
namespace {

constexpr int64_t kWorkPerByte = 64;

void check_clean(std::string_view text) {
  STREAMVEC_CHECK(is_utf8(text));
  for (const char c : text) STREAMVEC_CHECK(c == '\n' || static_cast<uint8_t>(c) >= 0x20);
}

}  // namespace

FuzzStart fuzz_start() {
  return {
      .seeds =
          {"<!DOCTYPE html><html lang=en><head><title>The river rose | Daily</title><meta property=og:title "
           "content='The river rose'><link rel=canonical href=/river><script type=\"application/ld+json\">"
           "{\"datePublished\":\"2024-05-01T10:00:00Z\",\"articleBody\":\"It \\u00e9 \\ud83d\\ude00\"}</script></head>"
           "<body><nav><ul><li><a href=/a>Home</a><li><a href=/b>Sport</a></ul></nav><article><h1>The river rose</h1>"
           "<p>In the night the water came up to the bridge, and by the morning nobody could cross it any more.</p>"
           "<blockquote>We heard it first, then we saw it, she said.</blockquote><pre>code &lt;b&gt;\n x</pre>"
           "<table><tr><td>Day<td>Level<tr><td>Monday<td>3 m</table><figure><img><figcaption>A bridge</figcaption>"
           "</figure><p>The council will meet, as it did last year, to talk about walls&hellip; and about pumps.<br>"
           "<br>More.</p></article><aside><a href=/c>Related</a></aside><footer>&copy; 2024 &#x41;&#65;</footer>",
           "<div class=post><div class=post-body>첫째 문단은 길어서, 본문으로 여겨집니다. 그리고 조금 더 "
           "이어집니다.</div>"
           "<div class=comments><p>댓글</p></div></div><!-- x --><style>p{}</style><textarea>a</textarea><svg/>",
           "<p>one<p>two<b>three<i>four</b>five</i><![CDATA[x]]><?php ?><a href='",
           "<body><form><table><td><form><p>" + std::string(200, 'x') + "</table>"},
      .words = {"<article>",
                "<p>",
                "</p>",
                "<div>",
                "</div>",
                "<script>",
                "</script>",
                "<!--",
                "-->",
                "<style>",
                "<table>",
                "<tr>",
                "<td>",
                "<li>",
                "<a href=",
                "<h1>",
                "<title>",
                "</title>",
                "<br>",
                "<pre>",
                "&amp;",
                "&#x10FFFF;",
                "&#0;",
                "<noscript>",
                "<svg>",
                "<template>",
                "hidden",
                "aria-hidden=true",
                "itemprop=articleBody",
                "class=",
                "id=",
                "<meta name=date content=",
                "application/ld+json",
                "\"articleBody\":\"",
                "\xF0\x9F\x98\x80",
                "\xFF"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view html(reinterpret_cast<const char*>(data), size);
  static ArticleExtractor used;
  Article article, again;
  used.extract(html, article);
  check_clean(article.text);
  check_clean(article.title);
  STREAMVEC_CHECK(article.text.find("\n\n") == std::string::npos);
  STREAMVEC_CHECK(is_utf8(article.language) && is_utf8(article.canonical));
  STREAMVEC_CHECK(used.work() <= kWorkPerByte * static_cast<int64_t>(size + 64));
  ArticleExtractor().extract(html, again);
  STREAMVEC_CHECK(again.text == article.text && again.title == article.title && again.time_s == article.time_s);
  return 0;
}
