#include "streamvec/vocab/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace streamvec {
namespace {

__extension__ using Wide = unsigned __int128;  // -Wpedantic needs the word of leave

constexpr uint32_t kMost32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMost64 = std::numeric_limits<uint64_t>::max();

// A probability as a fraction of 2^32.
uint32_t scaled(double probability) {
  return static_cast<uint32_t>(std::clamp(probability * 0x1p32, 0.0, static_cast<double>(kMost32)));
}

double checked_sum(std::span<const double> weights) {
  STREAMVEC_CHECK(!weights.empty());
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  STREAMVEC_CHECK(sum > 0 && std::isfinite(sum));
  return sum;
}

double power_of(double count, double power) {
  // Square roots are several times as fast, and nearly all tables have this power.
  if (power == 0.75) return std::sqrt(count) * std::sqrt(std::sqrt(count));
  return std::pow(count, power);
}

template <typename Count>
std::vector<double> powers(std::span<const Count> counts, double power) {
  std::vector<double> weights(counts.size());
  Count last_count = 0;  // neighbours often have the same count: half of the powers and more fall away
  double last_weight = 0, sum = 0;
  for (size_t slot = 0; slot < counts.size(); ++slot) {
    const Count count = counts[slot];
    if (count != last_count) last_weight = power_of(static_cast<double>(last_count = count), power);
    sum += weights[slot] = count > 0 ? last_weight : 0.0;
  }
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(weights.size());
  return weights;
}

// word2vec's rule; `total` is the sum of the counts.
template <typename Count>
std::vector<uint32_t> keep_thresholds(std::span<const Count> counts, double total, double sample) {
  STREAMVEC_CHECK(sample >= 0);
  std::vector<uint32_t> thresholds(counts.size(), kMost32);
  const double bound = sample * total;
  // (sqrt(r) + 1) / r is at least 1 up to r = ((1 + sqrt 5) / 2)^2: nearly all words are always kept.
  const double kept = 2.618 * bound;
  for (size_t slot = 0; bound > 0 && slot < counts.size(); ++slot) {
    const auto count = static_cast<double>(counts[slot]);
    if (count > kept) thresholds[slot] = scaled((std::sqrt(count / bound) + 1) * bound / count);
  }
  return thresholds;
}

}  // namespace

std::vector<double> unigram_probabilities(std::span<const double> counts, double power) {
  return powers(counts, power);
}

std::vector<double> unigram_probabilities(const Vocabulary& vocabulary, double power) {
  return powers(vocabulary.counts(), power);
}

// Vose 1991: columns short of the mean are filled up, each by one that has more than the mean.
AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  const double scale = static_cast<double>(weights.size()) / checked_sum(weights);
  std::vector<double> left(weights.size());
  std::vector<Slot> small, large;
  for (size_t i = 0; i < weights.size(); ++i) {
    left[i] = weights[i] * scale;
    (left[i] < 1 ? small : large).push_back(static_cast<Slot>(i));
  }
  while (!small.empty() && !large.empty()) {
    const auto short_one = static_cast<size_t>(small.back());
    const auto long_one = static_cast<size_t>(large.back());
    small.pop_back();
    columns_[short_one] = {scaled(left[short_one]), large.back()};
    left[long_one] -= 1 - left[short_one];
    if (left[long_one] < 1) {
      small.push_back(large.back());
      large.pop_back();
    }
  }
  // What rounding leaves over is full.
  for (const std::vector<Slot>& rest : {small, large})
    for (const Slot slot : rest) columns_[static_cast<size_t>(slot)] = {kMost32, slot};
}

StratifiedSampler::StratifiedSampler(std::span<const double> weights) : ends_(weights.size()) {
  const double sum = checked_sum(weights);
  double reached = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    reached += weights[i];
    ends_[i] = static_cast<uint64_t>(std::min(reached / sum, 1 - 0x1p-53) * 0x1p64);
  }
  size_t last = weights.size() - 1;
  while (weights[last] <= 0) --last;
  std::fill(ends_.begin() + static_cast<std::ptrdiff_t>(last), ends_.end(), kMost64);  // what rounding leaves over
  int bits = 1;
  while ((size_t{1} << bits) < weights.size()) ++bits;
  shift_ = 64 - bits;
  guide_.resize(size_t{1} << bits);
  size_t slot = 0;
  for (size_t i = 0; i < guide_.size(); ++i) {
    while (ends_[slot] <= static_cast<uint64_t>(i) << shift_) ++slot;
    guide_[i] = static_cast<Slot>(slot);
  }
}

Slot StratifiedSampler::invert(uint64_t at) const {
  auto slot = static_cast<size_t>(guide_[at >> shift_]);
  while (ends_[slot] <= at) ++slot;
  return static_cast<Slot>(slot);
}

void StratifiedSampler::sample(Random& random, std::span<Slot> out) const {
  // In batches and three passes, so that the tables' cache misses come all at once rather than one after another.
  constexpr size_t kBatch = 64;
  uint64_t at[kBatch];
  if (out.empty()) return;
  const uint64_t stratum = kMost64 / out.size();
  uint64_t begin = 0;
  for (size_t first = 0; first < out.size(); first += kBatch) {
    const size_t count = std::min(kBatch, out.size() - first);
    for (size_t i = 0; i < count; ++i, begin += stratum) {
      at[i] = begin + static_cast<uint64_t>((static_cast<Wide>(random.next()) * stratum) >> 64);
      __builtin_prefetch(&guide_[at[i] >> shift_]);
    }
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&ends_[static_cast<size_t>(guide_[at[i] >> shift_])]);
    for (size_t i = 0; i < count; ++i) out[first + i] = invert(at[i]);
  }
}

Subsampling::Subsampling(const Vocabulary& vocabulary, double sample)
    : thresholds_(keep_thresholds(vocabulary.counts(), static_cast<double>(vocabulary.tokens()), sample)) {}

Subsampling::Subsampling(std::span<const double> counts, double sample)
    : thresholds_(keep_thresholds(counts, std::accumulate(counts.begin(), counts.end(), 0.0), sample)) {}

}  // namespace streamvec
