// The words that planted text is made of. Private to planted.cc.
#pragma once

#include <span>
#include <string_view>

namespace streamvec::planted {

// Space-separated lists. Each word stands in one list only.
struct ClassWords {
  std::string_view name, members, before, after;  // what stands before a member and what after it
};
struct RelationWords {
  std::string_view name;
  std::string_view pairs;                    // "france paris japan tokyo ..."
  std::string_view first_side, second_side;  // what stands around every first, every second word
};

std::span<const ClassWords> class_words();
std::span<const RelationWords> relation_words();
std::string_view function_words();  // by falling frequency

}  // namespace streamvec::planted
