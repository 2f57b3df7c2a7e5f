#include "streamvec/serve/client_table.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

using std::chrono::milliseconds;
const auto kStart = ClientTable::Clock::time_point(std::chrono::hours(1));

HttpLimits limits(int64_t connections, double rate) {
  HttpLimits limits;
  limits.client_connections_max = connections;
  limits.client_rate_max = rate;
  return limits;
}

TEST(ClientTable, TurnsAwayOneConnectionTooManyOfAClientAndNotOfAnother) {
  ClientTable table(limits(2, 0));
  EXPECT_TRUE(table.enter("192.0.2.1", kStart));
  EXPECT_TRUE(table.enter("192.0.2.1", kStart));
  EXPECT_FALSE(table.enter("192.0.2.1", kStart));
  EXPECT_TRUE(table.enter("192.0.2.2", kStart));
  table.leave("192.0.2.1", kStart);
  EXPECT_TRUE(table.enter("192.0.2.1", kStart));
}

TEST(ClientTable, LetsAClientAskAtItsRate) {
  ClientTable table(limits(0, 10));
  int answered = 0;
  for (int i = 0; i < 30; ++i) answered += table.may_ask("192.0.2.1", kStart);
  EXPECT_EQ(answered, 10) << "a second's worth at once";
  for (int i = 1; i <= 100; ++i) answered += table.may_ask("192.0.2.1", kStart + milliseconds(10 * i));
  EXPECT_NEAR(answered, 20, 1);
}

TEST(ClientTable, KnowsAClientThatHasLeftUntilItsBucketIsFull) {
  ClientTable table(limits(0, 10));
  for (int i = 0; i < 10; ++i) table.may_ask("192.0.2.1", kStart);
  table.sweep(kStart + milliseconds(100));
  EXPECT_TRUE(table.may_ask("192.0.2.1", kStart + milliseconds(100)));
  EXPECT_FALSE(table.may_ask("192.0.2.1", kStart + milliseconds(100))) << "it came back with an empty bucket";
  table.sweep(kStart + std::chrono::seconds(10));
  EXPECT_EQ(table.size(), 0u);
}

TEST(ClientTable, LimitsThisMachineOnlyWhenAsked) {
  HttpLimits given = limits(1, 1);
  ClientTable lenient(given);
  EXPECT_TRUE(lenient.enter("127.0.0.1", kStart) && lenient.enter("127.0.0.1", kStart));
  EXPECT_TRUE(lenient.may_ask("::1", kStart) && lenient.may_ask("::1", kStart));
  given.loopback_limits = true;
  ClientTable strict(given);
  EXPECT_FALSE(strict.enter("127.0.0.1", kStart) && strict.enter("127.0.0.1", kStart));
}

}  // namespace
}  // namespace streamvec
