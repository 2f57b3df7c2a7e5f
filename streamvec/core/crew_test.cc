#include "streamvec/core/crew.h"

#include <gtest/gtest.h>

#include <atomic>

namespace streamvec {
namespace {

TEST(Crew, DoesEveryPartOnceAndIsDoneThen) {
  for (const int32_t helpers : {0, 1, 3}) {
    Crew crew(helpers);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> done(static_cast<size_t>(round % 9), 0);
      crew.share(round % 9, [&](int64_t part) { ++done[static_cast<size_t>(part)]; });
      for (const int times : done) ASSERT_EQ(times, 1);
    }
  }
}

TEST(Crew, PartsAreDoneSideBySide) {
  Crew crew(3);
  std::atomic<int> there{0};
  // Every part waits for the other three: one thread alone would never end.
  crew.share(4, [&](int64_t) {
    ++there;
    while (there < 4) std::this_thread::yield();
  });
  EXPECT_EQ(there, 4);
  crew.share(0, [](int64_t) { FAIL(); });
}

TEST(Crew, CountsWhatTheHelpersHaveUsed) {
  Crew crew(1);
  std::atomic<int> there{0};
  const std::thread::id caller = std::this_thread::get_id();
  crew.share(2, [&](int64_t) {
    ++there;
    while (there < 2) std::this_thread::yield();  // one part each
    volatile int64_t sum = 0;
    for (int64_t i = 0; std::this_thread::get_id() != caller && i < 5'000'000; ++i) sum = sum + i;
  });
  while (crew.helped_s() == 0) std::this_thread::yield();  // told after its last part
  EXPECT_GT(crew.helped_s(), 1e-4);
}

}  // namespace
}  // namespace streamvec
