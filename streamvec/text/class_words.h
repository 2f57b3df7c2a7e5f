// What the class, id and role of an element say about its text: weak evidence, in the words that site builders use.
#pragma once

#include <cstdint>
#include <string_view>

namespace streamvec {

// Bits; several may hold at once.
namespace evidence {
constexpr uint8_t kHidden = 1;      // not shown: sr-only, visually-hidden
constexpr uint8_t kComments = 2;    // what readers answered
constexpr uint8_t kJunk = 4;        // menus, cookie banners, share bars, related links, newsletter boxes, advertising
constexpr uint8_t kPoor = 8;        // often junk, sometimes not: meta, tags, author, banner, caption
constexpr uint8_t kRich = 16;       // article, content, post, story
constexpr uint8_t kBody = 32;       // entry-content, article-body: the text itself
constexpr uint8_t kTitleLike = 64;  // headline, title: the page's heading
}  // namespace evidence

// Of a class or id as written: names part at white space, words in a name at hyphens, underscores and capitals. A word
// counts in the sense that its name gives it: "has-sidebar" and "no-comments" say nothing about what the element holds.
uint8_t class_evidence(std::string_view names);

}  // namespace streamvec
