#include "streamvec/eval/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Contains;
using testing::Field;
using testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

StreamMetrics example() {
  StreamMetrics metrics;
  metrics.time_s = 1'700'000'000.25;
  metrics.step = 12;
  metrics.tokens = 34'567;
  metrics.prequential_loss = 2.5;
  metrics.loss = kNaN;
  metrics.pip.emplace();
  metrics.pip->model.relative = 0.7;
  metrics.pip->references.emplace_back("zero", PipFigures{});
  metrics.similarity = {{"wordsim", 0.6}};
  metrics.vocab = 1'000;
  metrics.admitted = 1'200;
  metrics.evicted = 200;
  metrics.sources = {{.name = "feed\xff", .lag_s = kNaN, .errors = 3, .state = "failing"}};
  metrics.bottleneck = "train";
  metrics.stages = {{"ingest", 0.2}};
  metrics.drift_alerts = 1;
  metrics.drift_words = {"prompt"};
  return metrics;
}

TEST(StreamMetrics, AreOneObjectWithNullForWhatIsNotKnown) {
  const auto json = to_json(example());
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["prequential_loss"], 2.5);
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["pip"]["relative"], 0.7);
  EXPECT_EQ(json["pip"]["references"]["zero"]["cka"], 0.0);
  EXPECT_EQ(json["similarity"]["wordsim"], 0.6);
  EXPECT_EQ(json["vocab"]["evicted"], 200);
  EXPECT_EQ(json["sources"][0]["errors"], 3);
  EXPECT_TRUE(json["sources"][0]["lag_s"].is_null());
  EXPECT_EQ(json["bottleneck"], "train");
  EXPECT_EQ(json["stages"]["ingest"], 0.2);
  EXPECT_EQ(json["drift"]["words"][0], "prompt");
  EXPECT_TRUE(to_json(StreamMetrics())["pip"].is_null());
  EXPECT_TRUE(to_json(StreamMetrics())["bottleneck"].is_null());
}

TEST(StreamMetrics, NameNoCredentialsOfSources) {
  StreamMetrics metrics;
  metrics.sources = {{.name = "nats://me:secret@h/s", .state = "failing", .last_error = "lost nats://me:secret@h/s"}};
  const auto json = to_json(metrics);
  EXPECT_EQ(json["sources"][0]["name"], "nats://h/s");
  EXPECT_EQ(json["sources"][0]["last_error"], "lost nats://h/s");
  EXPECT_THAT(to_scalars(metrics), Contains(Field(&Scalar::tag, "source_errors/nats://h/s")));
}

TEST(StreamMetrics, AreScalarsInGroups) {
  const std::vector<Scalar> scalars = to_scalars(example());
  for (const char* tag : {"loss/prequential", "pip/relative", "pip_zero/cka", "similarity/wordsim", "busy/ingest",
                          "source_errors/feed\xff", "drift/alerts"})
    EXPECT_THAT(scalars, Contains(Field(&Scalar::tag, tag))) << tag;
}

class MetricsLogTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "metrics." + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(dir_);
    fs::create_directory(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  // Every line parsed; one that is no JSON is null.
  std::vector<Json> lines(const std::string& name = "metrics.jsonl") const {
    std::vector<Json> parsed;
    std::ifstream in(dir_ + "/" + name);
    for (std::string line; std::getline(in, line);) {
      Json json = Json::parse(line, nullptr, false);
      parsed.push_back(json.is_discarded() ? Json() : json);
    }
    return parsed;
  }
  std::string dir_;
};

TEST_F(MetricsLogTest, EveryWriteIsALineAndAnEvent) {
  MetricsLog log = MetricsLog::open(dir_).value();
  ASSERT_TRUE(log.write(example()).ok());
  ASSERT_THAT(lines(), SizeIs(1));
  ASSERT_TRUE(log.write(example()).ok());
  ASSERT_THAT(lines(), SizeIs(2));
  EXPECT_EQ(lines()[1]["sources"][0]["name"], "feed\xef\xbf\xbd");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ + "/tensorboard"), fs::directory_iterator()), 1);
}

TEST_F(MetricsLogTest, GoesOnAfterALineThatACrashCutShort) {
  std::ofstream(dir_ + "/metrics.jsonl") << "{\"step\":1}\n{\"step\":";
  MetricsLog log = MetricsLog::open(dir_, {.tensorboard = false}).value();
  ASSERT_TRUE(log.write(example()).ok());
  ASSERT_THAT(lines(), SizeIs(3));
  EXPECT_EQ(lines()[0]["step"], 1);
  EXPECT_TRUE(lines()[1].is_null());
  EXPECT_EQ(lines()[2]["step"], 12);
  EXPECT_FALSE(fs::exists(dir_ + "/tensorboard"));
}

TEST_F(MetricsLogTest, ALargeFileIsSetAsideAndTheOneBeforeItReplaced) {
  MetricsLog log = MetricsLog::open(dir_, {.bytes_max = 3'000, .tensorboard = false}).value();
  StreamMetrics metrics = example();
  for (metrics.step = 0; metrics.step < 20; ++metrics.step) ASSERT_TRUE(log.write(metrics).ok());
  EXPECT_LE(fs::file_size(dir_ + "/metrics.jsonl"), 3'000u);
  EXPECT_LE(fs::file_size(dir_ + "/metrics.jsonl.1"), 3'000u);
  EXPECT_EQ(lines().back()["step"], 19);
  EXPECT_EQ(lines("metrics.jsonl.1").back()["step"].get<int>() + 1, lines().front()["step"].get<int>());
}

TEST_F(MetricsLogTest, AnErrorNamesThePath) {
  EXPECT_THAT(MetricsLog::open(dir_ + "/nowhere").status().message(), testing::HasSubstr("nowhere/metrics.jsonl"));
}

}  // namespace
}  // namespace streamvec
