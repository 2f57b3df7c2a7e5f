// HTML to Page in one pass: which elements are open, where blocks of text start and end.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "streamvec/text/html_scanner.h"
#include "streamvec/text/html_text.h"
#include "streamvec/text/page.h"

namespace streamvec {

// Closes what pages leave open as browsers do (p, li, td, ...), and ignores end tags without a start. Elements nested
// deeper than kDepthMax count as if they were not there, their text stays. A page of more than kBlocksMax blocks is cut
// there. Every step is O(1) over the whole page, so time is linear. Not thread-safe; holds scratch between pages.
class PageReader {
 public:
  static constexpr int32_t kDepthMax = 1024;
  static constexpr int32_t kBlocksMax = 1 << 17;

  // Replaces what `page` holds.
  void read(std::string_view html, Page& page);

 private:
  struct Open {
    Tag tag;
    uint8_t evidence;
    bool skips;           // its text is not read
    bool links;           // a link to elsewhere
    int32_t node;         // -1 until a block is found in it
    int32_t same_below;   // the next one down of its chain, -1
    int32_t block_below;  // the next block element down, -1
    uint32_t name_hash;
  };
  // Elements that close each other share a chain: h1 to h6, td and th, dt and dd, the lists.
  static size_t chain(Tag tag);

  void on_text(const HtmlToken& token);
  void on_start(const HtmlToken& token);
  void on_end(const HtmlToken& token);
  void on_break();
  void close_implied(Tag tag);
  bool close(size_t chain, int32_t barrier);
  void push(const HtmlToken& token);
  void pop();
  void pop_to(int32_t depth);
  void flush_block();
  int32_t node_of(int32_t depth);
  int32_t top(Tag tag) const { return top_[chain(tag)]; }
  int32_t depth() const { return static_cast<int32_t>(open_.size()); }

  Page* page_ = nullptr;
  TextFlow flow_;
  std::vector<Open> open_;
  std::array<int32_t, kTagCount> top_ = {};       // the innermost open element of each chain, -1
  std::array<int32_t, kTagCount> too_deep_ = {};  // open ones of each chain that are not on the stack
  int32_t top_block_ = -1;
  int32_t skip_from_ = -1;  // the outermost open element that skips, -1
  int32_t links_ = 0;       // open ones
  int breaks_ = 0;          // <br> in a row
};

}  // namespace streamvec
