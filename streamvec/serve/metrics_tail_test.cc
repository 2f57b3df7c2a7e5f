#include "streamvec/serve/metrics_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MetricsTailTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::ofstream append(const std::string& name = "metrics.jsonl") const {
    return std::ofstream(directory_ + "/" + name, std::ios::app);
  }
  std::vector<std::string> look() {
    std::vector<std::string> lines;
    tail_.read([&](const std::string& line, bool again) { lines.push_back((again ? "again " : "") + line); });
    return lines;
  }

  const std::string directory_ = testing::TempDir() + "/metrics_tail_" + std::to_string(::getpid());
  MetricsTail tail_{directory_};
};

TEST_F(MetricsTailTest, GivesAllLinesFirstAndThenThoseThatCome) {
  append() << "one\ntwo\n";
  EXPECT_THAT(look(), ElementsAre("one", "two"));
  EXPECT_THAT(look(), IsEmpty());
  append() << "three\nfo";
  EXPECT_THAT(look(), ElementsAre("three"));
  append() << "ur\n";
  EXPECT_THAT(look(), ElementsAre("four"));
}

TEST_F(MetricsTailTest, GivesEveryLineOfALongFile) {
  constexpr int kLines = 20'000;
  {
    std::ofstream file = append();
    for (int i = 0; i < kLines; ++i) file << i << std::string(200, '.') << '\n';
  }
  const std::vector<std::string> lines = look();
  ASSERT_EQ(lines.size(), size_t{kLines});
  for (int i = 0; i < kLines; ++i) ASSERT_EQ(lines[static_cast<size_t>(i)], std::to_string(i) + std::string(200, '.'));
}

TEST_F(MetricsTailTest, BeginsWithTheFileBeforeAndFollowsToTheNext) {
  append("metrics.jsonl.1") << "old\n";
  append() << "new\n";
  EXPECT_THAT(look(), ElementsAre("old", "new"));
  std::filesystem::rename(directory_ + "/metrics.jsonl", directory_ + "/metrics.jsonl.1");
  EXPECT_THAT(look(), IsEmpty());
  append() << "newer\n";
  EXPECT_THAT(look(), ElementsAre("again newer"));
}

TEST_F(MetricsTailTest, WaitsForAFileThatIsNotThereYet) {
  EXPECT_THAT(look(), IsEmpty());
  append() << "first\n";
  EXPECT_THAT(look(), ElementsAre("first"));
}

}  // namespace
}  // namespace streamvec
