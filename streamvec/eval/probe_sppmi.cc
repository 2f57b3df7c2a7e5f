#include "streamvec/eval/probe_sppmi.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

size_t pair_count(size_t words) {
  return words * (words + 1) / 2;
}

void resize(ProbeCounts::Half& half, size_t words) {
  half.pairs.assign(pair_count(words), 0);
  half.marginals.assign(words, 0);
  half.tokens.assign(words, 0);
}

void rescale(ProbeCounts::Half& half, int64_t k) {
  for (std::vector<double>* values : {&half.pairs, &half.marginals, &half.tokens})
    for (double& value : *values) value = rescaled(value, k);
  half.tokens_sum = rescaled(half.tokens_sum, k);
}

// Slots with at least count_min, falling by count.
std::vector<Slot> ranked(std::span<const double> counts, double count_min) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] >= count_min) slots.push_back(static_cast<Slot>(i));
  std::sort(slots.begin(), slots.end(), [&](Slot a, Slot b) {
    const double count_a = counts[static_cast<size_t>(a)], count_b = counts[static_cast<size_t>(b)];
    return count_a != count_b ? count_a > count_b : a < b;
  });
  return slots;
}

// The rank of the i-th of `count` words spread evenly over the logarithm of the ranks [begin, end).
size_t spread_rank(size_t i, size_t count, size_t begin, size_t end) {
  const double share = static_cast<double>(i) / static_cast<double>(std::max<size_t>(1, count - 1));
  const double first = std::log(static_cast<double>(begin + 1)), last = std::log(static_cast<double>(end));
  return std::clamp(static_cast<size_t>(std::exp(first + share * (last - first))) - 1, begin, end - 1);
}

}  // namespace

ProbeSppmi::ProbeSppmi(const ProbeOptions& options) : options_(options), decay_(options.half_life) {
  const auto window = static_cast<double>(options.pairs.window);
  pair_weight_.push_back(0);
  side_weight_.push_back(0);
  for (int32_t d = 1; d <= options.pairs.window; ++d) {
    pair_weight_.push_back((window - d + 1) / window);
    side_weight_.push_back(side_weight_.back() + pair_weight_.back());
  }
}

std::vector<Slot> ProbeSppmi::choose(std::span<const double> counts) const {
  const std::vector<Slot> order = ranked(counts, options_.count_min);
  const size_t size = std::min(order.size(), static_cast<size_t>(options_.words_max)), frequent = size / 2;
  std::vector<bool> chosen(counts.size());
  std::vector<Slot> words;
  const auto take = [&](Slot slot) {
    if (words.size() == size || chosen[static_cast<size_t>(slot)]) return;
    chosen[static_cast<size_t>(slot)] = true;
    words.push_back(slot);
  };
  for (size_t i = 0; i < frequent; ++i) take(order[i]);
  // Those who were there before, while they are not rare; then new ones of all ranks, then whatever is left.
  for (const Slot slot : counts_.slots)
    if (static_cast<size_t>(slot) < counts.size() && counts[static_cast<size_t>(slot)] >= options_.count_min / 2)
      take(slot);
  const size_t wanted = size - words.size();
  for (size_t i = 0; i < wanted; ++i) take(order[spread_rank(i, wanted, frequent, order.size())]);
  for (const Slot slot : order) take(slot);
  std::sort(words.begin(), words.end());
  return words;
}

void ProbeSppmi::follow(std::span<const double> counts) {
  set_words(choose(counts));
  probe_.resize(counts.size(), -1);
}

void ProbeSppmi::forget(std::span<const Slot> slots) {
  const bool any = std::any_of(slots.begin(), slots.end(), [&](Slot slot) { return probe_of(slot) >= 0; });
  if (!any) return;
  for (const Slot slot : slots)
    if (probe_of(slot) >= 0) probe_[static_cast<size_t>(slot)] = -1;
  std::vector<Slot> left;
  for (const Slot slot : counts_.slots)
    if (probe_of(slot) >= 0) left.push_back(slot);
  set_words(left);
}

