// The names of elements in feeds and sitemaps, and what they hold. Private to feed_xml.cc.
#pragma once

#include <string_view>

namespace streamvec::feed {

// The vocabularies of names that matter; kPlain is RSS in all its kinds and sitemaps.
enum class Space { kPlain, kAtom, kContent, kDublinCore, kSyndication, kNews, kXml, kOther };

Space space_of_uri(std::string_view uri);
// What a prefix that is not declared stands for.
Space space_of_prefix(std::string_view prefix);

enum class Field { kNone, kTitle, kLink, kId, kSummary, kPublished, kChanged, kTtl, kPeriod, kFrequency };

// kNone for an element that is not looked at.
Field entry_field_of(Space space, std::string_view name);
Field feed_field_of(Space space, std::string_view name);

}  // namespace streamvec::feed
