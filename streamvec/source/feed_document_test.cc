#include "streamvec/source/feed_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "streamvec/source/feed_text.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;
using Kind = FeedDocument::Kind;

FeedDocument parsed(std::string_view bytes, std::string_view content_type = "") {
  Result<FeedDocument> document = parse_feed(bytes, content_type);
  EXPECT_TRUE(document.ok()) << document.status().message();
  return document.ok() ? std::move(document).value() : FeedDocument();
}

std::string refusal(std::string_view bytes) {
  const Result<FeedDocument> document = parse_feed(bytes, "");
  EXPECT_EQ(document.status().code(), Code::kInvalidArgument) << bytes.substr(0, 200);
  return document.status().message();
}

constexpr std::string_view kRss2 = R"(<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
     xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>News &amp; views</title><link>https://n.example/</link><ttl>30</ttl>
<atom:link rel="next" href="https://n.example/feed?page=2"/>
<image><title>not the feed's</title><url>x</url></image>
<item><title>A &lt;b&gt;bold&lt;/b&gt; claim &amp;#8217;s</title><link>
  https://n.example/1?a=1&amp;b=2 </link><guid isPermaLink="false">tag:1</guid>
  <description>short</description><content:encoded><![CDATA[<p>long & full</p>]]></content:encoded>
  <pubDate>Wed, 01 May 2024 12:30:00 GMT</pubDate><media:title>no</media:title></item>
<item><title>Second</title><guid>https://n.example/2</guid><dc:date>2024-05-01T12:30:00Z</dc:date></item>
</channel></rss>)";

