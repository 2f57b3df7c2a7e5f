#include "streamvec/model/subword_table.h"

#include <algorithm>

#include "streamvec/core/memory.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr size_t kBlockSize = size_t{1} << 16;
constexpr size_t kListStep = 8;       // rooms of lists are multiples of it: few kinds, so that most fit another word
constexpr uint64_t kBucketDraws = 2;  // keeps the draws of buckets apart from those of words and of training

}  // namespace

Status check_ngrams(const NgramOptions& options) {
  if (options.minn < 1 || options.minn > kNgramMax)
    return error(Code::kInvalidArgument, "--minn is ", options.minn, "; it must be 1 to ", kNgramMax);
  if (options.maxn < options.minn || options.maxn > kNgramMax)
    return error(Code::kInvalidArgument, "--maxn is ", options.maxn, "; it must be --minn (", options.minn, ") to ",
                 kNgramMax);
  if (options.bucket < 1 || options.bucket > kBucketMax)
    return error(Code::kInvalidArgument, "--bucket is ", options.bucket, "; it must be 1 to ", kBucketMax);
  return {};
}

Result<SubwordTable> SubwordTable::make(const Options& options) {
  STREAMVEC_RETURN_IF_ERROR(check_ngrams(options.ngrams));
  SubwordTable made;
  made.options_ = options;
  auto table = Table::make(0, options.dim, options.ngrams.bucket, options.optimizer);
  if (!table.ok()) return Status(table.status().code(), table.status().message() + ", or a smaller --bucket");
  made.table = std::move(*table);
  STREAMVEC_ASSIGN_OR_RETURN(made.lists_, make_values<std::atomic<Row*>>(options.words_max, "words and their n-grams",
                                                                         "a smaller --vocab-max"));
  return made;
}

uint32_t SubwordTable::row_of(uint32_t bucket) {
  if (const uint32_t known = index_.find(bucket); known != BucketIndex::kNone) return known;
  const uint32_t row = index_.add(bucket);
  table.grow(int64_t{row} + 1);
  const float scale = 2.0f / static_cast<float>(options_.dim);
  Random random(mix(options_.seed, kBucketDraws, bucket));
  for (float& value : table.rows.view().row_span(row)) value = (random.uniform() - 0.5f) * scale;
  return row;
}

SubwordTable::Row* SubwordTable::place_for(size_t size) {
  const size_t room = (size + kListStep - 1) / kListStep * kListStep;
  std::vector<Row*>& free = free_[room];
  if (!free.empty()) {
    Row* list = free.back();
    free.pop_back();
    return list;
  }
  if (room + 2 > block_left_) {
    block_left_ = std::max(kBlockSize, room + 2);
    blocks_bytes_ += static_cast<int64_t>(block_left_ * sizeof(Row));
    block_next_ = blocks_.emplace_back(std::make_unique<Row[]>(block_left_)).get();
  }
  Row* list = block_next_;
  list[1].store(static_cast<uint32_t>(room), std::memory_order_release);
  block_next_ += room + 2;
  block_left_ -= room + 2;
  return list;
}

void SubwordTable::set_word(Slot slot, std::string_view word) {
  STREAMVEC_CHECK(slot >= 0 && slot < options_.words_max);
  found_.clear();
  append_ngram_buckets(word, options_.ngrams, found_);
  Row* list = place_for(found_.size());
  for (size_t i = 0; i < found_.size(); ++i) list[i + 2].store(row_of(found_[i]), std::memory_order_release);
  list[0].store(static_cast<uint32_t>(found_.size()), std::memory_order_release);
  Row* const before = lists_[static_cast<size_t>(slot)].exchange(list, std::memory_order_acq_rel);
  if (before != nullptr) free_[before[1]].push_back(before);
}

std::span<const SubwordTable::Row> SubwordTable::rows_of(Slot slot) const {
  const Row* list = lists_[static_cast<size_t>(slot)].load(std::memory_order_acquire);
  if (list == nullptr) return {};
  return {list + 2, list[0].load(std::memory_order_acquire)};
}

void SubwordTable::add_buckets(std::span<const uint32_t> buckets) {
  for (const uint32_t bucket : buckets) row_of(bucket);
}

Status SubwordTable::adopt(std::span<const uint32_t> buckets, const Matrix& rows) {
  STREAMVEC_CHECK(this->buckets().empty());
  if (static_cast<int64_t>(buckets.size()) != rows.rows() || (rows.rows() > 0 && rows.cols() != options_.dim))
    return error(Code::kDataLoss, "there are ", rows.rows(), " rows of ", rows.cols(), " values for ", buckets.size(),
                 " buckets of ", options_.dim);
  for (const uint32_t bucket : buckets) {
    if (bucket >= options_.ngrams.bucket || index_.find(bucket) != BucketIndex::kNone)
      return error(Code::kDataLoss, "bucket ", bucket, " of ", options_.ngrams.bucket,
                   " is out of range or comes twice");
    index_.add(bucket);
  }
  table.grow(rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) std::copy_n(rows.row(i), options_.dim, table.rows.row(i));
  return {};
}

}  // namespace streamvec
