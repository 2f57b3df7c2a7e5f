#include "streamvec/cluster/piece_ranges.h"

#include <algorithm>
#include <iterator>

namespace streamvec {

void append(int64_t piece, std::vector<PieceRange>& ranges) {
  if (!ranges.empty() && ranges.back().end == piece)
    ++ranges.back().end;
  else
    ranges.push_back({piece, piece + 1});
}

std::vector<PieceRange> joined(std::vector<PieceRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<PieceRange> all;
  for (const PieceRange& range : ranges) {
    if (range.end <= range.begin) continue;
    if (!all.empty() && range.begin <= all.back().end)
      all.back().end = std::max(all.back().end, range.end);
    else
      all.push_back(range);
  }
  return all;
}

std::vector<PieceRange> renumbered(std::span<const PieceRange> ranges, PieceRange bounds, int64_t number) {
  std::vector<PieceRange> within;
  for (const PieceRange& range : ranges) {
    const int64_t begin = std::max(range.begin, bounds.begin), end = std::min(range.end, bounds.end);
    if (begin < end) within.push_back({begin - bounds.begin + number, end - bounds.begin + number});
  }
  return within;
}

bool has(std::span<const PieceRange> ranges, int64_t piece) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), piece,
                                      [](int64_t number, const PieceRange& range) { return number < range.begin; });
  return after != ranges.begin() && piece < std::prev(after)->end;
}

int64_t piece_count(std::span<const PieceRange> ranges) {
  int64_t count = 0;
  for (const PieceRange& range : ranges) count += range.end - range.begin;
  return count;
}

}  // namespace streamvec
