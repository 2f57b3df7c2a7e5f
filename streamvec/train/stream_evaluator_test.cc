// The history that a stream leaves, over runs that end in the middle.
#include "streamvec/train/stream_evaluator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "streamvec/eval/history.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/train/trainer.h"

namespace streamvec {
namespace {

class HistoryOfAStream : public ::testing::Test {
 protected:
  static constexpr int64_t kRecords = 300, kTokens = kRecords * 5;

  HistoryOfAStream() {
    options_.dim = 8;
    options_.threads = 1;
    options_.min_count = 1;
    options_.stream.on = true;
    options_.stream.evaluate_every_s = 0;
    options_.checkpoint_every_s = 0;
    std::ofstream file(directory_.path() + "/records.tsv");
    for (int64_t i = 0; i < kRecords; ++i) file << i << "\tsome words of day " << i % 7 << "\n";
  }

  std::string model() const { return directory_.path() + "/model"; }
  Status train_on_records() {
    return train(options_, {"tsv:" + directory_.path() + "/records.tsv?id=1&text=2"}, model(), {}).status();
  }
  std::vector<HistoryEntry> entries() const { return History(model()).list().value(); }

  TemporaryDirectory directory_;
  TrainOptions options_;
};

TEST_F(HistoryOfAStream, ARunThatHasNothingLeftToReadWritesTheMomentThatAKillKeptOut) {
  ASSERT_TRUE(train_on_records().ok());
  std::filesystem::remove_all(model() + "/history");  // as if killed when all was read and nothing remembered
  ASSERT_TRUE(train_on_records().ok());
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0].moment.tokens, kTokens);
}

TEST_F(HistoryOfAStream, ARunThatHasNothingLeftToReadAddsNoMomentToAHistoryThatIsWhole) {
  ASSERT_TRUE(train_on_records().ok());
  const auto before = std::filesystem::last_write_time(entries().at(0).path);
  ASSERT_TRUE(train_on_records().ok());
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(std::filesystem::last_write_time(entries()[0].path), before);
}

}  // namespace
}  // namespace streamvec
