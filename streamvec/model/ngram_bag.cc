#include "streamvec/model/ngram_bag.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
  const auto size = static_cast<int32_t>(spelled.size());
  const bool is_short = size < options.minn + options.length_step;
  const auto has_length = [&](int32_t n) {
    return n >= options.minn ? (n - options.minn) % options.length_step == 0 : is_short && n >= options.short_minn;
  };
  for (int32_t begin = 0; begin < size; ++begin) {
    uint64_t hash = 0;
    for (int32_t n = 1; n <= std::min(size - begin, options.maxn); ++n) {
      hash = mix(hash, spelled[static_cast<size_t>(begin + n - 1)]);
      if (!has_length(n)) continue;
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
  if (slot >= duals_.rows()) duals_.grow(slot + 1);
  if (index >= words_.size()) words_.resize(index + 1);
  if (!words_[index].empty()) forget(slot);
  ngram_features(word, options_, features_);
  words_[index].reserve(features_.size());
  for (const NgramFeature& feature : features_) {
    uint32_t& entry = table_[feature.bucket];
    const uint32_t alone = kOneWord | static_cast<uint32_t>(slot);
    if (entry == 0) entry = alone;
    if (entry == alone) {
      words_[index].push_back({kOneWord | feature.bucket, feature.weight});
      continue;
    }
    if ((entry & kOneWord) != 0) share(feature.bucket, static_cast<Slot>(entry & ~kOneWord));
    words_[index].push_back({entry - 1, feature.weight});
    ++users_[entry - 1];
  }
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
  for (Part& part : words_[static_cast<size_t>(other)]) {
    if (part.place != (kOneWord | bucket)) continue;
    part.place = row;
    ++users_[row];
    if (options_.by_moves) continue;
    add_scaled(duals_.row(other), part.weight / options_.shrinkage, static_cast<int32_t>(dim()), rows_.row(row));
  }
}

void NgramBag::forget(Slot slot) {
  Word& word = words_[static_cast<size_t>(slot)];
  const auto width = static_cast<int32_t>(dim());
  for (const Part& part : word) {
    if (!part.has_row()) {
      table_[part.place & ~kOneWord] = 0;
      continue;
    }
    if (!options_.by_moves)
      add_scaled(duals_.row(slot), -part.weight / options_.shrinkage, width, rows_.row(part.place));
    if (--users_[part.place] > 0) continue;
    std::fill_n(rows_.row(part.place), width, 0.0f);  // rounding may have left something
    table_[buckets_[part.place]] = 0;
    buckets_[part.place] = kNoBucket;
    free_rows_.push_back(part.place);
  }
  std::fill_n(duals_.row(slot), width, 0.0f);
  word.clear();
}

int64_t NgramBag::cost(Slot slot) const {
  return std::ranges::count_if(words_[static_cast<size_t>(slot)], &Part::has_row);
}

std::vector<Slot> NgramBag::slots_by_ngrams() const {
  std::vector<Slot> slots(words_.size());
  std::iota(slots.begin(), slots.end(), Slot{0});
  const auto word_of = [&](Slot slot) -> const Word& { return words_[static_cast<size_t>(slot)]; };
  const auto before = [](const Part& a, const Part& b) { return a.place < b.place; };
  std::ranges::stable_sort(
      slots, [&](Slot a, Slot b) { return std::ranges::lexicographical_compare(word_of(a), word_of(b), before); });
  return slots;
}

void NgramBag::expect(std::span<const Slot, 3> next) const {
  const auto word_at = [&](size_t i) { return words_.data() + next[i]; };
  const auto known = [&](size_t i) { return static_cast<size_t>(next[i]) < words_.size(); };
  if (known(2)) __builtin_prefetch(word_at(2));
  constexpr size_t kPartsFetched = 24, kPartsOfLine = 64 / sizeof(Part);  // most words have fewer
  if (known(1))
    for (size_t i = 0; i < kPartsFetched; i += kPartsOfLine) __builtin_prefetch(word_at(1)->data() + i);
  if (!known(0)) return;
  const auto fetch = [&](const float* row) {
    for (int64_t d = 0; d < dim(); d += 16) __builtin_prefetch(row + d, 1, 2);
  };
  fetch(duals_.row(next[0]));
  for (const Part& part : *word_at(0))
    if (part.has_row()) fetch(rows_.row(part.place));
}

void NgramBag::fit(Slot slot, const float* target, float weight) {
  const Word& word = words_[static_cast<size_t>(slot)];
  if (word.empty()) return;  // no n-gram is as short: nothing to say, and nothing to take back
  const auto width = static_cast<int32_t>(dim());
  pointers_.clear();
  weights_.clear();
  float squares = 0;
  for (const Part& part : word) {
    if (!part.has_row()) continue;
    pointers_.push_back(rows_.row(part.place));
    weights_.push_back(part.weight);
    squares += part.weight * part.weight;
  }
  const auto count = static_cast<int32_t>(pointers_.size());
  float* step = scratch_.row(0);
  sum_scaled_rows(pointers_.data(), weights_.data(), count, width, step);
  dual_step(target, 1 / weight, squares / options_.shrinkage, width, duals_.row(slot), step);
  for (float& scale : weights_) scale /= options_.shrinkage;
  add_scaled_to_rows(step, weights_.data(), width, pointers_.data(), count);
}

// The word's n-grams that have rows, by their weights, and its own row behind them. Returns the squares of the weights.
float NgramBag::find_rows(Slot slot, Scratch& scratch) {
  scratch.rows.clear();
  scratch.weights.clear();
  float squares = 0;
  for (const Part& part : words_[static_cast<size_t>(slot)]) {
    if (!part.has_row()) continue;
    scratch.rows.push_back(rows_.row(part.place));
    scratch.weights.push_back(part.weight);
    squares += part.weight * part.weight;
  }
  scratch.rows.push_back(duals_.row(slot));
  return squares;
}

void NgramBag::compose(Slot slot, Scratch& scratch, float* out) {
  find_rows(slot, scratch);
  scratch.weights.push_back(1);
  sum_scaled_rows(scratch.rows.data(), scratch.weights.data(), static_cast<int32_t>(scratch.rows.size()),
                  static_cast<int32_t>(dim()), out);
}

void NgramBag::move(Slot slot, const float* change, const float* shared, Scratch& scratch) {
  const auto width = static_cast<int32_t>(dim());
  const float squares = find_rows(slot, scratch);
  for (float& weight : scratch.weights) weight *= kShared;
  scratch.weights.push_back(-kShared * squares);
  add_scaled_to_rows(shared, scratch.weights.data(), width, scratch.rows.data(),
                     static_cast<int32_t>(scratch.rows.size()));
  add_scaled(change, 1, width, scratch.rows.back());
}

float NgramBag::add_vector(std::string_view word, float* out) const {
  std::vector<NgramFeature> features;
  ngram_features(word, options_, features);
  float known = 0;
  for (const NgramFeature& feature : features) {
    const uint32_t entry = table_[feature.bucket];
    if (entry == 0 || (entry & kOneWord) != 0) continue;
    add_scaled(rows_.row(entry - 1), feature.weight, static_cast<int32_t>(dim()), out);
    known += feature.weight * feature.weight;
  }
  return 1 - kShared * known;
}

void NgramBag::add_vector(Slot slot, float* out) const {
  for (const Part& part : words_[static_cast<size_t>(slot)])
    if (part.has_row()) add_scaled(rows_.row(part.place), part.weight, static_cast<int32_t>(dim()), out);
}

Status NgramBag::adopt(std::span<const uint32_t> buckets, MatrixView<const float> rows, MatrixView<const float> duals) {
  STREAMVEC_CHECK(buckets_.empty() && words_.empty());
  if (static_cast<int64_t>(buckets.size()) != rows.rows || (rows.rows > 0 && rows.cols != dim()) ||
      (duals.rows > 0 && duals.cols != dim()) || duals.rows > duals_.rows_max())
    return error(Code::kDataLoss, "there are ", rows.rows, " rows of ", rows.cols, " values for ", buckets.size(),
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
  rows_.grow(rows.rows);
  for (int64_t i = 0; i < rows.rows; ++i) std::copy_n(rows.row(i), dim(), rows_.row(i));
  duals_.grow(duals.rows);
  for (int64_t i = 0; i < duals.rows; ++i) std::copy_n(duals.row(i), dim(), duals_.row(i));
  return {};
}

}  // namespace streamvec
