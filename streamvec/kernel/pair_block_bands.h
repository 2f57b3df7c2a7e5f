// Which rows of a block meet with a weight: positives only within their bands, negatives with every input.
// Kernels sum tiles of a few rows; these give the partners that a tile has to visit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "streamvec/kernel/pair_block.h"

namespace streamvec {

// Partners [begin, end).
struct Range {
  int32_t begin = 0;
  int32_t end = 0;
};
using RangePair = std::array<Range, 2>;  // the second is empty where one is enough

// The inputs that outputs [i, i + rows) have weight with. REQUIRES: the rows are all positives or all negatives.
inline RangePair inputs_near(const PairBlock& block, int32_t i, int32_t rows) {
  if (i >= block.positives) return {Range{0, block.inputs}, Range{}};
  Range range{block.inputs, 0};
  for (int32_t r = i; r < i + rows; ++r) {
    range.begin = std::min(range.begin, block.band_begin[r]);
    range.end = std::max(range.end, block.band_end[r]);
  }
  return {range.begin < range.end ? range : Range{}, Range{}};
}

// The inputs of positive i's band, or one of the others where it is empty: every row's product with some partner has to
// be taken, because that is how a row that is not finite is found.
inline Range visited_inputs(const PairBlock& block, int32_t i) {
  const Range band{block.band_begin[i], block.band_end[i]};
  if (band.begin < band.end) return band;
  const int32_t some = std::min(band.begin, block.inputs - 1);
  return {some, some + 1};
}

// Whether positives' products outside their bands can be left out: negatives meet every input then, so that one which
// is not finite is found all the same.
inline bool visits_bands_alone(const PairBlock& block) {
  return block.positives < block.outputs;
}

// The weights that most negatives share, if any do: their losses need one logarithm for several of them, that of the
// product of their 1 + exp(-|g|).
inline const float* shared_weights(const PairBlock& block) {
  for (int32_t i = block.positives; i + 1 < block.outputs; ++i)
    if (block.weight[i] == block.weight[i + 1]) return block.weight[i];
  return nullptr;
}

// The outputs that inputs [j, j + columns) have weight with: a run of positives (bands begin and end in rising
// order), and all negatives.
inline RangePair outputs_near(const PairBlock& block, int32_t j, int32_t columns) {
  Range range{0, block.positives};
  while (range.begin < range.end && block.band_end[range.begin] <= j) ++range.begin;
  while (range.begin < range.end && block.band_begin[range.end - 1] >= j + columns) --range.end;
  return {range, Range{block.positives, block.outputs}};
}

}  // namespace streamvec
