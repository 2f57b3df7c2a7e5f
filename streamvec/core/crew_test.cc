#include "streamvec/core/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace streamvec {
namespace {

// A thread that looks in until it is to leave.
class Visitor {
 public:
  explicit Visitor(Crew& crew)
      : thread_([this, &crew] {
          const CrewVisit visit(&crew);
          come_ = true;
          while (!over_) crew.look_in();
        }) {
    while (!come_) std::this_thread::yield();
  }
  std::thread::id id() const { return thread_.get_id(); }
  void leave() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> come_ = false, over_ = false;
  std::thread thread_;
};

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

TEST(Crew, ThreadsThatLookInDoTheWorkAndThoseThatStandBySleepOn) {
  Crew crew(2);
  Visitor visitor(crew);
  std::atomic<int> there{0}, strangers{0};
  const std::set<std::thread::id> known = {std::this_thread::get_id(), visitor.id()};
  for (int round = 0; round < 50; ++round) {
    there = 0;
    // One part each: the caller alone would never end.
    crew.share(2, [&](int64_t) {
      strangers += known.count(std::this_thread::get_id()) == 0;
      ++there;
      while (there < 2) std::this_thread::yield();
    });
  }
  EXPECT_EQ(strangers, 0);
  EXPECT_GT(crew.helped_s(), 0);
  visitor.leave();
  there = 0;
  crew.share(3, [&](int64_t) {  // and now those that stand by
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  EXPECT_EQ(there, 3);
}

TEST(Crew, WithoutThreadsThatStandByThoseThatLookInAreEnough) {
  Crew crew(0);
  Visitor visitor(crew);
  std::atomic<int> there{0};
  crew.share(2, [&](int64_t) {
    ++there;
    while (there < 2) std::this_thread::yield();
  });
  EXPECT_EQ(there, 2);
  visitor.leave();
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
