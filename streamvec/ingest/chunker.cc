#include "streamvec/ingest/chunker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace streamvec {
namespace {

class Cutter {
 public:
  // `left` slots will come in all.
  Cutter(size_t wanted, size_t left, const ReplayItem& like, std::vector<std::shared_ptr<const ReplayItem>>& out)
      : wanted_(wanted), left_(left), like_(like), out_(out), item_(like) {
    slots().reserve(std::min(wanted_, left_));
  }

  void add_sentence(std::span<const Slot> sentence) {
    if (slots().size() + sentence.size() > wanted_) finish_item();
    while (!sentence.empty()) {
      if (slots().size() >= wanted_) finish_item();
      const auto some = sentence.first(std::min(sentence.size(), wanted_ - slots().size()));
      slots().insert(slots().end(), some.begin(), some.end());
      sentence = sentence.subspan(some.size());
      left_ -= some.size();
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
    slots().reserve(std::min(wanted_, left_));
  }

 private:
  std::vector<Slot>& slots() { return item_.chunk.slots; }
  void end_sentence() {
    std::vector<int32_t>& ends = item_.chunk.sentence_ends;
    const int32_t end = static_cast<int32_t>(slots().size());
    if (end > (ends.empty() ? 0 : ends.back())) ends.push_back(end);
  }

  const size_t wanted_;
  size_t left_;  // slots still to come
  const ReplayItem& like_;
  std::vector<std::shared_ptr<const ReplayItem>>& out_;
  ReplayItem item_;
};

}  // namespace

void cut_chunks(const Tokens& tokens, std::span<const Slot> slots, int64_t tokens_wanted, const ReplayItem& like,
                std::vector<std::shared_ptr<const ReplayItem>>& out) {
  std::vector<Slot> kept;
  kept.reserve(slots.size());
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(kept), [](Slot slot) { return slot != kNoSlot; });
  Cutter cutter(static_cast<size_t>(tokens_wanted), kept.size(), like, out);
  size_t at = 0;
  std::span<const Slot> rest = kept;
  for (const int32_t end : tokens.sentence_ends) {
    size_t size = 0;
    for (; at < static_cast<size_t>(end); ++at) size += slots[at] != kNoSlot;
    cutter.add_sentence(rest.first(size));
    rest = rest.subspan(size);
  }
  cutter.finish_item();
}

}  // namespace streamvec
