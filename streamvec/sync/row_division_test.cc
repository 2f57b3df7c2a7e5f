#include "streamvec/sync/row_division.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(RowDivision, SaysOfEveryRowWhatRendezvousHashingSays) {
  const std::vector<NodeId> servers = {2, 3, 7, 11};
  const RowDivision division(servers, 500);
  size_t rows = 0;
  for (const NodeId server : servers) {
    const auto own = division.rows_of(server);
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    for (const RowKey key : own) EXPECT_EQ(owner_of(key, servers), server);
    rows += own.size();
  }
  EXPECT_EQ(rows, 500u);
  for (RowKey key = 0; key < 500; ++key) EXPECT_EQ(division.owner(key), owner_of(key, servers));
}

TEST(RowDivision, WhoTakesNoPartOwnsNothing) {
  EXPECT_TRUE(RowDivision({2, 3}, 50).rows_of(5).empty());
}

}  // namespace
}  // namespace streamvec
