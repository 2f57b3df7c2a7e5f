#include "streamvec/text/html_tags.h"

#include <array>
#include <cstddef>

namespace streamvec {
namespace {

using namespace tag_flag;

struct Row {
  std::string_view name;
  uint8_t flags;
};

constexpr Row kRows[] = {
    {"", 0},
    {"", kBlock},
    {"a", kInline},
    {"address", kBlock},
    {"article", kBlock},
    {"aside", kBlock},
    {"audio", kInline | kSkip},
    {"blockquote", kBlock},
    {"body", kBlock},
    {"br", 0},
    {"button", kInline | kSkip},
    {"canvas", kInline | kSkip},
    {"caption", kBlock},
    {"center", kBlock},
    {"datalist", kInline | kSkip},
    {"dd", kBlock},
    {"details", kBlock},
    {"dialog", kBlock},
    {"div", kBlock},
    {"dl", kBlock},
    {"dt", kBlock},
    {"fieldset", kBlock},
    {"figcaption", kBlock},
    {"figure", kBlock},
    {"footer", kBlock},
    {"form", kBlock},
    {"h1", kBlock},
    {"h2", kBlock},
    {"h3", kBlock},
    {"h4", kBlock},
    {"h5", kBlock},
    {"h6", kBlock},
    {"header", kBlock},
    {"hgroup", kBlock},
    {"hr", 0},
    {"html", kBlock},
    {"iframe", kRaw},
    {"input", 0},
    {"label", kInline},
    {"legend", kBlock},
    {"li", kBlock},
    {"link", 0},
    {"main", kBlock},
    {"math", kRaw},
    {"menu", kBlock},
    {"meta", 0},
    {"nav", kBlock},
    {"noembed", kRaw},
    {"noframes", kRaw},
    {"noscript", kRaw},
    {"object", kInline | kSkip},
    {"ol", kBlock},
    {"optgroup", kBlock},
    {"option", kBlock},
    {"p", kBlock},
    {"pre", kBlock},
    {"rp", kInline | kSkip},
    {"rt", kInline | kSkip},
    {"script", kRaw | kStrict},
    {"search", kBlock},
    {"section", kBlock},
    {"select", kInline | kSkip},
    {"span", kInline},
    {"style", kRaw | kStrict},
    {"summary", kBlock},
    {"sup", kInline},
    {"svg", kRaw},
    {"table", kBlock},
    {"td", kBlock},
    {"template", kRaw},
    {"textarea", kRaw | kStrict},
    {"th", kBlock},
    {"time", kInline},
    {"title", kRaw},
    {"tr", kBlock},
    {"ul", kBlock},
    {"video", kInline | kSkip},
    {"xmp", kRaw},
};
static_assert(std::size(kRows) == kTagCount);

constexpr size_t kTagMax = 10;
constexpr size_t kSlots = 512;

constexpr uint32_t hash_name(std::string_view name) {
  uint32_t hash = static_cast<uint32_t>(name.size()) * 0x9E3779B1u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c | 0x20)) * 0x01000193u;
  return (hash ^ (hash >> 15)) % kSlots;
}

// Open addressing: a slot holds a tag, or 0 (kOther) when it is free.
constexpr std::array<uint8_t, kSlots> make_slots() {
  std::array<uint8_t, kSlots> slots = {};
  for (size_t i = 2; i < std::size(kRows); ++i) {
    uint32_t slot = hash_name(kRows[i].name);
    while (slots[slot] != 0) slot = (slot + 1) % kSlots;
    slots[slot] = static_cast<uint8_t>(i);
  }
  return slots;
}
constexpr std::array<uint8_t, kSlots> kTagSlots = make_slots();

// `name` in any case against a lower-case one of the same length; digits have the bit 0x20 already.
bool equals(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (size_t i = 0; i < name.size(); ++i)
    if ((name[i] | 0x20) != lower[i]) return false;
  return true;
}

}  // namespace

Tag find_tag(std::string_view name) {
  if (name.size() <= kTagMax) {
    for (uint32_t slot = hash_name(name); kTagSlots[slot] != 0; slot = (slot + 1) % kSlots)
      if (equals(name, kRows[kTagSlots[slot]].name)) return static_cast<Tag>(kTagSlots[slot]);
  }
  return name.find('-') != name.npos ? Tag::kCustom : Tag::kOther;
}

std::string_view tag_name(Tag tag) {
  return kRows[static_cast<size_t>(tag)].name;
}

uint8_t tag_flags(Tag tag) {
  return kRows[static_cast<size_t>(tag)].flags;
}

}  // namespace streamvec
