#include "streamvec/transport/nccl/nccl_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "streamvec/cuda/card_testing.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

// With as many ranks as there are cards: one card, one rank.
class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    STREAMVEC_SKIP_WITHOUT_CARD();
    ranks_ = count_cards().value();
    const auto group = make_nccl_group();
    if (!group.ok()) GTEST_SKIP() << group.status().message();
    group_ = *group;
  }

  void run_ranks(const std::function<void(Collective&)>& on_rank) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([&, rank] {
        const auto joined = join_nccl_group(group_, rank, ranks_, rank, soon());
        ASSERT_TRUE(joined.ok()) << joined.status().message();
        EXPECT_EQ((*joined)->rank(), rank);
        EXPECT_EQ((*joined)->ranks(), ranks_);
        on_rank(**joined);
      });
    for (std::thread& thread : threads) thread.join();
  }

  int ranks_ = 0;
  std::string group_;
};

TEST(NcclLibrary, IsThereOrItIsSaidWhyNot) {
  const auto group = make_nccl_group();
  if (!group.ok()) {
    EXPECT_EQ(group.status().code(), Code::kUnavailable);
    EXPECT_THAT(group.status().message(), HasSubstr("NCCL"));
  } else {
    EXPECT_NE(*group, make_nccl_group().value());
  }
}

TEST_F(Nccl, LeavesEveryRankWithTheMean) {
  run_ranks([&](Collective& group) {
    for (const size_t size : {size_t{1}, size_t{1'000}, size_t{300'000}, size_t{0}}) {
      std::vector<float> values(size);
      for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 97) + static_cast<float>(group.rank());
      ASSERT_TRUE(group.all_reduce_mean(values, soon()).ok());
      const float more = static_cast<float>(ranks_ - 1) / 2;
      for (size_t i = 0; i < size; ++i) ASSERT_FLOAT_EQ(values[i], static_cast<float>(i % 97) + more);
    }
  });
}

TEST_F(Nccl, GathersAndHandsOutBytesOfAnySize) {
  run_ranks([&](Collective& group) {
    std::vector<std::string> all;
    const auto of_rank = [](int rank) { return std::string(static_cast<size_t>(3 * rank + 2), 'a'); };
    ASSERT_TRUE(group.all_gather(of_rank(group.rank()), all, soon()).ok());
    ASSERT_EQ(all.size(), static_cast<size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], of_rank(rank));
    ASSERT_TRUE(group.all_gather("", all, soon()).ok());
    EXPECT_EQ(all.front(), "");
    std::string bytes = group.rank() == ranks_ - 1 ? "from the last" : "";
    ASSERT_TRUE(group.broadcast(bytes, ranks_ - 1, soon()).ok());
    EXPECT_EQ(bytes, "from the last");
  });
}

TEST_F(Nccl, ARankThatWaitsForOthersInVainEndsAtTheDeadline) {
  const auto joined = join_nccl_group(group_, 0, ranks_ + 1, 0, Deadline::after(std::chrono::seconds(2)));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kDeadlineExceeded);
}

TEST_F(Nccl, CardsAndGroupsThatAreNotThereAreRefused) {
  EXPECT_THAT(join_nccl_group(group_, 0, 1, ranks_, soon()).status().message(), HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(join_nccl_group("short", 0, 1, 0, soon()).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
