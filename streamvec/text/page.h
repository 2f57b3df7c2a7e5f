// A page as the rules for choosing its text see it: blocks of text in order, and the elements around them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/text/html_tags.h"
#include "streamvec/text/html_text.h"
#include "streamvec/text/page_meta.h"

namespace streamvec {

// Text that no block element interrupts: a paragraph, a list item, a heading, a cell.
struct TextBlock {
  uint32_t begin, end;  // in Page::text
  int32_t node;         // the innermost element around it
  TextMeasure measure;
};

// A block element that holds text. A parent stands before its children; the blocks of a node and of all below it are
// [first_block, end_block).
struct PageNode {
  int32_t parent;  // -1 for the root, node 0
  int32_t first_block, end_block;
  uint32_t name_hash;  // of tag, class and id: kin have the same
  Tag tag;
  uint8_t evidence;  // bits of class_words.h, from class, id, role, itemprop and the tag itself
  uint8_t inputs;    // form controls below it that a reader would fill in, at most 255
};

struct Page {
  std::string text;
  std::vector<TextBlock> blocks;
  std::vector<PageNode> nodes;
  PageMeta meta;
  std::string heading;  // the first h1
  int64_t work = 0;     // bytes and elements looked at, each time counted

  void clear();
  std::string_view text_of(const TextBlock& block) const {
    return std::string_view(text).substr(block.begin, block.end - block.begin);
  }
};

}  // namespace streamvec
