// Sets of pieces of the text, as ranges: what is finished is long stretches with few gaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace streamvec {

// Pieces of the text, from `begin` to before `end`.
struct PieceRange {
  int64_t begin = 0, end = 0;
  friend bool operator==(const PieceRange&, const PieceRange&) = default;
};

// To ranges whose pieces are all before it.
void append(int64_t piece, std::vector<PieceRange>& ranges);
// The same pieces, each once, in as few ranges as they need, rising. Ranges that end before they begin have none.
std::vector<PieceRange> joined(std::vector<PieceRange> ranges);
// Those of them that are in `bounds`, numbered so that `bounds.begin` becomes `number`.
std::vector<PieceRange> renumbered(std::span<const PieceRange> ranges, PieceRange bounds, int64_t number);
// Of ranges as joined() has them.
bool has(std::span<const PieceRange> ranges, int64_t piece);
int64_t piece_count(std::span<const PieceRange> ranges);

}  // namespace streamvec
