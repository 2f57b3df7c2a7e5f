// Feeds and sitemaps (source/feed_document.h): the first line is the content type. Every field is UTF-8 and within its
// limits, and an entry has an address or a text.
#include "fuzz/fuzz.h"
#include "streamvec/source/feed_document.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {
      .seeds =
          {"application/rss+xml\n<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:content=\"http://purl.org/rss/1.0/"
           "modules/content/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel><title>A</title><ttl>60</ttl>"
           "<item><title>One &amp; only</title><link>http://a.example/1</link><guid isPermaLink=\"false\">g1</guid>"
           "<pubDate>Wed, 01 May 2024 12:30:00 +0200</pubDate><description><![CDATA[<p>Short</p>]]></description>"
           "<content:encoded>&lt;p&gt;Longer&nbsp;text&lt;/p&gt;</content:encoded></item></channel></rss>",
           "application/atom+xml\n<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"http://a.example/\"><title "
           "type=\"html\">&lt;b>B</title><link rel=\"next\" href=\"?p=2\"/><entry xml:base=\"x/\"><id>urn:1</id>"
           "<link rel=\"alternate\" href=\"1\"/><updated>2024-05-01T12:30:00Z</updated><content type=\"xhtml\"><div "
           "xmlns=\"http://www.w3.org/1999/xhtml\"><p>Text</p></div></content></entry></feed>",
           "text/xml\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" "
           "xmlns=\"http://purl.org/rss/1.0/"
           "\"><item rdf:about=\"http://a.example/2\"><title>Two</title></item></rdf:RDF>",
           "application/feed+json\n{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"J\",\"next_url\":"
           "\"http://a.example/2\",\"items\":[{\"id\":\"7\",\"url\":\"http://a.example/7\",\"content_html\":\"<p>x</"
           "p>\","
           "\"date_published\":\"2024-05-01\"},{\"id\":8,\"content_text\":\"a < b\"}]}",
           "\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://a.example/</loc><lastmod>"
           "2024-05</lastmod></url></urlset>",
           "\n<sitemapindex><sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>",
           "text/plain\nhttp://a.example/1\nhttp://a.example/2\n",
           "\n<!DOCTYPE rss [<!ENTITY a \"b\">]><rss><channel><item><title>&a;</title></item></channel></rss>"},
      .words = {"<item>",      "</item>",       "<entry>",         "</entry>",
                "<![CDATA[",   "]]>",           "<link href=",     "<title>",
                "</title>",    "<description>", "xml:base=",       "<?xml encoding='utf-16'?>",
                "&eacute;",    "<!ENTITY",      "<guid>",          "<loc>",
                "\"items\":[", "\"url\":",      "sy:updatePeriod", "media:description"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  constexpr size_t kFieldBytesMax = size_t{1} << 20;
  FuzzInput input(data, size);
  const std::string_view content_type = input.line();
  const Result<FeedDocument> feed = parse_feed(input.rest(), content_type);
  if (!feed.ok()) {
    STREAMVEC_CHECK(feed.status().code() == Code::kInvalidArgument);
    return 0;
  }
  STREAMVEC_CHECK(feed->entries.size() <= 50'000 && feed->poll_after_s >= 0);
  STREAMVEC_CHECK(is_utf8(feed->title) && is_utf8(feed->next));
  for (const FeedEntry& entry : feed->entries) {
    for (const std::string* field : {&entry.url, &entry.id, &entry.title, &entry.summary_html}) {
      STREAMVEC_CHECK(is_utf8(*field));
      STREAMVEC_CHECK(field->size() <= kFieldBytesMax + 4);
    }
  }
  return 0;
}
