#include "streamvec/transport/nccl/nccl_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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

// NCCL takes processes that name different hosts for ranks on several machines, and lets them share a card.
constexpr int kProcesses = 3;
constexpr const char* kPartVariable = "STREAMVEC_TEST_NCCL_PART";  // rank, whether the last one leaves early, group

std::string in_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> shift & 15];
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

// This program once for each rank, on the first card; what each exits with.
std::vector<int> run_processes(const std::string& group, bool last_leaves) {
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  bool has_part = false;
  for (int i = 0; i < tests.total_test_suite_count(); ++i)
    has_part = has_part || tests.GetTestSuite(i)->name() == std::string("NcclPart");
  EXPECT_TRUE(has_part);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<int> codes(kProcesses);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kProcesses; ++rank)
    threads.emplace_back([&, rank] {
      std::ostringstream command;
      command << "NCCL_HOSTID=host" << rank << " " << kPartVariable << "='" << rank << " " << last_leaves << " "
              << in_hex(group) << "' '" << program << "' --gtest_filter=NcclPart.*";
      codes[static_cast<size_t>(rank)] = std::system(command.str().c_str());
    });
  for (std::thread& thread : threads) thread.join();
  return codes;
}

void take_part(Collective& group) {
  for (const size_t size : {size_t{1'000}, size_t{1} << 20}) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 97) * static_cast<float>(group.rank());
    ASSERT_TRUE(group.all_reduce_mean(values, soon()).ok());
    for (size_t i = 0; i < size; ++i) ASSERT_FLOAT_EQ(values[i], static_cast<float>(i % 97));
  }
  std::vector<std::string> all;
  ASSERT_TRUE(group.all_gather(std::string(static_cast<size_t>(group.rank()), 'x'), all, soon()).ok());
  EXPECT_THAT(all, ::testing::ElementsAre("", "x", "xx"));
  std::string bytes = group.rank() == 1 ? "from the second" : "";
  ASSERT_TRUE(group.broadcast(bytes, 1, soon()).ok());
  EXPECT_EQ(bytes, "from the second");
}

// Run by the two tests below, each time in a process of its own.
TEST(NcclPart, IsThatOfOneProcess) {
  const char* const part = std::getenv(kPartVariable);
  if (part == nullptr) GTEST_SKIP() << "part of other tests";
  std::istringstream told(part);
  int rank = 0;
  bool last_leaves = false;
  std::string group;
  told >> rank >> last_leaves >> group;
  const auto joined = join_nccl_group(from_hex(group), rank, kProcesses, 0, soon());
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  if (!last_leaves) return take_part(**joined);
  if (rank == kProcesses - 1) std::_Exit(0);  // without a word
  std::vector<float> values(1'000);
  const Status reduced = (*joined)->all_reduce_mean(values, Deadline::after(std::chrono::seconds(5)));
  EXPECT_FALSE(reduced.ok());
  EXPECT_EQ((*joined)->all_reduce_mean(values, soon()).message(), reduced.message()) << "and stays so";
}

TEST_F(Nccl, ProcessesReduceGatherAndHandOut) {
  EXPECT_THAT(run_processes(group_, false), ::testing::Each(0));
}

TEST_F(Nccl, AProcessThatDiesIsMissedByTheOthers) {
  EXPECT_THAT(run_processes(group_, true), ::testing::Each(0));
}

}  // namespace
}  // namespace streamvec
