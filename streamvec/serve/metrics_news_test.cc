#include "streamvec/serve/metrics_news.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

class MetricsNewsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string line(int step, const std::string& words) {
    return R"({"time":)" + std::to_string(step) + R"(,"step":)" + std::to_string(step) + R"(,"drift":{"words":[)" +
           words + "]}}\n";
  }
  // Written beside and renamed, as programs do that copy a directory.
  void replace(const std::string& lines) const {
    std::ofstream(directory_ + "/new") << lines;
    std::filesystem::rename(directory_ + "/new", directory_ + "/metrics.jsonl");
  }
  size_t told(const std::string& kind) const { return events_.history(kind, 1'000).size(); }

  const std::string directory_ = testing::TempDir() + "/metrics_news_" + std::to_string(::getpid());
  EventBoard events_;
};

TEST_F(MetricsNewsTest, OfAFileThatIsCopiedAgainOnlyNewLinesAreTold) {
  MetricsNews news(directory_, true, events_);
  replace(line(1, "") + line(2, R"("bass")"));
  news.recall();
  EXPECT_EQ(told("metrics"), 2u);
  replace(line(1, "") + line(2, R"("bass")") + line(3, R"("bass","jaguar")"));
  news.follow();
  EXPECT_EQ(told("metrics"), 3u);
  ASSERT_EQ(told("alert"), 2u) << "each word once";
  EXPECT_EQ(events_.last("alert")["words"], EventBoard::Json({"jaguar"}));
}

TEST_F(MetricsNewsTest, WhatWasBeforeATrainingIsItsHistoryAndNotHowThingsStand) {
  replace(line(1, R"("bass")"));
  MetricsNews trains(directory_, false, events_);
  trains.recall();
  EXPECT_EQ(told("metrics"), 1u);
  EXPECT_TRUE(events_.last("metrics").is_null());
  MetricsNews(directory_, true, events_).recall();
  EXPECT_EQ(events_.last("metrics")["step"], 1);
}

}  // namespace
}  // namespace streamvec
