#include "streamvec/core/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "streamvec/core/testing_no_threads.h"

namespace streamvec {
namespace {

TEST(ThreadTeam, EachMemberWorksOnceARoundAndRunWaitsForAll) {
  for (const int32_t size : {1, 2, 5}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> rounds(static_cast<size_t>(size));
    for (int round = 1; round <= 200; ++round) {
      team.run([&](int32_t member) { ++rounds[static_cast<size_t>(member)]; });
      for (const int count : rounds) ASSERT_EQ(count, round);
    }
  }
}

TEST(ThreadTeam, MembersAreThreadsOfTheirOwnAndTheCallerIsTheFirst) {
  ThreadTeam team(3);
  std::vector<std::thread::id> ids(3);
  team.run([&](int32_t member) { ids[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

TEST(ThreadTeam, IsAsLargeAsThereAreThreads) {
  const NoMoreThreads none;
  ThreadTeam team(3);
  EXPECT_EQ(team.size(), 1);
  int worked = 0;
  team.run([&](int32_t) { ++worked; });
  EXPECT_EQ(worked, 1);
}

TEST(ThreadTeam, ATeamThatNeverWorkedEnds) {
  ThreadTeam team(4);
}

}  // namespace
}  // namespace streamvec
