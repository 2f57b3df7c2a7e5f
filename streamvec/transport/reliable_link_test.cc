#include "streamvec/transport/reliable_link.h"

#include <gtest/gtest.h>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

TEST(ReliableLink, DeliversEverythingOnceAndInOrderThroughLossRepetitionAndReordering) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    ReliableLink a({.resend_after_s = 1}), b({.resend_after_s = 1});
    std::vector<std::string> to_a, to_b, got;
    double now = 0;
    for (int step = 0; step < 3'000; ++step, now += 0.1) {
      if (step < 200) a.send("message " + std::to_string(step), now, to_b);
      a.tick(now, to_b);
      for (auto* queue : {&to_a, &to_b}) {
        if (queue->empty()) continue;
        const size_t at = random.below(static_cast<uint32_t>(queue->size()));
        const std::string frame = (*queue)[at];
        if (random.uniform() < 0.8f) queue->erase(queue->begin() + static_cast<std::ptrdiff_t>(at));  // else again
        if (random.uniform() < 0.2f) continue;                                                        // lost
        std::vector<std::string> none;
        ASSERT_TRUE((queue == &to_b ? b.receive(frame, now, got, to_a) : a.receive(frame, now, none, to_b)).ok());
      }
    }
    ASSERT_EQ(got.size(), 200u) << "seed " << seed;
    for (int i = 0; i < 200; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], "message " + std::to_string(i));
  }
}

TEST(ReliableLink, IsIdleOnceEverythingIsAcknowledged) {
  ReliableLink a({}), b({});
  std::vector<std::string> to_a, to_b, got;
  a.send("x", 0, to_b);
  EXPECT_FALSE(a.idle());
  EXPECT_EQ(a.waiting_since_s(5), 0);
  ASSERT_TRUE(b.receive(to_b[0], 0, got, to_a).ok());
  ASSERT_TRUE(a.receive(to_a[0], 0, got, to_b).ok());
  EXPECT_TRUE(a.idle());
}

// An acknowledgement of the message in this frame and of all before it.
std::string acknowledgement_of(const std::string& frame) {
  return std::string(8, '\0') + frame.substr(0, 8);
}

void go_through(ReliableLink& link, size_t bytes, double sent_s, double acknowledged_s) {
  std::vector<std::string> sent, got, back;
  link.send(std::string(bytes, 'x'), sent_s, sent);
  ASSERT_TRUE(link.receive(acknowledgement_of(sent.back()), acknowledged_s, got, back).ok());
  ASSERT_TRUE(link.idle());
}

TEST(ReliableLink, SaysWhatItHasCarriedAtTheBestOfLate) {
  ReliableLink link({});
  EXPECT_EQ(link.bytes_per_s(), 0);
  go_through(link, 100, 0, 0.000'001);
  go_through(link, 1'000'000, 1, 1.5);
  EXPECT_NEAR(link.bytes_per_s(), 2e6, 10);
  go_through(link, 1'000'000, 2, 2.1);
  go_through(link, 1'000'000, 3, 3.2);  // the other side was at work
  EXPECT_NEAR(link.bytes_per_s(), 1e7, 1e3);
  go_through(link, 100'000, 3.5, 3.501);  // what passes at once because it is little
  EXPECT_NEAR(link.bytes_per_s(), 1e7, 1e3);
  for (int i = 0; i < 6; ++i) go_through(link, 1'000'000, 4 + i, 5 + i);
  EXPECT_NEAR(link.bytes_per_s(), 5e6, 1e2);
  go_through(link, 1'000'000, 20, 21);
  EXPECT_NEAR(link.bytes_per_s(), 1e6, 10);
}

TEST(ReliableLink, ShortMessagesTellHowLongTheWayIsAndNothingOfTheWire) {
  ReliableLink link({});
  go_through(link, 100, 1, 1.25);
  EXPECT_EQ(link.bytes_per_s(), 0);
  go_through(link, 1'000'000, 2, 2.75);  // half a second of it on the wire
  EXPECT_NEAR(link.bytes_per_s(), 2e6, 1);
  go_through(link, 1'000'000, 3, 3.26);  // hardly longer than the way: a quarter of its time at least
  EXPECT_NEAR(link.bytes_per_s(), 1e6 / 0.065, 1e3);
}

TEST(ReliableLink, AWireThatIsTooSlowForTheFirstAttemptIsKnownAllTheSame) {
  ReliableLink link({.resend_after_s = 1});
  go_through(link, 100, 0, 0.001);
  std::vector<std::string> sent, got, back;
  link.send(std::string(1'000'000, 'x'), 2, sent);
  link.tick(3.5, sent);
  ASSERT_EQ(sent.size(), 2u);
  ASSERT_TRUE(link.receive(acknowledgement_of(sent[0]), 6, got, back).ok());
  EXPECT_NEAR(link.bytes_per_s(), 250'000, 100);
}

TEST(ReliableLink, FramesThatNobodySendsAreRefused) {
  ReliableLink link({});
  std::vector<std::string> messages, frames;
  EXPECT_FALSE(link.receive("short", 0, messages, frames).ok());
  EXPECT_FALSE(link.receive(std::string(16, '\x7f'), 0, messages, frames).ok());  // acknowledges what was not sent
}

}  // namespace
}  // namespace streamvec
