// The XML kinds of feeds and sitemaps. Private to feed_document.cc.
#pragma once

#include <string_view>

#include "streamvec/source/feed_document.h"

namespace streamvec::feed {

constexpr size_t kEntriesMax = 50'000;
constexpr size_t kFieldBytesMax = size_t{1} << 20;
constexpr size_t kDepthMax = 64;

// `utf8` may be as ill-formed as repaired_xml() mends.
Result<FeedDocument> parse_feed_xml(std::string_view utf8);

}  // namespace streamvec::feed
