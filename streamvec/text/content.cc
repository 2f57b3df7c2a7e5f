#include "streamvec/text/content.h"

#include <algorithm>
#include <cstddef>

#include "streamvec/text/block_rules.h"
#include "streamvec/text/class_words.h"
#include "streamvec/text/title_text.h"

namespace streamvec {
namespace {

using namespace evidence;

constexpr int32_t kLittle = 250;   // letters: with less than this the page is tried again
constexpr int kVoteLevels = 5;     // elements around a paragraph that it votes for
constexpr double kNearTop = 0.75;  // of the best score: a rival
constexpr size_t kRivalsMax = 5;
constexpr int32_t kLeadBlocksMax = 12;  // between a page's heading and its text
constexpr double kProseShare = 0.6;     // of what is around the best element: part of the article
constexpr double kMuchMore = 0.5;       // of the best element's prose
constexpr double kSiblingShare = 0.2;   // of the best score: a neighbour that belongs to the article

double link_share(int32_t link_length, int32_t length) {
  return length == 0 ? 0 : static_cast<double>(link_length) / length;
}

double tag_weight(Tag tag) {
  switch (tag) {
    case Tag::kArticle:
    case Tag::kMain:
      return 10;
    case Tag::kDiv:
    case Tag::kSection:
      return 5;
    case Tag::kPre:
    case Tag::kTd:
    case Tag::kBlockquote:
      return 3;
    case Tag::kAddress:
    case Tag::kOl:
    case Tag::kUl:
    case Tag::kDl:
    case Tag::kDd:
    case Tag::kDt:
    case Tag::kLi:
    case Tag::kForm:
      return -3;
    case Tag::kTh:
    case Tag::kHeader:
      return -5;
    default:
      return 0;
  }
}

double name_weight(uint8_t found) {
  double weight = 0;
  if ((found & kBody) != 0) weight += 40;
  if ((found & kRich) != 0) weight += 20;
  if ((found & kPoor) != 0 && (found & (kRich | kBody)) == 0) weight -= 15;
  if ((found & (kJunk | kComments)) != 0) weight -= 25;
  return weight;
}

bool is_junk_tag(Tag tag) {
  return tag == Tag::kNav || tag == Tag::kFooter || tag == Tag::kMenu || tag == Tag::kOption || tag == Tag::kOptgroup ||
         tag == Tag::kFigcaption || tag == Tag::kDialog || tag == Tag::kSearch;
}

// Some sites give each paragraph such a name; what counts is an element around several.
bool holds_body(const PageNode& element) {
  return (element.evidence & kBody) != 0 && element.tag != Tag::kP && !is_heading(element.tag) &&
         element.tag != Tag::kLi;
}

// Elements that may well be short: a name like "header" or "list" says nothing against them.
bool keeps_short(Tag tag) {
  return tag == Tag::kHeader || tag == Tag::kTable || tag == Tag::kTr || tag == Tag::kUl || tag == Tag::kOl ||
         tag == Tag::kDl || tag == Tag::kPre || tag == Tag::kBlockquote;
}

bool is_list(Tag tag) {
  return tag == Tag::kUl || tag == Tag::kOl || tag == Tag::kDl;
}

}  // namespace

void ContentChooser::choose(const Page& page, std::string_view title, std::vector<int32_t>& kept) {
  page_ = &page;
  work_ = 0;
  add_up();
  int32_t most = choose_at(Level::kStrict, title, kept);
  std::vector<int32_t> again;
  for (const Level level : {Level::kComments, Level::kTags}) {
    if (most >= kLittle) return;
    const int32_t found = choose_at(level, title, again);
    if (found <= 2 * most) continue;
    most = found;
    kept.swap(again);
  }
}

int32_t ContentChooser::choose_at(Level level, std::string_view title, std::vector<int32_t>& kept) {
  kept.clear();
  set_aside(level);
  vote();
  const int32_t voted = best_node();
  collect(voted < 0 ? 0 : climb(voted), title, kept);
  int32_t prose = 0;
  for (const int32_t index : kept) prose += page_->blocks[static_cast<size_t>(index)].measure.length;
  return prose;
}

// Sums over each node and all below it. Children stand behind their parents, so one pass from the back does it.
void ContentChooser::add_up() {
  sums_.assign(page_->nodes.size(), {});
  children_.assign(page_->nodes.size(), 0);
  for (const TextBlock& block : page_->blocks) {
    Sums& own = sums(block.node);
    own.length += block.measure.length;
    own.link_length += block.measure.link_length;
    ++own.blocks;
    if (is_prose(block.measure) && !is_heading(node(block.node).tag)) own.prose += block.measure.length;
  }
  for (size_t i = page_->nodes.size(); i-- > 1;) {
    const Sums& own = sums_[i];
    Sums& above = sums(page_->nodes[i].parent);
    above.length += own.length;
    above.link_length += own.link_length;
    above.prose += own.prose;
    above.blocks += own.blocks;
    sums_[i].inputs += page_->nodes[i].inputs;
    above.inputs += sums_[i].inputs;
    above.body += holds_body(page_->nodes[i]) ? own.prose : own.body;
    ++children_[static_cast<size_t>(page_->nodes[i].parent)];
  }
  work_ += static_cast<int64_t>(page_->nodes.size() + page_->blocks.size());
}

void ContentChooser::set_aside(Level level) {
  aside_.assign(page_->nodes.size(), 0);
  for (size_t i = 1; i < page_->nodes.size(); ++i) {
    const auto parent = static_cast<size_t>(page_->nodes[i].parent);
    aside_[i] = aside_[parent] != 0 || is_aside(static_cast<int32_t>(i), level);
  }
  work_ += static_cast<int64_t>(page_->nodes.size());
}

bool ContentChooser::is_aside(int32_t index, Level level) const {
  const PageNode& element = node(index);
  const Sums& own = sums(index);
  const int64_t prose = own.prose, rest = sums(0).prose - own.prose;
  const bool most = prose > 9 * rest || (rest < 600 && prose * 3 > rest * 7);
  if (is_junk_tag(element.tag)) return !most;
  if (level == Level::kTags || (element.evidence & kBody) != 0) return false;
  if ((element.evidence & kComments) != 0 && level == Level::kStrict) return true;
  if (most) return false;
  if ((element.evidence & kJunk) != 0) return own.body * int64_t{4} < sums(0).prose;
  if (is_heading(element.tag)) return false;
  const double links = link_share(own.link_length, own.length);
  const bool poor = (element.evidence & kPoor) != 0 && (element.evidence & kRich) == 0;
  if (poor && links > 0.2 && own.prose * int64_t{4} < sums(0).prose) return true;
  if (poor && own.length < 120 && !keeps_short(element.tag)) return true;
  return is_aside_by_shape(element, own);
}

// Forms to fill in, and what is mostly links.
bool ContentChooser::is_aside_by_shape(const PageNode& element, const Sums& own) const {
  const double links = link_share(own.link_length, own.length);
  if ((element.tag == Tag::kForm || element.tag == Tag::kFieldset) && own.inputs > 0) return true;
  if (is_list(element.tag)) return links > 0.5;
  return own.blocks >= 3 && links > 0.5 && own.prose * int64_t{4} < sums(0).prose;
}

// Where a block's vote goes first: the element that holds paragraphs like it.
int32_t ContentChooser::container_of(const TextBlock& block) const {
  const PageNode& element = node(block.node);
  const bool leaf = element.tag == Tag::kP || element.tag == Tag::kPre ||
                    (children_[static_cast<size_t>(block.node)] == 0 && element.first_block + 1 == element.end_block);
  return leaf && element.parent >= 0 ? element.parent : block.node;
}

void ContentChooser::vote() {
  inside_.assign(page_->nodes.size(), {});
  for (const TextBlock& block : page_->blocks) {
    if (aside_[static_cast<size_t>(block.node)] != 0) continue;
    Sums& own = inside_[static_cast<size_t>(block.node)];
    own.length += block.measure.length;
    own.link_length += block.measure.link_length;
    if (!is_prose(block.measure) || is_heading(node(block.node).tag)) continue;
    own.prose += block.measure.length;
    const double vote = 1 + std::min(block.measure.commas, 10) + std::min(block.measure.length / 80, 4);
    int32_t at = container_of(block);
    for (int level = 0; level < kVoteLevels && at >= 0; ++level, at = node(at).parent)
      inside_[static_cast<size_t>(at)].score += level == 0 ? vote : level == 1 ? vote / 2 : vote / (3 * level);
  }
  for (size_t i = page_->nodes.size(); i-- > 1;) {
    Sums& above = inside_[static_cast<size_t>(page_->nodes[i].parent)];
    above.length += inside_[i].length;
    above.link_length += inside_[i].link_length;
    above.prose += inside_[i].prose;
  }
  for (size_t i = 0; i < page_->nodes.size(); ++i) {
    Sums& own = inside_[i];
    if (own.score <= 0) continue;
    const double names = i == 0 ? 0 : tag_weight(page_->nodes[i].tag) + name_weight(page_->nodes[i].evidence);
    own.score = std::max(0.01, own.score + names) * (1 - link_share(own.link_length, own.length));
  }
  work_ += 3 * static_cast<int64_t>(page_->nodes.size()) + kVoteLevels * static_cast<int64_t>(page_->blocks.size());
}

int32_t ContentChooser::best_node() const {
  int32_t best = -1;
  for (size_t i = 0; i < inside_.size(); ++i)
    if (inside_[i].score > 0 && (best < 0 || inside_[i].score > inside_[static_cast<size_t>(best)].score))
      best = static_cast<int32_t>(i);
  return best;
}

// The article may be spread over several elements: then what is around them all is it.
int32_t ContentChooser::climb(int32_t best) const {
  const auto score = [&](int32_t index) { return inside_[static_cast<size_t>(index)].score; };
  const double top = score(best);
  std::vector<int32_t> rivals;
  for (size_t i = 0; i < inside_.size() && rivals.size() < kRivalsMax; ++i)
    if (static_cast<int32_t>(i) != best && inside_[i].score >= kNearTop * top)
      rivals.push_back(static_cast<int32_t>(i));
  for (int32_t at = node(best).parent; at >= 0 && rivals.size() >= 2; at = node(at).parent) {
    const PageNode& around = node(at);
    const auto within = std::count_if(rivals.begin(), rivals.end(), [&](int32_t rival) {
      return rival > at && node(rival).first_block >= around.first_block && node(rival).end_block <= around.end_block;
    });
    if (within >= 2) {
      best = at;
      break;
    }
  }
  double last = score(best);
  const double least = last / 3;
  for (int32_t at = node(best).parent; at > 0 && score(at) >= least; at = node(at).parent) {
    if (score(at) > last) {
      best = at;
      break;
    }
    last = score(at);
  }
  best = climb_by_prose(best);
  while (node(best).parent > 0 && children_[static_cast<size_t>(node(best).parent)] == 1 &&
         inside_[static_cast<size_t>(node(best).parent)].length == inside_[static_cast<size_t>(best)].length &&
         node(node(best).parent).tag != Tag::kBody)
    best = node(best).parent;
  return best;
}

// Chapters of a manual, days of a live page, posts of a thread: what an element has around the best one is prose too.
// Inside an <article> or <main> a little of it is enough to go there, outside there has to be about as much again.
int32_t ContentChooser::climb_by_prose(int32_t best) const {
  int32_t bound = best;
  for (int32_t at = best; at > 0; at = node(at).parent)
    if (node(at).tag == Tag::kArticle || (node(at).tag == Tag::kMain && node(bound).tag != Tag::kArticle)) bound = at;
  for (int32_t at = node(best).parent; at > 0; at = node(at).parent) {
    const Sums &inner = inside_[static_cast<size_t>(best)], &outer = inside_[static_cast<size_t>(at)];
    const int32_t length = outer.length - inner.length, prose = outer.prose - inner.prose;
    const double links = link_share(outer.link_length - inner.link_length, length);
    const double enough = (at >= bound ? 0.05 : kMuchMore) * inner.prose;
    if (prose >= enough && prose >= kProseShare * length && links < 0.2) best = at;
  }
  return best;
}

// Elements that call themselves the body, when together they hold most of what `best` has. True when they were chosen.
bool ContentChooser::take_bodies(int32_t best) {
  const auto within = [&](size_t i) {
    return page_->nodes[i].first_block >= node(best).first_block && page_->nodes[i].end_block <= node(best).end_block;
  };
  int64_t prose = 0;
  for (size_t i = 1; i < page_->nodes.size(); ++i) {
    chosen_[i] = chosen_[static_cast<size_t>(page_->nodes[i].parent)];
    if (chosen_[i] != 0 || !holds_body(page_->nodes[i]) || aside_[i] != 0 || !within(i)) continue;
    chosen_[i] = 1;
    prose += inside_[i].prose;
  }
  if (prose * 10 >= inside_[static_cast<size_t>(best)].prose * int64_t{7} && prose > 0) return true;
  chosen_.assign(page_->nodes.size(), 0);
  return false;
}

void ContentChooser::take_siblings(int32_t best) {
  chosen_.assign(page_->nodes.size(), 0);
  if (take_bodies(best)) return;
  chosen_[static_cast<size_t>(best)] = 1;
  if (best == 0) return;
  const double top = inside_[static_cast<size_t>(best)].score;
  const double least = std::max(10.0, top * kSiblingShare);
  for (size_t i = static_cast<size_t>(node(best).parent) + 1; i < page_->nodes.size(); ++i) {
    const PageNode& element = page_->nodes[i];
    if (element.parent != node(best).parent || aside_[i] != 0) continue;
    const bool kin = element.name_hash == node(best).name_hash;
    const double score = inside_[i].score + (kin ? top * kSiblingShare : 0);
    const bool paragraph = element.tag == Tag::kP && inside_[i].prose > 0;
    if (score >= least || paragraph) chosen_[i] = 1;
  }
}

// An entry of a list or table that is not mostly links.
bool ContentChooser::is_listed(const TextBlock& block) const {
  int32_t at = block.node;
  for (int level = 0; level < 4 && at > 0; ++level, at = node(at).parent) {
    if (!is_list(node(at).tag) && node(at).tag != Tag::kTable) continue;
    return sums(at).blocks > 2 && link_share(sums(at).link_length, sums(at).length) <= 0.5;
  }
  return false;
}

bool ContentChooser::keeps(const TextBlock& block) const {
  if (aside_[static_cast<size_t>(block.node)] != 0) return false;
  if (is_link_heavy(block.measure) && !is_heading(node(block.node).tag) && !is_listed(block)) return false;
  const std::string_view text = page_->text_of(block);
  if (is_bare_number(text) && !is_listed(block)) return false;
  return !is_stock_phrase(text, block.measure);
}

// Sentences between the page's heading and the text, in a box of their own: what newspapers print in bold.
void ContentChooser::take_lead(std::vector<int32_t>& kept) const {
  if (kept.empty()) return;
  const int32_t first = kept.front();
  int32_t heading = first;
  while (heading >= 0 && heading > first - kLeadBlocksMax && node_tag(heading) != Tag::kH1) --heading;
  if (heading < 0 || node_tag(heading) != Tag::kH1) return;
  std::vector<int32_t> lead;
  for (int32_t i = heading + 1; i < first; ++i) {
    const TextBlock& block = page_->blocks[static_cast<size_t>(i)];
    const TextMeasure& measure = block.measure;
    const bool sentence = measure.length >= 40 && measure.stops > 0 && measure.link_length * 5 < measure.length;
    if (sentence && keeps(block)) lead.push_back(i);
  }
  kept.insert(kept.begin(), lead.begin(), lead.end());
}

void ContentChooser::collect(int32_t best, std::string_view title, std::vector<int32_t>& kept) {
  take_siblings(best);
  for (size_t i = 1; i < page_->nodes.size(); ++i) chosen_[i] |= chosen_[static_cast<size_t>(page_->nodes[i].parent)];
  for (size_t i = 0; i < page_->blocks.size(); ++i) {
    const TextBlock& block = page_->blocks[i];
    if (chosen_[static_cast<size_t>(block.node)] != 0 && keeps(block)) kept.push_back(static_cast<int32_t>(i));
  }
  work_ += 2 * static_cast<int64_t>(page_->nodes.size() + page_->blocks.size());
  trim(title, kept);
  take_lead(kept);
}

// Takes out headings with nothing under them, the title, and short lines outside the first and last paragraph.
void ContentChooser::trim(std::string_view title, std::vector<int32_t>& kept) const {
  const auto block_at = [&](size_t i) -> const TextBlock& { return page_->blocks[static_cast<size_t>(kept[i])]; };
  const auto tag_at = [&](size_t i) { return node(block_at(i).node).tag; };
  size_t first = 0, last = kept.size();
  while (first < kept.size() && (is_heading(tag_at(first)) || !is_prose(block_at(first).measure))) ++first;
  while (last > first && (is_heading(tag_at(last - 1)) || !is_prose(block_at(last - 1).measure))) --last;
  if (first == kept.size()) first = last = 0;  // no prose to stand before or behind
  std::vector<int32_t> out;
  Tag pending = Tag::kOther;  // the level of the headings that wait for text, going backwards: text seen below
  bool text_below = false;
  for (size_t i = kept.size(); i-- > 0;) {
    const TextBlock& block = block_at(i);
    const Tag tag = tag_at(i);
    if (is_heading(tag)) {
      const bool filled = text_below || (pending != Tag::kOther && pending > tag);
      if (!filled || (i < first && (tag == Tag::kH1 || same_words(page_->text_of(block), title)))) continue;
      pending = tag;
      text_below = false;
    } else {
      const bool plain = tag == Tag::kP || tag == Tag::kDiv || tag == Tag::kSection || tag == Tag::kHeader ||
                         tag == Tag::kArticle || tag == Tag::kMain || tag == Tag::kCustom || tag == Tag::kCenter;
      const bool outside = i < first || (last != 0 && i >= last);
      if (outside && (plain || i < first) && block.measure.length < 40 && block.measure.stops == 0) continue;
      if (i < first && same_words(page_->text_of(block), title)) continue;
      text_below = true;
    }
    out.push_back(kept[i]);
  }
  std::reverse(out.begin(), out.end());
  kept.swap(out);
}

}  // namespace streamvec
