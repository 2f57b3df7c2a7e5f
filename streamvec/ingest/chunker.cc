#include "streamvec/ingest/chunker.h"

#include <utility>

namespace streamvec {
namespace {

class Cutter {
 public:
  Cutter(size_t wanted, const ReplayItem& like, std::vector<std::shared_ptr<const ReplayItem>>& out)
      : wanted_(wanted), like_(like), out_(out), item_(like) {}

  void add_sentence(std::span<const Slot> sentence) {
    if (slots().size() + sentence.size() > wanted_) finish_item();
    for (const Slot slot : sentence) {
      if (slots().size() >= wanted_) finish_item();
      slots().push_back(slot);
    }
    end_sentence();
  }

  void finish_item() {
    end_sentence();
    if (slots().size() >= 2) {
      slots().shrink_to_fit();
      item_.chunk.sentence_ends.shrink_to_fit();
      out_.push_back(std::make_shared<const ReplayItem>(std::move(item_)));
    }
    item_ = like_;
    slots().reserve(wanted_);
  }

 private:
  std::vector<Slot>& slots() { return item_.chunk.slots; }
  void end_sentence() {
    std::vector<int32_t>& ends = item_.chunk.sentence_ends;
    const int32_t end = static_cast<int32_t>(slots().size());
    if (end > (ends.empty() ? 0 : ends.back())) ends.push_back(end);
  }

  const size_t wanted_;
  const ReplayItem& like_;
  std::vector<std::shared_ptr<const ReplayItem>>& out_;
  ReplayItem item_;
};

}  // namespace

void cut_chunks(const Tokens& tokens, std::span<const Slot> slots, int64_t tokens_wanted, const ReplayItem& like,
                std::vector<std::shared_ptr<const ReplayItem>>& out) {
  Cutter cutter(static_cast<size_t>(tokens_wanted), like, out);
  std::vector<Slot> sentence;
  size_t at = 0;
  for (const int32_t end : tokens.sentence_ends) {
    sentence.clear();
    for (; at < static_cast<size_t>(end); ++at)
      if (slots[at] != kNoSlot) sentence.push_back(slots[at]);
    cutter.add_sentence(sentence);
  }
  cutter.finish_item();
}

}  // namespace streamvec
