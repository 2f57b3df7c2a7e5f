#include "streamvec/text/page_reader.h"

#include <algorithm>

#include "streamvec/text/class_words.h"

namespace streamvec {
namespace {

using namespace evidence;

bool equals_lower(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b;
         });
}

bool is_hidden(const HtmlToken& token) {
  if (token.has(Attribute::kHidden) && !equals_lower(token.value(Attribute::kHidden), "until-found")) return true;
  const std::string_view style = token.value(Attribute::kStyle);
  if (style.size() < 11) return false;
  for (const std::string_view rule : {"display:none", "display: none", "visibility:hidden", "visibility: hidden"})
    if (style.find(rule) != style.npos) return true;
  return false;
}

uint8_t role_evidence(std::string_view role) {
  for (const std::string_view junk : {"navigation", "banner", "contentinfo", "complementary", "search", "menu",
                                      "menubar", "dialog", "alertdialog", "alert", "toolbar", "tablist", "tooltip"})
    if (equals_lower(role, junk)) return kJunk;
  return equals_lower(role, "main") || equals_lower(role, "article") ? kRich : 0;
}

uint8_t tag_evidence(Tag tag) {
  switch (tag) {
    case Tag::kNav:
    case Tag::kFooter:
    case Tag::kAside:
    case Tag::kDialog:
    case Tag::kMenu:
    case Tag::kSearch:
    case Tag::kFigcaption:
    case Tag::kOption:
    case Tag::kOptgroup:
      return kJunk;
    case Tag::kHeader:
      return kPoor;
    case Tag::kArticle:
    case Tag::kMain:
      return kRich;
    default:
      return 0;
  }
}

// What the element's tag, names and roles say. The outermost elements wear classes that describe the whole page.
uint8_t evidence_of(const HtmlToken& token) {
  uint8_t found = token.tag == Tag::kCustom ? class_evidence(token.name) : tag_evidence(token.tag);
  if (token.present == 0) return found;
  uint8_t named = 0;
  if (token.has(Attribute::kClass)) named |= class_evidence(token.value(Attribute::kClass));
  if (token.has(Attribute::kId)) named |= class_evidence(token.value(Attribute::kId));
  if (token.has(Attribute::kRole)) named |= role_evidence(token.value(Attribute::kRole));
  if (token.has(Attribute::kItemprop)) {
    const std::string_view item = token.value(Attribute::kItemprop);
    if (equals_lower(item, "articlebody") || equals_lower(item, "reviewbody")) named |= kBody;
    if (equals_lower(item, "comment")) named |= kComments;
  }
  if (equals_lower(token.value(Attribute::kAriaHidden), "true")) named |= kHidden;
  const bool whole =
      token.tag == Tag::kBody || token.tag == Tag::kHtml || token.tag == Tag::kMain || token.tag == Tag::kArticle;
  if (whole) named &= kRich | kBody | (token.tag == Tag::kArticle ? kComments : 0);
  if (is_hidden(token) && token.tag != Tag::kBody && token.tag != Tag::kHtml) named |= kHidden;
  return found | named;
}

uint32_t hash_bytes(std::string_view text, uint32_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193u;
  return hash;
}

bool matters_for_meta(const HtmlToken& token) {
  switch (token.tag) {
    case Tag::kHtml:
    case Tag::kMeta:
    case Tag::kLink:
    case Tag::kTime:
    case Tag::kTitle:
    case Tag::kScript:
      return true;
    default:
      return token.has(Attribute::kItemprop);
  }
}

// Links within the page are part of its text: contents, footnotes, anchors of headings.
bool leads_away(const HtmlToken& token) {
  const std::string_view href = token.value(Attribute::kHref);
  return !href.empty() && href.front() != '#';
}

bool is_form_control(const HtmlToken& token) {
  if (token.tag == Tag::kTextarea || token.tag == Tag::kSelect) return true;
  return token.tag == Tag::kInput && !equals_lower(token.value(Attribute::kType), "hidden");
}

}  // namespace

void Page::clear() {
  text.clear();
  blocks.clear();
  nodes.clear();
  meta.clear();
  heading.clear();
  work = 0;
}

