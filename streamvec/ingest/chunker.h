// Cuts a document's slots into the stretches that replay keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/replay/item.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {

// Appends to `out` items of about `tokens_wanted` slots: sentences are kept together as long as they fit; one that is
// longer is cut every tokens_wanted slots. Words without a slot are left out; an item has at least 2 slots, for a word
// alone has no window. `like` gives stamp, record, source and times. REQUIRES: slots.size() == tokens.words.size().
void cut_chunks(const Tokens& tokens, std::span<const Slot> slots, int64_t tokens_wanted, const ReplayItem& like,
                std::vector<std::shared_ptr<const ReplayItem>>& out);

}  // namespace streamvec