TEST(Feed, ReadsRss2) {
  const FeedDocument feed = parsed(kRss2, "application/rss+xml");
  EXPECT_EQ(feed.kind, Kind::kFeed);
  EXPECT_EQ(feed.title, "News & views");
  EXPECT_EQ(feed.next, "https://n.example/feed?page=2");
  EXPECT_EQ(feed.poll_after_s, 1800);
  ASSERT_EQ(feed.entries.size(), 2U);
  EXPECT_EQ(feed.entries[0].url, "https://n.example/1?a=1&b=2");
  EXPECT_EQ(feed.entries[0].id, "tag:1");
  EXPECT_EQ(feed.entries[0].title, "A bold claim \xe2\x80\x99s");
  EXPECT_EQ(feed.entries[0].summary_html, "<p>long & full</p>");
  EXPECT_EQ(feed.entries[0].time_s, 1'714'566'600);
  EXPECT_EQ(feed.entries[1].url, "https://n.example/2");
  EXPECT_EQ(feed.entries[1].time_s, 1'714'566'600);
}

TEST(Feed, ReadsRss1AndOldRss) {
  const FeedDocument rdf = parsed(R"(<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
      xmlns="http://purl.org/rss/1.0/" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
      xmlns:d="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>T</title>
      <sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency></channel>
      <item rdf:about="urn:1"><title>One</title><link>http://a/1</link><d:date>1970-01-02</d:date></item></rdf:RDF>)");
  EXPECT_EQ(rdf.title, "T");
  EXPECT_EQ(rdf.poll_after_s, 21600);
  ASSERT_EQ(rdf.entries.size(), 1U);
  EXPECT_EQ(rdf.entries[0].id, "urn:1");
  EXPECT_EQ(rdf.entries[0].url, "http://a/1");
  EXPECT_EQ(rdf.entries[0].time_s, 86'400);
  const FeedDocument old =
      parsed(R"(<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
      "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>Old</title>
      <item><title>x&nbsp;y</title><link>http://a/2</link><description>d</description></item></channel></rss>)");
  ASSERT_EQ(old.entries.size(), 1U);
  EXPECT_EQ(old.entries[0].title, "x\xc2\xa0y");
}

TEST(Feed, ReadsAtomWithItsLinksBasesAndContentTypes) {
  const FeedDocument feed = parsed(R"(<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://a.example/blog/">
    <title type="html">T &amp;amp; U</title><link rel="self" href="feed.xml"/><link rel="next" href="?p=2"/>
    <entry xml:base="2024/"><id>urn:1</id><title>1 &lt; 2</title>
      <link rel="enclosure" href="x.mp3"/><link rel="alternate" type="application/json" href="one.json"/>
      <link rel="alternate" type="text/html" href="one.html"/>
      <updated>2024-05-02T00:00:00Z</updated><published>2024-05-01T12:30:00Z</published>
      <summary>plain &amp; simple</summary>
      <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p class="a&quot;b">R&amp;D <b>x</b></p></div></content>
      <source><title>other feed</title><id>urn:other</id></source></entry>
    <entry><id>urn:2</id><link href="/two"/><content type="html">&lt;p&gt;html&lt;/p&gt;</content></entry>
    <entry><id>urn:3</id><link href="../three"/><content type="text">a &lt; b</content></entry>
    <entry><id>urn:4</id><content type="image/png">aGVsbG8gaGVsbG8gaGVsbG8=</content><summary>s</summary></entry></feed>)");
  EXPECT_EQ(feed.title, "T & U");
  EXPECT_EQ(feed.next, "https://a.example/blog/?p=2");
  ASSERT_EQ(feed.entries.size(), 4U);
  EXPECT_EQ(feed.entries[0].url, "https://a.example/blog/2024/one.html");
  EXPECT_EQ(feed.entries[0].id, "urn:1");
  EXPECT_EQ(feed.entries[0].title, "1 < 2");
  EXPECT_EQ(feed.entries[0].time_s, 1'714'566'600);
  EXPECT_EQ(feed.entries[0].summary_html, "<div><p class=\"a'b\">R&amp;D <b>x</b></p></div>");
  EXPECT_EQ(feed.entries[1].url, "https://a.example/two");
  EXPECT_EQ(feed.entries[1].summary_html, "<p>html</p>");
  EXPECT_EQ(feed.entries[2].url, "https://a.example/three");
  EXPECT_EQ(feed.entries[2].summary_html, "a &lt; b");
  EXPECT_EQ(feed.entries[3].summary_html, "s");
}

TEST(Feed, ReadsJsonFeed) {
  const FeedDocument feed = parsed(R"({"version":"https://jsonfeed.org/version/1.1","title":"J","next_url":"http://a/n",
    "items":[{"id":7,"url":"http://a/1","content_text":"a < b","date_published":"2024-05-01T12:30:00Z"},
             {"id":"b","external_url":"http://a/2","content_html":"<p>x</p>","title":"t"},{},7]})");
  EXPECT_EQ(feed.title, "J");
  EXPECT_EQ(feed.next, "http://a/n");
  ASSERT_EQ(feed.entries.size(), 2U);
  EXPECT_EQ(feed.entries[0].id, "7");
  EXPECT_EQ(feed.entries[0].summary_html, "a &lt; b");
  EXPECT_EQ(feed.entries[0].time_s, 1'714'566'600);
  EXPECT_EQ(feed.entries[1].url, "http://a/2");
}

TEST(Feed, ReadsSitemapsAndTheirIndexes) {
  const FeedDocument map = parsed(R"(<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
      xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
    <url><image:image><image:loc>http://a/x.png</image:loc></image:image><loc>http://a/1?x&amp;y</loc><lastmod>2024-05</lastmod></url>
    <url><loc>http://a/2</loc><lastmod>2025-01-01</lastmod><news:news><news:publication><news:name>N</news:name>
      </news:publication><news:publication_date>2024-05-01T12:30:00Z</news:publication_date><news:title>Head</news:title>
      </news:news></url></urlset>)");
  EXPECT_EQ(map.kind, Kind::kSitemap);
  ASSERT_EQ(map.entries.size(), 2U);
  EXPECT_EQ(map.entries[0].url, "http://a/1?x&y");
  EXPECT_EQ(map.entries[0].time_s, 1'714'521'600);
  EXPECT_EQ(map.entries[1].title, "Head");
  EXPECT_EQ(map.entries[1].time_s, 1'714'566'600);
  const FeedDocument index = parsed("<sitemapindex><sitemap><loc> http://a/s.xml.gz </loc></sitemap></sitemapindex>");
  EXPECT_EQ(index.kind, Kind::kSitemapIndex);
  ASSERT_EQ(index.entries.size(), 1U);
  EXPECT_EQ(index.entries[0].url, "http://a/s.xml.gz");
  const FeedDocument list = parsed("\xef\xbb\xbfhttp://a/1\r\n\r\nhttps://a/2\n", "text/plain");
  EXPECT_EQ(list.kind, Kind::kSitemap);
  ASSERT_EQ(list.entries.size(), 2U);
  EXPECT_EQ(list.entries[1].url, "https://a/2");
}

TEST(Feed, ReadsOtherEncodingsByHeaderDeclarationOrMark) {
  const std::string korean =
      "<rss><channel><item><title>\xbc\xad\xbf\xef</title><link>http://a</link></item></channel></rss>";
  EXPECT_EQ(parsed(korean, "text/xml; charset=euc-kr").entries[0].title, "서울");
  EXPECT_EQ(parsed("<?xml version='1.0' encoding='EUC-KR'?>" + korean).entries[0].title, "서울");
  std::string wide = "\xff\xfe";
  for (const char c : std::string("<rss><channel><item><title>hi</title></item></channel></rss>")) wide += {c, '\0'};
  EXPECT_EQ(parsed(wide).entries[0].title, "hi");
  // It says UTF-16 and is not; the header knows better.
  EXPECT_EQ(
      parsed(
          "<?xml version='1.0' encoding='utf-16'?><rss><channel><item><title>h\xc3\xa9</title></item></channel></rss>",
          "text/xml; charset=utf-8")
          .entries[0]
          .title,
      "h\xc3\xa9");
}

TEST(Feed, AFeedWithoutEntriesIsOne) {
  const FeedDocument feed = parsed("\n\n  <?xml version=\"1.0\"?>\n<rss><channel><title>t</title></channel></rss>");
  EXPECT_TRUE(feed.entries.empty());
  EXPECT_EQ(feed.title, "t");
}

TEST(Feed, ToleratesStrayMarksEntitiesPrefixesAndTextAfterTheEnd) {
  const FeedDocument feed = parsed(
      "Warning: x\n<?xml version=\"1.1\" encoding=\"nonsense\"?>\n<rss xmlns=\"http://own.example/\"><channel>"
      "<item><title>AT&T &mdash; 3 < 4 &bogus; \x0b &#0;</title><link>http://a/?x=1&copy=2</link>"
      "<content:encoded>raw <p>html <b>here</b> &amp; there</p></content:encoded></item>"
      "</channel></rss>\n<!-- cached --><script>");
  ASSERT_EQ(feed.entries.size(), 1U);
  EXPECT_EQ(feed.entries[0].title, "AT&T \xe2\x80\x94 3 < 4 &bogus; \xef\xbf\xbd");
  EXPECT_EQ(feed.entries[0].url, "http://a/?x=1&copy=2");
  EXPECT_EQ(feed.entries[0].summary_html, "raw <p>html <b>here</b> &amp; there</p>");
}

TEST(Feed, RefusesDocumentsThatDeclareEntities) {
  EXPECT_THAT(
      refusal("<!DOCTYPE rss [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><rss><channel><item><title>&b;</title>"
              "</item></channel></rss>"),
      HasSubstr("declares the entity \"a\""));
  EXPECT_THAT(refusal("<!DOCTYPE rss [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><rss/>"), HasSubstr("entity \"x\""));
  EXPECT_THAT(refusal("<!DOCTYPE rss [<!ENTITY % p SYSTEM \"http://a/x.dtd\">%p;]><rss/>"), HasSubstr("entity \"p\""));
}

TEST(Feed, RefusesWhatIsNone) {
  EXPECT_THAT(refusal("<!DOCTYPE html><html><body>page</body></html>"), HasSubstr("root is <html>"));
  EXPECT_THAT(refusal("{\"items\":[]}"), HasSubstr("jsonfeed.org"));
  EXPECT_THAT(refusal("{\"version\":"), HasSubstr("JSON"));
  EXPECT_THAT(refusal("plain words"), HasSubstr("neither XML nor JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("<"), HasSubstr("not a feed"));
  EXPECT_THAT(refusal("<?xml"), HasSubstr("not a feed"));
  EXPECT_THAT(refusal("<rss><channel><title>x</wrong>"), HasSubstr("line 1"));
  EXPECT_EQ(parse_feed(std::string((64U << 20) + 1, ' '), "").status().code(), Code::kResourceExhausted);
}

TEST(Feed, EveryCutGivesTheWholeEntriesBeforeIt) {
  for (size_t size = 0; size < kRss2.size(); ++size) {
    const Result<FeedDocument> feed = parse_feed(kRss2.substr(0, size), "");
    const size_t ends = static_cast<size_t>(kRss2.substr(0, size).find("</item>") != std::string_view::npos) +
                        (size >= kRss2.rfind("</item>") + 7 ? 1 : 0);
    EXPECT_EQ(feed.ok() ? feed->entries.size() : 0, ends) << size;
  }
}

TEST(Feed, AnyByteAnywhereIsReadOrRefused) {
  for (size_t at = 0; at < kRss2.size(); ++at)
    for (const char byte : {'\0', '<', '&', '>', '"', ';', ']', ':', '\xff', '\x80', '/', ' '}) {
      std::string changed(kRss2);
      changed[at] = byte;
      (void)parse_feed(changed, "").ok();
    }
}

TEST(Feed, NestingAndSizeAreBounded) {
  std::string deep = "<rss><channel>";
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_THAT(refusal(deep), HasSubstr("nested"));
  std::string deep_text = "<rss><channel><item><description>";
  for (int i = 0; i < 100'000; ++i) deep_text += "<b>";
  EXPECT_THAT(refusal(deep_text), HasSubstr("nested"));
  std::string many = "<urlset>";
  for (int i = 0; i < 60'000; ++i) many += "<url><loc>u</loc></url>";
  EXPECT_EQ(parsed(many + "</urlset>").entries.size(), 50'000U);
  const std::string large = "<rss><channel><item><title>t</title><description>" + std::string(3'000'000, 'x') +
                            "</description></item></channel></rss>";
  EXPECT_LE(parsed(large).entries[0].summary_html.size(), size_t{1} << 20);
}

TEST(FeedText, ResolvesReferences) {
  using feed::resolve_url;
  EXPECT_EQ(resolve_url("http://a/b/c/d?q#f", "g"), "http://a/b/c/g");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "../g?y"), "http://a/b/g?y");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "../../../g"), "http://a/g");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "./"), "http://a/b/c/");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "/g/../h"), "http://a/h");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "?y"), "http://a/b/c/d?y");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "#s"), "http://a/b/c/d?q#s");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "//h/i"), "http://h/i");
  EXPECT_EQ(resolve_url("http://a/b/c/d?q", "mailto:x"), "mailto:x");
  EXPECT_EQ(resolve_url("http://a", "g"), "http://a/g");
  EXPECT_EQ(resolve_url("b/c", "g"), "g");
  EXPECT_EQ(resolve_url("", "g"), "g");
}

TEST(FeedText, PlainTextHasNoTagsAndNoReferences) {
  EXPECT_EQ(feed::plain_text(" a <b>c</b>\n\n&amp; d < e <f"), "a c & d < e <f");
  EXPECT_EQ(feed::plain_text(std::string(100'000, '<')), std::string(100'000, '<'));
}

}  // namespace
}  // namespace streamvec