size_t PageReader::chain(Tag tag) {
  if (is_heading(tag)) return static_cast<size_t>(Tag::kH1);
  if (tag == Tag::kTh) return static_cast<size_t>(Tag::kTd);
  if (tag == Tag::kDt) return static_cast<size_t>(Tag::kDd);
  if (tag == Tag::kOl || tag == Tag::kMenu) return static_cast<size_t>(Tag::kUl);
  return static_cast<size_t>(tag);
}

void PageReader::read(std::string_view html, Page& page) {
  page.clear();
  page_ = &page;
  open_.clear();
  top_.fill(-1);
  too_deep_.fill(0);
  top_block_ = skip_from_ = -1;
  links_ = breaks_ = 0;
  page.nodes.push_back({-1, 0, 0, 0, Tag::kHtml, 0, 0});
  flow_.start(page.text);
  HtmlScanner scanner(html);
  HtmlToken token;
  for (scanner.next(token); token.kind != HtmlToken::Kind::kDone; scanner.next(token)) {
    if (static_cast<int32_t>(page.blocks.size()) >= kBlocksMax) break;
    if (token.kind == HtmlToken::Kind::kText)
      on_text(token);
    else if (token.kind == HtmlToken::Kind::kStart)
      on_start(token);
    else
      on_end(token);
  }
  flush_block();
  pop_to(0);
  page.nodes[0].end_block = static_cast<int32_t>(page.blocks.size());
  page.work += scanner.work();
}

void PageReader::on_text(const HtmlToken& token) {
  if (skip_from_ >= 0) return;
  const bool preformatted = top(Tag::kPre) >= 0;
  flow_.append(token.text, preformatted, links_ > 0);
  if (breaks_ != 0 && token.text.find_first_not_of(" \t\r\n\f\v") != token.text.npos) breaks_ = 0;
}

// One <br> is white space (a line end inside <pre>), two end the block.
void PageReader::on_break() {
  if (skip_from_ >= 0) return;
  if (top(Tag::kPre) >= 0) return flow_.append("\n", true, false);
  flow_.append_break();
  if (++breaks_ == 2) flush_block();
}

void PageReader::on_start(const HtmlToken& token) {
  if (matters_for_meta(token)) page_->meta.add(token);
  if (is_form_control(token) && top_block_ >= 0) {
    uint8_t& inputs = page_->nodes[static_cast<size_t>(node_of(top_block_))].inputs;
    if (inputs < 255) ++inputs;
  }
  if (token.tag == Tag::kBr) return on_break();
  if (token.tag == Tag::kHr) return flush_block();
  const uint8_t flags = tag_flags(token.tag);
  if ((flags & tag_flag::kBlock) != 0) {
    if (token.tag == Tag::kCustom && top(Tag::kP) >= 0 && top(Tag::kP) > top(Tag::kTable)) return;
    flush_block();
    close_implied(token.tag);
  } else if ((flags & tag_flag::kInline) == 0) {
    return;
  }
  if (token.tag == Tag::kA) close(chain(Tag::kA), top(Tag::kTd));
  push(token);
}

// What a block element ends by starting. A cell or a table shields what is open outside it.
void PageReader::close_implied(Tag tag) {
  const int32_t shield = std::max(top(Tag::kTable), top(Tag::kTd));
  close(chain(Tag::kP), shield);
  switch (tag) {
    case Tag::kLi:
      close(chain(Tag::kLi), std::max(shield, top(Tag::kUl)));
      break;
    case Tag::kDt:
    case Tag::kDd:
      close(chain(Tag::kDd), std::max(shield, top(Tag::kDl)));
      break;
    case Tag::kTr:
      close(chain(Tag::kTr), top(Tag::kTable));
      break;
    case Tag::kTd:
    case Tag::kTh:
      close(chain(Tag::kTd), top(Tag::kTable));
      break;
    default:
      if (is_heading(tag) && top_block_ >= 0 && top(Tag::kH1) == top_block_) close(chain(Tag::kH1), shield);
  }
}

// Closes the innermost open element of a chain, and all inside it, unless it is not above `barrier`.
bool PageReader::close(size_t which, int32_t barrier) {
  const int32_t at = top_[which];
  if (at < 0 || at <= barrier) return false;
  pop_to(at);
  return true;
}

