#include "streamvec/source/feed_names.h"

#include <algorithm>
#include <iterator>

namespace streamvec::feed {
namespace {

struct KnownSpace {
  std::string_view begin;   // of its URI
  std::string_view prefix;  // what is meant where the prefix is not declared
  Space space;
};
constexpr KnownSpace kSpaces[] = {
    {"http://www.w3.org/2005/Atom", "atom", Space::kAtom},
    {"https://www.w3.org/2005/Atom", "atom10", Space::kAtom},
    {"http://purl.org/atom/ns#", "a10", Space::kAtom},
    {"http://purl.org/rss/1.0/modules/content", "content", Space::kContent},
    {"http://purl.org/dc/", "dc", Space::kDublinCore},
    {"http://purl.org/dc/terms", "dcterms", Space::kDublinCore},
    {"http://purl.org/rss/1.0/modules/syndication", "sy", Space::kSyndication},
    {"http://purl.org/rss/1.0/modules/", "slash", Space::kOther},
    {"http://www.google.com/schemas/sitemap-news", "news", Space::kNews},
    {"http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf", Space::kPlain},
    {"http://purl.org/rss/1.0/", "", Space::kPlain},
    {"http://my.netscape.com/rdf/simple/0.9/", "", Space::kPlain},
    {"http://backend.userland.com/rss", "", Space::kPlain},
    {"http://www.sitemaps.org/schemas/sitemap/", "", Space::kPlain},
    {"https://www.sitemaps.org/schemas/sitemap/", "", Space::kPlain},
    {"http://www.google.com/schemas/sitemap/", "", Space::kPlain},
};

struct FieldName {
  Space space;
  std::string_view name;
  Field field;
};
constexpr FieldName kEntryFields[] = {
    {Space::kPlain, "title", Field::kTitle},
    {Space::kAtom, "title", Field::kTitle},
    {Space::kDublinCore, "title", Field::kTitle},
    {Space::kNews, "title", Field::kTitle},
    {Space::kPlain, "link", Field::kLink},
    {Space::kPlain, "loc", Field::kLink},
    {Space::kPlain, "guid", Field::kId},
    {Space::kAtom, "id", Field::kId},
    {Space::kPlain, "description", Field::kSummary},
    {Space::kContent, "encoded", Field::kSummary},
    {Space::kAtom, "summary", Field::kSummary},
    {Space::kAtom, "content", Field::kSummary},
    {Space::kPlain, "pubDate", Field::kPublished},
    {Space::kDublinCore, "date", Field::kPublished},
    {Space::kDublinCore, "created", Field::kPublished},
    {Space::kDublinCore, "issued", Field::kPublished},
    {Space::kAtom, "published", Field::kPublished},
    {Space::kAtom, "issued", Field::kPublished},
    {Space::kNews, "publication_date", Field::kPublished},
    {Space::kAtom, "updated", Field::kChanged},
    {Space::kAtom, "modified", Field::kChanged},
    {Space::kDublinCore, "modified", Field::kChanged},
    {Space::kPlain, "lastmod", Field::kChanged},
};
constexpr FieldName kFeedFields[] = {
    {Space::kPlain, "title", Field::kTitle},
    {Space::kAtom, "title", Field::kTitle},
    {Space::kPlain, "ttl", Field::kTtl},
    {Space::kSyndication, "updatePeriod", Field::kPeriod},
    {Space::kSyndication, "updateFrequency", Field::kFrequency},
};

template <size_t N>
Field field_of(const FieldName (&fields)[N], Space space, std::string_view name) {
  const auto* found = std::find_if(std::begin(fields), std::end(fields),
                                   [&](const FieldName& known) { return known.space == space && known.name == name; });
  return found == std::end(fields) ? Field::kNone : found->field;
}

}  // namespace

Space space_of_uri(std::string_view uri) {
  // Modules' addresses begin with that of RSS 1.0, so the list is in order.
  for (const KnownSpace& known : kSpaces)
    if (uri.starts_with(known.begin)) return known.space;
  return Space::kOther;
}

Space space_of_prefix(std::string_view prefix) {
  if (prefix == "xml") return Space::kXml;
  for (const KnownSpace& known : kSpaces)
    if (!known.prefix.empty() && prefix == known.prefix) return known.space;
  return prefix.empty() ? Space::kPlain : Space::kOther;
}

Field entry_field_of(Space space, std::string_view name) {
  return field_of(kEntryFields, space, name);
}

Field feed_field_of(Space space, std::string_view name) {
  return field_of(kFeedFields, space, name);
}

}  // namespace streamvec::feed
