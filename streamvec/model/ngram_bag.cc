#include "streamvec/model/ngram_bag.h"

#include <algorithm>
#include <cmath>

#include "streamvec/core/memory.h"
#include "streamvec/core/random.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/spelling.h"

namespace streamvec {
namespace {

constexpr char32_t kBeginMark = 0x120000, kEndMark = 0x120001;  // no code points, and no bytes either

}  // namespace

void ngram_features(std::string_view word, const NgramBagOptions& options, std::vector<NgramFeature>& out) {
  out.clear();
  std::u32string spelled(1, kBeginMark);
  append_characters(word, spelled);
  spelled.push_back(kEndMark);
  const uint32_t mask = (uint32_t{1} << options.bucket_bits) - 1;
  float squares = 0;
  for (size_t begin = 0; begin < spelled.size(); ++begin) {
    uint64_t hash = 0;
    const size_t longest = std::min(spelled.size() - begin, static_cast<size_t>(options.maxn));
    for (size_t n = 1; n <= longest; ++n) {
      hash = mix(hash, spelled[begin + n - 1]);
      if (n < static_cast<size_t>(options.minn)) continue;
      const float weight = std::pow(static_cast<float>(n), options.length_power);
      squares += weight * weight;
      out.push_back({static_cast<uint32_t>(hash) & mask, weight});
    }
  }
  const float scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (NgramFeature& feature : out) feature.weight *= scale;
}

Result<NgramBag> NgramBag::make(const Options& options, int64_t dim, int64_t words_max) {
  NgramBag bag;
  bag.options_ = options;
  STREAMVEC_ASSIGN_OR_RETURN(
      bag.table_, make_values<uint32_t>(int64_t{1} << options.bucket_bits, "an index of n-grams", "fewer buckets"));
  STREAMVEC_ASSIGN_OR_RETURN(bag.rows_, Matrix::make(0, dim, int64_t{1} << options.bucket_bits));
  STREAMVEC_ASSIGN_OR_RETURN(bag.duals_, Matrix::make(0, dim, words_max));
  bag.scratch_.reserve_zeroed(1, dim);
  return bag;
}

void NgramBag::set_word(Slot slot, std::string_view word) {
  const auto index = static_cast<size_t>(slot);
  if (index >= words_.size()) words_.resize(index + 1);
  if (slot >= duals_.rows()) duals_.grow(slot + 1);
  if (!words_[index].spelling.empty()) forget(slot);
  words_[index].spelling = word;
  ngram_features(word, options_, features_);
  for (const NgramFeature& feature : features_) {
    uint32_t& entry = table_[feature.bucket];
    if (entry == 0)
      entry = kOneWord | static_cast<uint32_t>(slot);
    else if ((entry & kOneWord) != 0 && (entry & ~kOneWord) != static_cast<uint32_t>(slot))
      share(feature.bucket, static_cast<Slot>(entry & ~kOneWord));
  }
  list_rows(slot);
}

// Gives the bucket of the only word that has it a row, because another word has come. The word has said something
// about the bucket, too.
void NgramBag::share(uint32_t bucket, Slot other) {
  uint32_t row = static_cast<uint32_t>(buckets_.size());
  if (free_rows_.empty()) {
    buckets_.push_back(bucket);
    users_.push_back(0);
    rows_.grow(int64_t{row} + 1);
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
    buckets_[row] = bucket;
  }
  table_[bucket] = row + 1;
  for (const uint32_t mine : words_[static_cast<size_t>(other)].rows) --users_[mine];
  list_rows(other);
  const Word& word = words_[static_cast<size_t>(other)];
  const auto width = static_cast<int32_t>(dim());
  for (size_t i = 0; i < word.rows.size(); ++i)
    if (word.rows[i] == row) add_scaled(duals_.row(other), word.weights[i] / options_.shrinkage, width, rows_.row(row));
}

// In the order of the spelling, so that sums are the same whenever rows have come.
void NgramBag::list_rows(Slot slot) {
  Word& word = words_[static_cast<size_t>(slot)];
  ngram_features(word.spelling, options_, other_features_);
  word.rows.clear();
  word.weights.clear();
  for (const NgramFeature& feature : other_features_) {
    const uint32_t entry = table_[feature.bucket];
    if (entry == 0 || (entry & kOneWord) != 0) continue;
    ++users_[entry - 1];
    word.rows.push_back(entry - 1);
    word.weights.push_back(feature.weight);
  }
}

void NgramBag::forget(Slot slot) {
  Word& word = words_[static_cast<size_t>(slot)];
  const auto width = static_cast<int32_t>(dim());
  for (size_t i = 0; i < word.rows.size(); ++i) {
    const uint32_t row = word.rows[i];
    add_scaled(duals_.row(slot), -word.weights[i] / options_.shrinkage, width, rows_.row(row));
    if (--users_[row] > 0) continue;
    std::fill_n(rows_.row(row), width, 0.0f);  // rounding may have left something
    table_[buckets_[row]] = 0;
    buckets_[row] = kNoBucket;
    free_rows_.push_back(row);
  }
  std::fill_n(duals_.row(slot), width, 0.0f);
  ngram_features(word.spelling, options_, features_);
  for (const NgramFeature& feature : features_)
    if (table_[feature.bucket] == (kOneWord | static_cast<uint32_t>(slot))) table_[feature.bucket] = 0;
}

void NgramBag::expect(Slot slot, Slot later) const {
  if (static_cast<size_t>(slot) >= words_.size()) return;
  __builtin_prefetch(words_.data() + later);
  const auto fetch = [&](const float* row) {
    for (int64_t d = 0; d < dim(); d += 16) __builtin_prefetch(row + d, 1, 2);
  };
  fetch(duals_.row(slot));
  for (const uint32_t row : words_[static_cast<size_t>(slot)].rows) fetch(rows_.row(row));
}

float NgramBag::fit(Slot slot, const float* target, float weight) {
  const Word& word = words_[static_cast<size_t>(slot)];
  const auto width = static_cast<int32_t>(dim());
  pointers_.clear();
  float squares = 0;
  for (size_t i = 0; i < word.rows.size(); ++i) {
    pointers_.push_back(rows_.row(word.rows[i]));
    squares += word.weights[i] * word.weights[i];
  }
  const auto count = static_cast<int32_t>(pointers_.size());
  float* step = scratch_.row(0);
  sum_scaled_rows(pointers_.data(), word.weights.data(), count, width, step);
  const float error = dual_step(target, 1 / weight, squares / options_.shrinkage, width, duals_.row(slot), step);
  if (count == 0) return error;
  for (int32_t d = 0; d < width; ++d) step[d] /= options_.shrinkage;
  add_scaled_to_rows(step, word.weights.data(), width, pointers_.data(), count);
  return error;
}

void NgramBag::add_vector(std::string_view word, float* out) const {
  std::vector<NgramFeature> features;
  ngram_features(word, options_, features);
  for (const NgramFeature& feature : features)
    if (const uint32_t entry = table_[feature.bucket]; entry != 0 && (entry & kOneWord) == 0)
      add_scaled(rows_.row(entry - 1), feature.weight, static_cast<int32_t>(dim()), out);
}

void NgramBag::add_vector(Slot slot, float* out) const {
  const Word& word = words_[static_cast<size_t>(slot)];
  for (size_t i = 0; i < word.rows.size(); ++i)
    add_scaled(rows_.row(word.rows[i]), word.weights[i], static_cast<int32_t>(dim()), out);
}

Status NgramBag::adopt(std::span<const uint32_t> buckets, const Matrix& rows, const Matrix& duals) {
  STREAMVEC_CHECK(buckets_.empty() && words_.empty());
  if (static_cast<int64_t>(buckets.size()) != rows.rows() || (rows.rows() > 0 && rows.cols() != dim()) ||
      (duals.rows() > 0 && duals.cols() != dim()) || duals.rows() > duals_.rows_max())
    return error(Code::kDataLoss, "there are ", rows.rows(), " rows of ", rows.cols(), " values for ", buckets.size(),
                 " n-grams of ", dim());
  for (size_t row = 0; row < buckets.size(); ++row) {
    const uint32_t bucket = buckets[row];
    if (bucket == kNoBucket) {
      free_rows_.push_back(static_cast<uint32_t>(row));
      continue;
    }
    if (bucket >= table_.size() || table_[bucket] != 0)
      return error(Code::kDataLoss, "bucket ", bucket, " of ", table_.size(), " is out of range or comes twice");
    table_[bucket] = static_cast<uint32_t>(row) + 1;
  }
  buckets_.assign(buckets.begin(), buckets.end());
  users_.assign(buckets.size(), 0);
  rows_.grow(rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) std::copy_n(rows.row(i), dim(), rows_.row(i));
  duals_.grow(duals.rows());
  for (int64_t i = 0; i < duals.rows(); ++i) std::copy_n(duals.row(i), dim(), duals_.row(i));
  return {};
}

}  // namespace streamvec
