// Whole runs on the card beside the same on the CPU; skipped where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "streamvec/core/random.h"
#include "streamvec/cuda/card_testing.h"
#include "streamvec/cuda/copies.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

// Sentences of one of four subjects each: words of a subject stand together and with no others.
class TrainingOnCard : public ::testing::Test {
 protected:
  void SetUp() override {
    STREAMVEC_SKIP_WITHOUT_CARD();
    options_.dim = 32;
    options_.threads = 4;
    options_.min_count = 1;
    options_.sample = 0;
    options_.stream.evaluate_every_s = 0;
    options_.checkpoint_every_s = 0;
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  static std::string word(uint32_t subject, uint32_t i) {
    return std::string(1, static_cast<char>('a' + subject)) + "word" + std::to_string(i);
  }
  std::string write_text(int sentences) {
    std::ofstream file(path("text.txt"));
    Random random(1);
    for (int n = 0; n < sentences; ++n) {
      const uint32_t subject = random.below(4);
      for (int i = 0; i < 12; ++i) file << word(subject, random.below(25)) << " ";
      file << "\n";
    }
    return path("text.txt");
  }
  Result<TrainProgress> train_with(const std::string& device, const std::string& text) {
    options_.device = device;
    return train(options_, {text}, path(device), {});
  }
  // Of the ten nearest of each word: the share of its own subject.
  double own_share(const std::string& device) {
    const Snapshot snapshot = std::move(load_snapshot(path(device))).value();
    const NeighbourIndex index = std::move(NeighbourIndex::make(snapshot)).value();
    int own = 0, all = 0;
    for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot) {
      const std::string_view name = snapshot.vocabulary.word(slot);
      const std::vector<Neighbour> found = index.nearest(name, 10).value();
      for (const Neighbour& near : found) {
        own += snapshot.vocabulary.word(near.slot).front() == name.front();
        ++all;
      }
    }
    return static_cast<double>(own) / all;
  }

  TemporaryDirectory directory_;
  TrainOptions options_;
};

TEST_F(TrainingOnCard, AStreamLearnsWhatItDoesOnTheCpu) {
  options_.stream.on = true;
  const std::string text = write_text(20'000);
  const auto card = train_with("cuda", text), cpu = train_with("cpu", text);
  ASSERT_TRUE(card.ok()) << card.status().message();
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  EXPECT_THAT(card->kernel, HasSubstr("cuda"));
  EXPECT_EQ(card->tokens, cpu->tokens);
  EXPECT_NEAR(static_cast<double>(card->pairs) / static_cast<double>(cpu->pairs), 1, 0.1);
  EXPECT_NEAR(card->prequential_loss / cpu->prequential_loss, 1, 0.1);
  EXPECT_GT(own_share("cuda"), 0.9);
}

TEST_F(TrainingOnCard, WordsOfAStreamThatLoseTheirSlotsLeaveTheirRowsToOthers) {
  options_.stream.on = true;
  options_.vocab_max = 60;
  const auto card = train_with("cuda", write_text(5'000));
  ASSERT_TRUE(card.ok()) << card.status().message();
  EXPECT_EQ(card->vocab, 60);
  EXPECT_TRUE(std::isfinite(card->loss));
  EXPECT_EQ(card->updates_refused, 0);
}

TEST_F(TrainingOnCard, AStreamGoesByWhatItsChunksWereLikeThere) {
  const std::string text = write_text(10'000);
  options_.stream.on = true;
  for (const char* replay : {"loss", "gradient"}) {
    options_.stream.replay = replay;
    std::filesystem::remove_all(path("cuda"));
    const auto card = train_with("cuda", text);
    ASSERT_TRUE(card.ok()) << card.status().message();
    EXPECT_GT(card->prequential_loss, 0);
    EXPECT_GT(own_share("cuda"), 0.9) << replay;
  }
}

TEST_F(TrainingOnCard, TablesOfBf16AndAdagradLearnTheSame) {
  const std::string text = write_text(20'000);
  options_.epochs = 3;
  for (const auto& [table, optimizer] : {std::pair{"bf16", "sgd"}, {"fp32", "adagrad"}, {"bf16", "adagrad"}}) {
    options_.table = table;
    options_.optimizer = optimizer;
    std::filesystem::remove_all(path("cuda"));
    const auto card = train_with("cuda", text);
    ASSERT_TRUE(card.ok()) << card.status().message();
    EXPECT_GT(own_share("cuda"), 0.9) << table << " " << optimizer;
  }
}

TEST_F(TrainingOnCard, WhatItCannotTrainIsRefusedWithWhatToTry) {
  options_.optimizer = "adam";
  const auto card = train_with("cuda", write_text(10));
  ASSERT_FALSE(card.ok());
  EXPECT_THAT(card.status().message(), HasSubstr("--device cpu"));
}

TEST_F(TrainingOnCard, LaterEpochsCopyNoTextAgain) {
  const std::string text = write_text(20'000);
  const auto copied = [&](int epochs) {
    std::filesystem::remove_all(path("cuda"));
    options_.epochs = epochs;
    const cuda::Copies before = cuda::copies_so_far();
    const auto run = train_with("cuda", text);
    EXPECT_TRUE(run.ok()) << run.status().message();
    const cuda::Copies after = cuda::copies_so_far();
    return cuda::Copies{after.to_card - before.to_card, after.from_card - before.from_card, 0, 0};
  };
  const cuda::Copies once = copied(1), often = copied(9);
  constexpr int64_t kTokens = 20'000 * 12;
  EXPECT_GE(once.to_card, 4 * kTokens);
  // Each epoch says where its segments are: 40 bytes for hundreds of words.
  EXPECT_LE(often.to_card - once.to_card, 8 * kTokens / 4);
  EXPECT_LE(often.from_card - once.from_card, 8 * 4'096);
}

TEST_F(TrainingOnCard, HybridMakesVectorsOfSpellingsThere) {
  options_.model = "hybrid";
  options_.epochs = 3;
  const std::string text = write_text(20'000);
  const auto card = train_with("cuda", text);
  ASSERT_TRUE(card.ok()) << card.status().message();
  EXPECT_GT(own_share("cuda"), 0.9);
  const Snapshot snapshot = std::move(load_snapshot(path("cuda"))).value();
  const NeighbourIndex index = std::move(NeighbourIndex::make(snapshot)).value();
  int own = 0;
  for (uint32_t subject = 0; subject < 4; ++subject) {
    const std::vector<Neighbour> found = index.nearest(word(subject, 77), 10).value();
    for (const Neighbour& near : found) own += snapshot.vocabulary.word(near.slot).front() == word(subject, 0).front();
  }
  EXPECT_GE(own, 30);  // of 40
}

}  // namespace
}  // namespace streamvec
