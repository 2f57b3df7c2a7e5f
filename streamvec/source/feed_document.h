// What a feed or a sitemap says: RSS 0.91 to 2.0, RSS 1.0 (RDF), Atom, JSON Feed 1.x, sitemaps and their indexes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

struct FeedEntry {
  std::string url;           // as written, with xml:base in front where that is given; of a sitemap the page
  std::string id;            // guid, atom:id, rdf:about; the url where there is none
  std::string title;         // plain text: markup taken out, entities resolved
  std::string summary_html;  // the longest of content and summary, as HTML
  int64_t time_s = 0;        // published, or else changed; seconds since 1970, 0 unknown
};

struct FeedDocument {
  enum class Kind { kFeed, kSitemap, kSitemapIndex } kind = Kind::kFeed;
  std::string title;
  std::vector<FeedEntry> entries;  // in the order of the document; of an index, the sitemaps
  std::string next;                // the address of older entries (RFC 5005, JSON Feed's next_url); "" none
  double poll_after_s = 0;         // how often it wants to be asked (ttl, sy:updatePeriod); 0 unknown
};

// `bytes` as they came, `content_type` as the header said it, with its charset if it has one ("" when unknown).
// Any encoding ICU knows. Leading blanks, HTML's entities, a wrong encoding in the declaration and text after the root
// do not matter; a document that breaks later gives the entries before the break if there are any.
// Limits: 50,000 entries, 64 levels, 1 MB a field; what is beyond is left out. A document that declares entities is
// broken there, nothing outside of it is ever looked at. A list of addresses, one a line, is a sitemap too.
// kInvalidArgument: neither feed nor sitemap (an HTML page, say), or broken before its first entry's end.
// kResourceExhausted: larger than 64 MB.
Result<FeedDocument> parse_feed(std::string_view bytes, std::string_view content_type);

}  // namespace streamvec