void PageReader::push(const HtmlToken& token) {
  const size_t which = chain(token.tag);
  if (depth() >= kDepthMax) {
    ++too_deep_[which];
    return;
  }
  const bool block = has_flag(token.tag, tag_flag::kBlock);
  Open open{token.tag, 0, false, false, -1, top_[which], top_block_, 0};
  if (block || token.present != 0) open.evidence = evidence_of(token);
  const bool inline_junk = !block && token.tag != Tag::kA && (open.evidence & (kJunk | kComments)) != 0;
  const bool reference =
      token.tag == Tag::kSup && token.value(Attribute::kClass).find("reference") != std::string_view::npos;
  open.skips = has_flag(token.tag, tag_flag::kSkip) || (open.evidence & kHidden) != 0 || inline_junk || reference;
  if (block)
    open.name_hash = hash_bytes(token.value(Attribute::kClass), static_cast<uint32_t>(token.tag) * 0x9E3779B1u);
  top_[which] = depth();
  if (block) top_block_ = depth();
  if (open.skips && skip_from_ < 0) skip_from_ = depth();
  open.links = token.tag == Tag::kA && leads_away(token);
  links_ += open.links;
  open_.push_back(open);
}

void PageReader::pop() {
  const Open& open = open_.back();
  const int32_t at = depth() - 1;
  top_[chain(open.tag)] = open.same_below;
  if (top_block_ == at) top_block_ = open.block_below;
  if (skip_from_ == at) skip_from_ = -1;
  links_ -= open.links;
  if (open.node >= 0)
    page_->nodes[static_cast<size_t>(open.node)].end_block = static_cast<int32_t>(page_->blocks.size());
  open_.pop_back();
  ++page_->work;
}

void PageReader::pop_to(int32_t to) {
  if (top_block_ >= to) flush_block();
  while (depth() > to) pop();
}

void PageReader::on_end(const HtmlToken& token) {
  if (token.tag == Tag::kBr) return on_break();
  const uint8_t flags = tag_flags(token.tag);
  if ((flags & (tag_flag::kBlock | tag_flag::kInline)) == 0 || token.tag == Tag::kBody || token.tag == Tag::kHtml)
    return;
  const size_t which = chain(token.tag);
  if (too_deep_[which] > 0) {
    --too_deep_[which];
    if ((flags & tag_flag::kBlock) != 0) flush_block();
    return;
  }
  int32_t barrier = -1;
  if ((flags & tag_flag::kBlock) == 0)
    barrier = token.tag == Tag::kA || (flags & tag_flag::kSkip) != 0 ? top(Tag::kTd) : top_block_;
  else if (token.tag == Tag::kTd || token.tag == Tag::kTh || token.tag == Tag::kTr)
    barrier = top(Tag::kTable);
  else if (token.tag == Tag::kLi)
    barrier = std::max(top(Tag::kTable), top(Tag::kUl));
  else if (token.tag != Tag::kTable)
    barrier = std::max(top(Tag::kTable), top(Tag::kTd));
  if ((flags & tag_flag::kBlock) != 0) flush_block();
  close(which, barrier);
}

// The node of the block element open at `at`, made with those around it when it has none yet. At most kDepthMax calls
// deep, and each element gets its node once.
int32_t PageReader::node_of(int32_t at) {
  if (at < 0) return 0;
  Open& open = open_[static_cast<size_t>(at)];
  if (open.node >= 0) return open.node;
  const int32_t parent = node_of(open.block_below);
  const auto first_block = static_cast<int32_t>(page_->blocks.size());
  open.node = static_cast<int32_t>(page_->nodes.size());
  page_->nodes.push_back({parent, first_block, first_block, open.name_hash, open.tag, open.evidence, 0});
  return open.node;
}

void PageReader::flush_block() {
  breaks_ = 0;
  if (flow_.empty() || flow_.measure().length == 0) {
    page_->text.resize(flow_.begin());
    flow_.start(page_->text);
    return;
  }
  const int32_t node = node_of(top_block_);
  page_->blocks.push_back(
      {static_cast<uint32_t>(flow_.begin()), static_cast<uint32_t>(page_->text.size()), node, flow_.measure()});
  if (page_->heading.empty() && page_->nodes[static_cast<size_t>(node)].tag == Tag::kH1)
    page_->heading = page_->text_of(page_->blocks.back());
  flow_.start(page_->text);
}

}  // namespace streamvec
