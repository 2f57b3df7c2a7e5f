#include "streamvec/replay/rate_limiter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace streamvec {
namespace {

using std::chrono::milliseconds;

const Deadline kNow = Deadline::after({});

// A limiter with its lock, and nothing behind it.
class Gate {
 public:
  explicit Gate(const RateLimiter::Options& options) : limiter_(options) {}

  Status insert(Deadline deadline = kNow) {
    RateLimiter::Lock lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(limiter_.await_insert(lock, deadline, [] { return true; }));
    limiter_.inserted();
    limiter_.wake();
    return {};
  }
  Result<int64_t> sample(int64_t count_max, Deadline deadline = kNow) {
    RateLimiter::Lock lock(mutex_);
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count,
                               limiter_.await_sample(count_max, lock, deadline, [] { return int64_t{0}; }));
    limiter_.sampled(count);
    limiter_.wake();
    return count;
  }
  template <typename Do>
  void with(const Do& what) {
    const RateLimiter::Lock lock(mutex_);
    what(limiter_);
    limiter_.wake();
  }
  int64_t insert_until_refused() {
    int64_t count = 0;
    while (insert().ok()) ++count;
    return count;
  }

 private:
  std::mutex mutex_;
  RateLimiter limiter_;
};

TEST(RateLimiter, SamplingWaitsUntilTheTableHoldsSizeMin) {
  Gate gate({.samples_per_insert = 4, .size_min = 3, .inserts_ahead_max = 10});
  ASSERT_TRUE(gate.insert().ok());
  ASSERT_TRUE(gate.insert().ok());
  EXPECT_EQ(gate.sample(1).status().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(gate.insert().ok());
  EXPECT_EQ(gate.sample(100).value(), 12);
}

TEST(RateLimiter, SamplesNeverExceedWhatInsertsHaveEarned) {
  Gate gate({.samples_per_insert = 1.5, .size_min = 1, .inserts_ahead_max = 100});
  int64_t sampled = 0;
  for (int64_t inserted = 1; inserted <= 40; ++inserted) {
    ASSERT_TRUE(gate.insert().ok());
    if (const auto count = gate.sample(1'000); count.ok()) sampled += *count;
    EXPECT_EQ(sampled, inserted * 3 / 2);
    EXPECT_EQ(gate.sample(1).status().code(), Code::kDeadlineExceeded);
  }
}

TEST(RateLimiter, InsertingWaitsWhenSamplesLagTooFarBehind) {
  Gate gate({.samples_per_insert = 4, .size_min = 1, .inserts_ahead_max = 10});
  EXPECT_EQ(gate.insert_until_refused(), 10);
  EXPECT_EQ(gate.insert().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(gate.sample(3).value(), 3);
  EXPECT_EQ(gate.insert().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(gate.sample(1).value(), 1);
  EXPECT_TRUE(gate.insert().ok());
}

TEST(RateLimiter, OneSideCanAlwaysGoOn) {
  for (const double ratio : {0.3, 1.0, 1.5, 2.0, 7.7})
    for (const int64_t size_min : {1, 5})
      for (const int64_t ahead : {1, 2, 7}) {
        Gate gate({.samples_per_insert = ratio, .size_min = size_min, .inserts_ahead_max = ahead});
        for (int step = 0; step < 200; ++step) {
          const bool inserted = gate.insert().ok(), sampled = gate.sample(1).ok();
          ASSERT_TRUE(inserted || sampled) << ratio << " " << size_min << " " << ahead;
        }
      }
}

TEST(RateLimiter, WhatWasErasedIsNotOwedAnyMore) {
  Gate gate({.samples_per_insert = 4, .size_min = 1, .inserts_ahead_max = 10});
  ASSERT_EQ(gate.insert_until_refused(), 10);
  gate.with([](RateLimiter& limiter) {
    for (int i = 0; i < 9; ++i) limiter.erased(1);
    EXPECT_EQ(limiter.owed(), 40 - 27);
    limiter.erased(9);
    EXPECT_EQ(limiter.owed(), 13);
  });
  EXPECT_EQ(gate.sample(1).status().code(), Code::kDeadlineExceeded) << "nothing is held";
  EXPECT_TRUE(gate.insert().ok());
}

TEST(RateLimiter, AfterFinishSamplesGoOnUntilNoneIsOwed) {
  Gate gate({.samples_per_insert = 2, .size_min = 100, .inserts_ahead_max = 200});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(gate.insert().ok());
  gate.with([](RateLimiter& limiter) { limiter.finish(); });
  EXPECT_EQ(gate.insert().code(), Code::kFailedPrecondition);
  EXPECT_EQ(gate.sample(4, Deadline::never()).value(), 4);
  EXPECT_EQ(gate.sample(4, Deadline::never()).value(), 2);
  EXPECT_EQ(gate.sample(4, Deadline::never()).value(), 0);
}

TEST(RateLimiter, AWaitEndsWithWhatTheOtherSideDoes) {
  Gate gate({.samples_per_insert = 1, .size_min = 1, .inserts_ahead_max = 1});
  std::thread sampler([&] {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(gate.sample(1, Deadline::never()).value(), 1);
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(gate.insert(Deadline::never()).ok());
  sampler.join();
}

TEST(RateLimiter, CloseWakesEveryWaiter) {
  Gate empty({.samples_per_insert = 1, .size_min = 1, .inserts_ahead_max = 1});
  Gate full({.samples_per_insert = 1, .size_min = 1, .inserts_ahead_max = 1});
  ASSERT_TRUE(full.insert().ok());
  std::thread sampler([&] { EXPECT_EQ(empty.sample(1, Deadline::never()).status().code(), Code::kCancelled); });
  std::thread inserter(
      [&] { EXPECT_EQ(full.insert(Deadline::after(std::chrono::hours(1))).code(), Code::kCancelled); });
  std::this_thread::sleep_for(milliseconds(20));
  for (Gate* gate : {&empty, &full}) gate->with([](RateLimiter& limiter) { limiter.close(); });
  sampler.join();
  inserter.join();
}

TEST(RateLimiter, AWaitEndsAtItsDeadline) {
  Gate gate({.samples_per_insert = 1, .size_min = 1, .inserts_ahead_max = 1});
  EXPECT_EQ(gate.sample(1, Deadline::after(milliseconds(10))).status().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(gate.insert().ok());
  EXPECT_EQ(gate.insert(Deadline::after(milliseconds(10))).code(), Code::kDeadlineExceeded);
}

TEST(RateLimiter, OptionsOutOfRangeAreNamed) {
  EXPECT_TRUE(RateLimiter::check({}).ok());
  for (const double ratio : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_EQ(RateLimiter::check({.samples_per_insert = ratio}).code(), Code::kInvalidArgument);
  EXPECT_EQ(RateLimiter::check({.size_min = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(RateLimiter::check({.inserts_ahead_max = 0}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
