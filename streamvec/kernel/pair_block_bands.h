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

// The outputs that inputs [j, j + columns) have weight with: a run of positives (bands begin and end in rising
// order), and all negatives.
inline RangePair outputs_near(const PairBlock& block, int32_t j, int32_t columns) {
  Range range{0, block.positives};
  while (range.begin < range.end && block.band_end[range.begin] <= j) ++range.begin;
  while (range.begin < range.end && block.band_begin[range.end - 1] >= j + columns) --range.end;
  return {range, Range{block.positives, block.outputs}};
}

}  // namespace streamvec
