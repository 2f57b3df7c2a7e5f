// The pairs of a block's positives that have weight, one by one. A centre's window holds half of what its band may
// hold, and tiles of several rows visit all of their bands: taken singly, positives cost a third of that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "streamvec/kernel/pair_block_bands.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {

// What a kernel keeps of a block's positives while it takes them pair by pair. Filled by the kernel, in this order:
// reserve(), the pairs by output, settle(), turn().
struct PairList {
  int32_t size = 0;
  AlignedBuffer<int32_t> inputs;  // of each pair
  AlignedBuffer<float> weights;   // of each pair, padded with zeros to whole sixteens
  std::vector<int32_t> begins;    // pairs of output i: [begins[i], begins[i + 1])
  AlignedBuffer<float> partial;   // 16 partial sums of each pair's product, padded with zeros to sixteen pairs
  AlignedBuffer<float> steps;     // each pair's coefficient, padded to whole sixteens
  AlignedBuffer<float> old;       // the outputs' rows as they were, `stride` apart
  size_t stride = 0;

  // The same pairs by input: those of input j are turned[i] for i in turned_range(j).
  struct Turned {
    int32_t output, pair;
  };
  std::vector<Turned> turned;
  std::vector<int32_t> turned_ends;
  Range turned_range(int32_t j) const { return {j == 0 ? 0 : turned_ends[j - 1], turned_ends[j]}; }

  // Room for all pairs of the bands, and sixteen more: vectors are stored whole.
  void reserve(const PairBlock& block) {
    size_t most = 16;
    for (int32_t i = 0; i < block.positives; ++i) most += std::max(1, block.band_end[i] - block.band_begin[i]) + 16;
    inputs.reserve(most);
    weights.reserve(most);
    begins.resize(static_cast<size_t>(block.positives) + 1);
  }

  void settle(const PairBlock& block) {
    const auto padded = static_cast<size_t>(round_up(size, 16));
    std::fill(weights.data() + size, weights.data() + padded, 0.0f);
    float* sums = partial.reserve(16 * padded);
    std::fill(sums + 16 * static_cast<size_t>(size), sums + 16 * padded, 0.0f);
    steps.reserve(padded);
    stride = static_cast<size_t>(round_up(block.dim, 16));
    old.reserve(stride * static_cast<size_t>(block.positives));
  }

  void turn(const PairBlock& block) {
    turned.resize(static_cast<size_t>(size));
    turned_ends.assign(static_cast<size_t>(block.inputs), 0);
    const int32_t* input = inputs.data();
    int32_t* next = turned_ends.data();  // counts, then where the next pair goes, then where the last one ended
    Turned* to = turned.data();
    for (int32_t p = 0; p < size; ++p) ++next[input[p]];
    for (int32_t j = 0, begin = 0; j < block.inputs; ++j) begin += std::exchange(next[j], begin);
    for (int32_t i = 0; i < block.positives; ++i)
      for (int32_t p = begins[i]; p < begins[i + 1]; ++p) to[next[input[p]]++] = {i, p};
  }
};

}  // namespace streamvec
