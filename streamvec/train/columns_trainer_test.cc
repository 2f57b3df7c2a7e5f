#include "streamvec/train/columns_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

// Can be read once; the second time it fails in the middle.
class SourceThatFailsLater final : public Source {
 public:
  Result<int64_t> read(int64_t, Deadline, std::vector<Document>& out) override {
    if (++reads_ > 2 * kTexts - 10) return error(Code::kDataLoss, "the text is damaged");
    if (next_ == kTexts) return 0;
    out.push_back({"some words that come with other words", std::to_string(next_)});
    ++next_;
    return 1;
  }
  Status seek(const std::string& cursor) override {
    next_ = cursor.empty() ? 0 : std::stoll(cursor) + 1;
    return {};
  }
  Capabilities capabilities() const override { return {.replayable = true}; }
  int64_t bytes_total() const override { return kTexts; }
  int64_t bytes_read() const override { return next_; }
  std::string name() const override { return "text"; }

 private:
  static constexpr int64_t kTexts = 40;
  int64_t next_ = 0, reads_ = 0;
};

TEST(Columns, WhatWasLearntBeforeTheTextFailedIsSaved) {
  TrainOptions options;
  options.dim = 8;
  options.min_count = 1;
  options.threads = 1;
  options.cluster.nodes = {"127.0.0.1:0"};
  options.cluster.shard = "columns";
  const TemporaryDirectory directory;
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<SourceThatFailsLater>());
  const Status failed = train(options, std::move(sources), directory.path() + "/model", {}).status();
  if (failed.code() == Code::kUnimplemented) GTEST_SKIP() << failed.message();
  EXPECT_EQ(failed.code(), Code::kDataLoss);
  EXPECT_THAT(failed.message(), HasSubstr("the text is damaged; what was learnt before is saved"));
  const Result<Snapshot> saved = load_snapshot(directory.path() + "/model");
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_GT(saved->step, 0);
}

}  // namespace
}  // namespace streamvec
