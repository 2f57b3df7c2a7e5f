// The hand-written parts of pages: HTML pieces without any word of a story. Private to the newsroom.
#pragma once

#include <span>
#include <string_view>

namespace streamvec::newsroom::boilerplate {

inline constexpr std::string_view kSiteName = "The Loopback Herald";

// Whole elements, each ready to be put into a <body>.
extern const std::string_view kMenu, kCookieBanner, kShareBar, kNewsletter, kSidebar, kFooter;
extern const std::string_view kTablesHeader, kTablesFooter;  // of the oldest design
extern const std::string_view kHead;                         // style sheet and scripts, for the <head>
extern const std::string_view kTracking;                     // scripts for the end of the body

// Plain text.
extern const std::span<const std::string_view> kAuthors, kComments, kAdvertisements, kCaptions;

}  // namespace streamvec::newsroom::boilerplate
