// Which blocks of a page are its article.
//
// 1. Elements are set aside that their tag, role or names tell apart from the text (nav, footer, comments, share bars),
//    or that are mostly links, unless nearly all of the page's prose is in there.
// 2. Each paragraph of prose votes for the elements around it, the near ones more; names, and how little of an
//    element's text is in links, weigh in. The element with most votes holds the article, together with neighbours that
//    look like it. An element that says it is the body (articleBody, entry-content) and holds most of the prose wins.
// 3. In there, blocks stay but for link lists, stock phrases, headings with nothing under them, and short lines before
//    the first and after the last paragraph.
// 4. Should little come out, it is tried again with less set aside: pages whose article is in a form, in comments (a
//    forum), or in an element with an unlucky name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "streamvec/text/page.h"

namespace streamvec {

// Not thread-safe; holds scratch between pages. Time is linear in the page.
class ContentChooser {
 public:
  // Replaces `kept` by the rising indexes of the article's blocks. `title` is left out where it stands above the text.
  void choose(const Page& page, std::string_view title, std::vector<int32_t>& kept);

  // Nodes and blocks looked at in the last call.
  int64_t work() const { return work_; }

 private:
  struct Sums {
    int32_t length = 0, link_length = 0, prose = 0;
    int32_t body = 0;  // prose in elements that call themselves the body
    int32_t blocks = 0, inputs = 0;
    double score = 0;
  };
  // How much is set aside: by names and structure, without comments, by tags alone.
  enum class Level { kStrict, kComments, kTags };

  int32_t choose_at(Level level, std::string_view title, std::vector<int32_t>& kept);
  void add_up();
  void set_aside(Level level);
  bool is_aside(int32_t node, Level level) const;
  bool is_aside_by_shape(const PageNode& node, const Sums& sums) const;
  void vote();
  int32_t container_of(const TextBlock& block) const;
  int32_t best_node() const;
  int32_t climb(int32_t best) const;
  int32_t climb_by_prose(int32_t best) const;
  void collect(int32_t best, std::string_view title, std::vector<int32_t>& kept);
  bool take_bodies(int32_t best);
  void take_siblings(int32_t best);
  bool is_listed(const TextBlock& block) const;
  bool keeps(const TextBlock& block) const;
  void take_lead(std::vector<int32_t>& kept) const;
  void trim(std::string_view title, std::vector<int32_t>& kept) const;

  const PageNode& node(int32_t index) const { return page_->nodes[static_cast<size_t>(index)]; }
  Tag node_tag(int32_t block) const { return node(page_->blocks[static_cast<size_t>(block)].node).tag; }
  Sums& sums(int32_t index) { return sums_[static_cast<size_t>(index)]; }
  const Sums& sums(int32_t index) const { return sums_[static_cast<size_t>(index)]; }

  const Page* page_ = nullptr;
  std::vector<Sums> sums_, inside_;  // of all text; of what is not set aside
  std::vector<uint8_t> aside_;       // by node
  std::vector<int32_t> children_;    // by node: how many
  std::vector<uint8_t> chosen_;      // by node: is the article, or stands beside it and belongs to it
  int64_t work_ = 0;
};

}  // namespace streamvec
