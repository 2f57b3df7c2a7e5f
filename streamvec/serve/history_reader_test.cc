#include "streamvec/serve/history_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "streamvec/model/common_part_testing.h"
#include "streamvec/serve/test_models.h"

namespace streamvec {
namespace {

using testing::Each;
using testing::StartsWith;

// A model directory with a history in which g0w0 goes over to the words of group 1 after the second moment.
class HistoryReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/history_reader_" + std::to_string(::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    History history(directory_);
    for (int64_t step = 1; step <= 4; ++step)
      ASSERT_TRUE(history.add(*model_at(step), {step * 10, step * 1'000'000, step * 100}).ok());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::shared_ptr<Snapshot> model_at(int64_t step) {
    auto snapshot = grouped_snapshot(4, 40, 16);
    snapshot->step = step * 10;
    if (step <= 2) return snapshot;
    const Slot mover = snapshot->vocabulary.find("g0w0"), goal = snapshot->vocabulary.find("g1w0");
    for (int64_t j = 0; j < 16; ++j)
      snapshot->input.row(mover)[j] = snapshot->input.row(goal)[j] + (j % 2 == 0 ? 0.05f : -0.05f);
    return snapshot;
  }

  std::string directory_;
};

TEST_F(HistoryReaderTest, FollowsAWordFromOneNeighbourhoodToAnother) {
  HistoryReader reader(directory_);
  const auto model = served(model_at(5));
  const auto path = reader.path(*model, "g0w0", 5);
  ASSERT_TRUE(path.ok()) << path.status().message();
  ASSERT_EQ(path->size(), 5u) << "four moments and the model that is served";
  EXPECT_THAT((*path)[0].words, Each(StartsWith("g0")));
  EXPECT_THAT((*path)[1].words, Each(StartsWith("g0")));
  EXPECT_THAT((*path)[2].words, Each(StartsWith("g1")));
  EXPECT_THAT((*path)[4].words, Each(StartsWith("g1")));
  EXPECT_EQ((*path)[0].when.time_s, 1'000'000);
  EXPECT_LT((*path)[0].cosine, 0.5);
  EXPECT_NEAR((*path)[3].cosine, 1, 1e-5);
  EXPECT_LT((*path)[0].overlap, 0.1);
  EXPECT_NEAR((*path)[4].overlap, 1, 1e-9);
  for (const Station& station : *path) EXPECT_EQ(station.neighbours.size(), 5u);
}

// What all vectors have in common says nothing of a word.
TEST_F(HistoryReaderTest, HasTheCosinesThatDriftHas) {
  const auto with_common = [](int64_t step) {
    auto snapshot = model_at(step);
    for (Slot slot = 0; slot < snapshot->vocabulary.size(); ++slot)
      for (int64_t j = 0; j < 16; ++j) snapshot->input.row(slot)[j] += 0.4f;
    return snapshot;
  };
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
  History history(directory_);
  for (int64_t step = 1; step <= 4; ++step)
    ASSERT_TRUE(history.add(*with_common(step), {step * 10, step * 1'000'000, step * 100}).ok());
  HistoryReader reader(directory_);
  const std::vector<std::string> words = {"g0w0", "g3w7"};
  for (int round = 0; round < 2; ++round)
    for (size_t w = 0; w < words.size(); ++w) {
      const auto path = reader.path(*served(with_common(5)), words[w], 5).value();
      ASSERT_EQ(path.size(), 5u);
      for (int64_t step = 1; step <= 5; ++step) {
        const auto compared = compare_words(*with_common(step), *with_common(4), words).value();
        EXPECT_NEAR(path[static_cast<size_t>(step - 1)].cosine, compared[w].cosine, 1e-4) << words[w] << " at " << step;
      }
    }
}

TEST_F(HistoryReaderTest, ComparesWholeVectorsWithWholeOnes) {
  const std::vector<float> common(16, 0.4f);
  for (int64_t step = 5; step <= 6; ++step) {
    auto snapshot = model_at(step);
    add_common_part(*snapshot, common);
    if (step == 5) {
      ASSERT_TRUE(History(directory_).add(*snapshot, {50, 5'000'000, 500}).ok());
    } else {
      const auto path = HistoryReader(directory_).path(*served(snapshot), "g0w0", 5).value();
      ASSERT_EQ(path.size(), 6u);
      EXPECT_NEAR(path[5].cosine, 1, 1e-5) << "the same vectors as in the newest moment";
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(path[4].neighbours[i].cosine, path[5].neighbours[i].cosine);
    }
  }
}

TEST_F(HistoryReaderTest, SaysWhenAWordWasNotKnownYet) {
  HistoryReader reader(directory_);
  auto snapshot = model_at(5);
  auto grown = std::make_shared<Snapshot>();
  grown->step = snapshot->step;
  grown->input = Matrix::make(snapshot->input.rows() + 1, 16).value();
  for (Slot slot = 0; slot < snapshot->vocabulary.size(); ++slot) {
    grown->vocabulary.add(snapshot->vocabulary.word(slot), snapshot->vocabulary.count(slot));
    std::copy_n(snapshot->input.row(slot), 16, grown->input.row(slot));
  }
  grown->vocabulary.add("newcomer", 3);
  std::copy_n(snapshot->input.row(0), 16, grown->input.row(snapshot->vocabulary.size()));
  const auto path = reader.path(*served(grown), "newcomer", 3).value();
  ASSERT_EQ(path.size(), 5u);
  EXPECT_EQ(path[0].count, 0);
  EXPECT_TRUE(path[0].neighbours.empty());
  EXPECT_EQ(path[4].count, 3);
  EXPECT_EQ(reader.path(*served(grown), "nowhere", 3).status().code(), Code::kNotFound);
}

TEST_F(HistoryReaderTest, AnswersTheSameAfterForgettingWhatItRead) {
  HistoryReader large(directory_), small(directory_, {.bytes_max = 1});
  const auto model = served(model_at(5));
  for (int round = 0; round < 2; ++round)
    for (const char* word : {"g0w0", "g3w7"}) {
      const auto a = large.path(*model, word, 3).value(), b = small.path(*model, word, 3).value();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].words, b[i].words);
    }
}

