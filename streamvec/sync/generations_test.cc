#include "streamvec/sync/generations.h"

#include <gtest/gtest.h>

#include <vector>

namespace streamvec {
namespace {

Message said_at(uint64_t stamp) {
  Message message;
  message.stamp = stamp;
  return message;
}

TEST(EarlyMessages, WaitUntilTheirChangesAreHeardOfAndAreNeverTakenFromOneThatIsForgotten) {
  Generations generations(4);
  generations.go_to(5);
  EarlyMessages early;
  for (const NodeId from : {1u, 2u}) {
    Message now = said_at(5), later = said_at(7), behind = said_at(5);
    EXPECT_FALSE(early.keep(from, now, generations));
    EXPECT_TRUE(early.keep(from, later, generations));
    EXPECT_TRUE(early.keep(from, behind, generations)) << "in order";
  }
  early.forget(1);
  generations.go_to(9);
  std::vector<std::pair<NodeId, uint64_t>> taken;
  early.release(generations, [&](NodeId from, const Message& message) { taken.emplace_back(from, message.stamp); });
  EXPECT_EQ(taken, (std::vector<std::pair<NodeId, uint64_t>>{{2, 7}, {2, 5}}));
  Message late = said_at(8);
  EXPECT_TRUE(early.keep(1, late, generations)) << "whatever it says";
  early.release(generations, [](NodeId, const Message&) { FAIL(); });
}

}  // namespace
}  // namespace streamvec
