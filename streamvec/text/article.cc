#include "streamvec/text/article.h"

#include <vector>

#include "streamvec/text/content.h"
#include "streamvec/text/page.h"
#include "streamvec/text/page_reader.h"

namespace streamvec {
namespace {

constexpr int32_t kCellMax = 80;  // letters: a longer cell of a table is a paragraph of its own

// The table row around a short cell, -1 for any other block.
int32_t row_of(const Page& page, const TextBlock& block) {
  const PageNode& cell = page.nodes[static_cast<size_t>(block.node)];
  if ((cell.tag != Tag::kTd && cell.tag != Tag::kTh) || block.measure.length > kCellMax) return -1;
  return page.nodes[static_cast<size_t>(cell.parent)].tag == Tag::kTr ? cell.parent : -1;
}

void write_text(const Page& page, const std::vector<int32_t>& kept, std::string& text) {
  int32_t last_row = -1;
  for (const int32_t index : kept) {
    const TextBlock& block = page.blocks[static_cast<size_t>(index)];
    const int32_t row = row_of(page, block);
    if (!text.empty()) text += row >= 0 && row == last_row ? ' ' : '\n';
    text += page.text_of(block);
    last_row = row;
  }
}

}  // namespace

struct ArticleExtractor::Scratch {
  PageReader reader;
  Page page;
  ContentChooser chooser;
  std::vector<int32_t> kept;
};

ArticleExtractor::ArticleExtractor() : scratch_(std::make_unique<Scratch>()) {}
ArticleExtractor::~ArticleExtractor() = default;
ArticleExtractor::ArticleExtractor(ArticleExtractor&&) noexcept = default;
ArticleExtractor& ArticleExtractor::operator=(ArticleExtractor&&) noexcept = default;

void ArticleExtractor::extract(std::string_view html_utf8, Article& out) {
  Scratch& scratch = *scratch_;
  scratch.reader.read(html_utf8, scratch.page);
  const PageMeta& meta = scratch.page.meta;
  out.title = meta.title(scratch.page.heading);
  out.language = meta.language();
  out.canonical = meta.canonical();
  out.time_s = meta.time_s();
  out.text.clear();
  scratch.chooser.choose(scratch.page, out.title, scratch.kept);
  write_text(scratch.page, scratch.kept, out.text);
  if (meta.article_body().size() > 2 * out.text.size()) out.text = meta.article_body();
}

int64_t ArticleExtractor::work() const {
  return scratch_->page.work + scratch_->chooser.work();
}

}  // namespace streamvec