TEST_F(HistoryReaderTest, FollowsAnotherModelThatTakesTheDirectory) {
  HistoryReader reader(directory_);
  const auto model = served(model_at(5));
  EXPECT_THAT(reader.path(*model, "g0w0", 5).value()[2].words, Each(StartsWith("g1")));
  EXPECT_EQ(reader.drift(*model, "10", "40", 3).value().report.moved.at(0).word, "g0w0");
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
  History history(directory_);
  for (int64_t step = 1; step <= 4; ++step)
    ASSERT_TRUE(history.add(*model_at(1), {step * 10, step * 1'000'000, step * 100}).ok());
  const auto other = served(model_at(1));
  EXPECT_THAT(reader.path(*other, "g0w0", 5).value()[2].words, Each(StartsWith("g0")));
  const DriftAnswer found = reader.drift(*other, "10", "40", 3).value();
  for (const WordDrift& word : found.report.moved) EXPECT_NEAR(word.change, 0, 1e-3);
}

TEST_F(HistoryReaderTest, HasOneStationWithoutAHistory) {
  HistoryReader reader(directory_ + "/nowhere");
  EXPECT_EQ(reader.path(*served(model_at(1)), "g0w0", 3).value().size(), 1u);
  EXPECT_EQ(reader.drift(*served(model_at(1)), "", "", 5).status().code(), Code::kFailedPrecondition);
}

TEST_F(HistoryReaderTest, FindsTheWordThatMovedBetweenTwoMoments) {
  HistoryReader reader(directory_);
  const auto found = reader.drift(*served(model_at(5)), "10", "40", 3);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->from.step, 10);
  EXPECT_EQ(found->to.step, 40);
  ASSERT_FALSE(found->report.moved.empty());
  EXPECT_EQ(found->report.moved[0].word, "g0w0");
  EXPECT_EQ(reader.drift(*served(model_at(5)), "40", "10", 3).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(reader.drift(*served(model_at(5)), "soon", "", 3).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
