#include "streamvec/train/cursor_trail.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(CursorTrail, FindsTheLastPlaceBeforeAPieceWithBoundedMemory) {
  CursorTrail trail;
  constexpr int64_t kPieces = 3 * static_cast<int64_t>(CursorTrail::kKept);
  for (int64_t i = 1; i < kPieces; ++i) trail.note(i, std::to_string(i));
  for (const int64_t index : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{70'001}, kPieces - 1}) {
    const auto [known, cursor] = trail.before(index);
    EXPECT_LE(known, index);
    EXPECT_GT(known, index - 8);
    EXPECT_EQ(cursor, known == 0 ? "" : std::to_string(known));
  }
}

}  // namespace
}  // namespace streamvec