// Words that stay keep what was counted for them.
void ProbeSppmi::set_words(const std::vector<Slot>& slots) {
  if (slots == counts_.slots) return;
  std::vector<int32_t> before;
  for (const Slot slot : slots) before.push_back(probe_of(slot));
  for (Half& half : counts_.halves) {
    const Half old = std::move(half);
    half = Half();
    half.tokens_sum = old.tokens_sum;
    resize(half, slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      if (before[i] < 0) continue;
      const auto old_i = static_cast<size_t>(before[i]);
      half.marginals[i] = old.marginals[old_i];
      half.tokens[i] = old.tokens[old_i];
      for (size_t j = 0; j <= i; ++j)
        if (before[j] >= 0)
          half.pairs[ProbeCounts::pair_index(i, j)] =
              old.pairs[ProbeCounts::pair_index(old_i, static_cast<size_t>(before[j]))];
    }
  }
  std::fill(probe_.begin(), probe_.end(), -1);
  if (!slots.empty()) probe_.resize(std::max(probe_.size(), static_cast<size_t>(slots.back()) + 1), -1);
  for (size_t i = 0; i < slots.size(); ++i) probe_[static_cast<size_t>(slots[i])] = static_cast<int32_t>(i);
  counts_.slots = slots;
}

void ProbeSppmi::add(const Chunk& chunk, double t, const Subsampling& subsampling) {
  const uint64_t draw = mix(options_.pairs.seed, static_cast<uint64_t>(chunks_++));
  if (counts_.slots.empty() || (draw >> 1) % static_cast<uint64_t>(std::max(1, options_.chunks_every)) != 0) return;
  if (const int64_t k = decay_.advance(t); k > 0)
    for (Half& half : counts_.halves) rescale(half, k);
  const double weight = decay_.weight(t);
  Half& half = counts_.halves[draw & 1];
  Random random(draw);
  size_t begin = 0;
  for (const int32_t end : chunk.sentence_ends) {
    kept_.clear();
    for (; begin < static_cast<size_t>(end); ++begin) {
      const Slot slot = chunk.slots[begin];
      if (slot == kNoSlot) continue;
      const int32_t probe = probe_of(slot);
      half.tokens_sum += weight;
      if (probe >= 0) half.tokens[static_cast<size_t>(probe)] += weight;
      if (subsampling.keep(slot, random.next_u32())) kept_.push_back(probe);
    }
    add_sentence(kept_, weight, half);
  }
}

void ProbeSppmi::add_sentence(std::span<const int32_t> sentence, double weight, Half& half) {
  const auto window = static_cast<size_t>(options_.pairs.window);
  for (size_t i = 0; i < sentence.size(); ++i) {
    if (sentence[i] < 0) continue;
    const auto word = static_cast<size_t>(sentence[i]);
    const size_t left = std::min(window, i), right = std::min(window, sentence.size() - 1 - i);
    half.marginals[word] += weight * (side_weight_[left] + side_weight_[right]);
    for (size_t d = 1; d <= right; ++d) {
      if (sentence[i + d] < 0) continue;
      const auto other = static_cast<size_t>(sentence[i + d]);
      // A word beside itself: both orders.
      half.pairs[ProbeCounts::pair_index(word, other)] += weight * pair_weight_[d] * (word == other ? 2 : 1);
    }
  }
}

int64_t ProbeSppmi::memory_bytes() const {
  size_t bytes = probe_.capacity() * sizeof(int32_t) + kept_.capacity() * sizeof(int32_t);
  for (const Half& half : counts_.halves)
    bytes += (half.pairs.capacity() + half.marginals.capacity() + half.tokens.capacity()) * sizeof(double);
  return static_cast<int64_t>(bytes);
}

}  // namespace streamvec
