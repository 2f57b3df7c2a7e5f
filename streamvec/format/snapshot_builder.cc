#include "streamvec/format/snapshot_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace streamvec {

Result<SnapshotBuilder> SnapshotBuilder::make(int64_t dim, int64_t rows_expected) {
  SnapshotBuilder builder;
  STREAMVEC_ASSIGN_OR_RETURN(builder.table_, Matrix::make(0, dim, std::max<int64_t>(rows_expected, 1)));
  return builder;
}

Result<float*> SnapshotBuilder::add(std::string_view word, int64_t count) {
  if (word.empty()) return error(Code::kInvalidArgument, "the word is empty");
  if (word.size() > Vocabulary::kWordBytesMax)
    return error(Code::kInvalidArgument, "a word of ", word.size(), " bytes is longer than ",
                 Vocabulary::kWordBytesMax);
  if (const Slot slot = vocabulary_.find(word); slot != kNoSlot)
    return error(Code::kInvalidArgument, "'", word, "' was there already as word number ", slot + 1,
                 "; keep one of the two");
  if (vocabulary_.size() == std::numeric_limits<Slot>::max())
    return error(Code::kResourceExhausted, "more words than a vocabulary can hold (", vocabulary_.size(), ")");
  if (count < 0 || count > std::numeric_limits<int64_t>::max() - vocabulary_.tokens())
    return error(Code::kInvalidArgument, "the counts are negative or add up to 2^63 or more");
  if (table_.rows() == table_.rows_max()) {
    STREAMVEC_ASSIGN_OR_RETURN(Matrix larger, Matrix::make(table_.rows(), table_.cols(), 2 * table_.rows_max()));
    std::memcpy(larger.row(0), table_.row(0), static_cast<size_t>(table_.rows() * table_.stride()) * sizeof(float));
    table_ = std::move(larger);
  }
  vocabulary_.add(word, count);
  table_.grow(table_.rows() + 1);
  return table_.row(table_.rows() - 1);
}

Snapshot SnapshotBuilder::finish() {
  give_pseudo_counts(vocabulary_);
  Snapshot snapshot;
  snapshot.vocabulary = std::move(vocabulary_);
  snapshot.input = std::move(table_);
  return snapshot;
}

void give_pseudo_counts(Vocabulary& vocabulary) {
  if (vocabulary.tokens() > 0) return;
  const int64_t words = vocabulary.size();
  for (Slot slot = 0; slot < words; ++slot) vocabulary.add_count(slot, (words + slot) / (slot + 1));
}

}  // namespace streamvec
