// Whole streams, from records in a file to a model directory, stopped and continued.
#include "streamvec/train/stream_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "streamvec/core/random.h"
#include "streamvec/eval/history.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/train/trainer.h"

namespace streamvec {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class StreamTrainer : public ::testing::Test {
 protected:
  StreamTrainer() {
    options_.dim = 8;
    options_.threads = 2;
    options_.min_count = 1;
    options_.stream.on = true;
    options_.stream.evaluate_every_s = 0;
    options_.checkpoint_every_s = 0;
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  // Records "id<TAB>text", each with a word of its own.
  std::string write_records(int64_t count) {
    std::ofstream file(path("records.tsv"));
    for (int64_t i = 0; i < count; ++i)
      file << i << "\tword" << i << " comes with other words of day " << i % 7 << "\n";
    return "tsv:" + path("records.tsv") + "?id=1&text=2";
  }
  Result<TrainProgress> train_on(const std::string& source, const std::atomic<bool>* stop = nullptr) {
    TrainHooks hooks;
    hooks.stop = stop;
    return train(options_, {source}, path("model"), hooks);
  }
  Vocabulary words() const { return std::move(load_snapshot(path("model")).value().vocabulary); }

  TemporaryDirectory directory_;
  TrainOptions options_;
};

TEST_F(StreamTrainer, CountsAndTrainsOnEveryRecord) {
  const auto result = train_on(write_records(500));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->documents, 500);
  EXPECT_EQ(result->tokens, 500 * 8);
  EXPECT_GT(result->pairs, 1000);
  EXPECT_EQ(words().count(words().find("comes")), 500);
  EXPECT_EQ(words().count(words().find("word499")), 1);
}

TEST_F(StreamTrainer, DatedKoreanReviewsTakeTheSameWay) {
  {
    std::ofstream file(path("reviews.tsv"));
    file << "date\tid\treview\n";
    for (int day = 1; day <= 28; ++day)
      for (int i = 0; i < 20; ++i)
        file << "2015-02-" << (day < 10 ? "0" : "") << day << "\t" << day << "." << i
             << "\t정말 재미있는 영화! 배우의 연기가 좋았다. \xEA\xB0 " << (day < 15 ? "극장에서" : "집에서")
             << " 봤다\n";
  }
  options_.stream.half_life = HalfLife::parse("7d").value();
  const auto result = train_on("tsv:" + path("reviews.tsv") + "?time=1&id=2&text=3&header=1");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->documents, 560);
  EXPECT_GT(result->bytes_replaced, 0);
  const Vocabulary vocabulary = words();
  for (const char* word : {"재미있는", "영화", "배우의", "연기가"}) EXPECT_NE(vocabulary.find(word), kNoSlot) << word;
  // 280 reviews each, the earlier ones two half-lives older.
  const double before = static_cast<double>(vocabulary.count(vocabulary.find("극장에서")));
  const double after = static_cast<double>(vocabulary.count(vocabulary.find("집에서")));
  EXPECT_NEAR(before / after, 0.25, 0.03);
}

TEST_F(StreamTrainer, EveryReplayTrainsOnAllOfIt) {
  for (const char* replay : {"once", "uniform", "loss", "gradient"}) {
    options_.stream.replay = replay;
    std::filesystem::remove_all(path("model"));
    const auto result = train_on(write_records(300));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->documents, 300) << replay;
    EXPECT_GT(result->pairs, 600) << replay;
  }
}

TEST_F(StreamTrainer, AReplayRatioTrainsThatOftenOnEachPart) {
  const std::string source = write_records(400);
  options_.sample = 0;  // how many frequent words are left out depends on when the tables were renewed
  options_.stream.replay_ratio = 1;
  const auto once = train_on(source);
  std::filesystem::remove_all(path("model"));
  options_.stream.replay_ratio = 5;
  const auto often = train_on(source);
  ASSERT_TRUE(once.ok() && often.ok());
  EXPECT_NEAR(static_cast<double>(often->pairs) / static_cast<double>(once->pairs), 5, 0.3);
}

TEST_F(StreamTrainer, StoppedAnywhereItGoesOnAfterTheLastRecord) {
  const std::string source = write_records(3000);
  Random random(3);
  for (int run = 0; run < 12; ++run) {
    std::atomic<bool> stop{false};
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(8000)));
      stop = run < 11;
    });
    const auto result = train_on(source, &stop);
    stopper.join();
    ASSERT_TRUE(result.ok()) << result.status().message();
  }
  const Vocabulary all = words();
  for (int64_t i = 0; i < 3000; ++i) {
    const Slot slot = all.find("word" + std::to_string(i));
    ASSERT_NE(slot, kNoSlot) << i;
    EXPECT_EQ(all.count(slot), 1) << i;
  }
  EXPECT_EQ(all.tokens(), 3000 * 8);
}

TEST_F(StreamTrainer, DuplicatesReplayAndHalvesAreKnownAfterARestart) {
  Random random(1);
  std::vector<std::string> documents;
  for (int i = 0; i < 200; ++i) {
    std::string& text = documents.emplace_back();
    for (int k = 0; k < 20; ++k) text += "w" + std::to_string(random.below(300)) + " ";
  }
  const auto write = [&](const std::string& name, size_t begin, size_t end) {
    std::ofstream file(path(name));
    for (size_t i = begin; i < end; ++i) file << i << "\t" << documents[i] << "\n";
    return "tsv:" + path(name) + "?id=1&text=2";
  };
  options_.stream.drop_duplicates = true;
  ASSERT_TRUE(train_on(write("first.tsv", 0, 150)).ok());
  const Checkpoint before = load_checkpoint(path("model")).value();
  options_.lr = 1e-30;  // what was restored stays as it is
  ASSERT_TRUE(train_on(write("second.tsv", 100, 160)).ok());
  const Checkpoint after = load_checkpoint(path("model")).value();
  int64_t counted = 0;
  for (Slot slot = 0; slot < after.vocabulary.size(); ++slot) counted += after.vocabulary.count(slot);
  EXPECT_EQ(counted, 160 * 20) << "50 of the second file's documents were known";
  EXPECT_GT(after.extra.at("replay.bin").size(), before.extra.at("replay.bin").size());
  for (const char* half : {"half-a.input", "half-b.output"})
    for (Slot slot = 0; slot < before.vocabulary.size(); ++slot) {
      const auto then = before.optimizer.at(half).view().row_span(slot),
                 now = after.optimizer.at(half).view().row_span(slot);
      ASSERT_TRUE(std::equal(then.begin(), then.end(), now.begin())) << half << " " << slot;
    }
}

TEST_F(StreamTrainer, StaysWithinVocabMaxAndForgetsWords) {
  options_.vocab_max = 50;
  const auto result = train_on(write_records(2000));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(words().size(), 50);
  EXPECT_NE(words().find("comes"), kNoSlot);
}

TEST_F(StreamTrainer, GoesOnFromAModelThatWasNoStream) {
  const std::string source = write_records(200);
  options_.stream.on = false;
  ASSERT_TRUE(train_on(source).ok());
  options_.stream.on = true;
  const auto result = train_on(source);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(words().count(words().find("comes")), 400);
}

TEST_F(StreamTrainer, ItsModelGoesOnWithFilesFromTheRowsThatItHas) {
  const std::string source = write_records(200);
  ASSERT_TRUE(train_on(source).ok());
  const Checkpoint before = load_checkpoint(path("model")).value();
  options_.stream.on = false;
  options_.lr = 1e-30;  // rows stay as they are
  const auto result = train_on(source);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Checkpoint after = load_checkpoint(path("model")).value();
  ASSERT_EQ(after.vocabulary.size(), before.vocabulary.size());
  for (Slot slot = 0; slot < before.vocabulary.size(); ++slot) {
    ASSERT_EQ(after.vocabulary.word(slot), before.vocabulary.word(slot));
    ASSERT_EQ(after.vocabulary.count(slot), 2 * before.vocabulary.count(slot));
    const auto then = before.input.view().row_span(slot), now = after.input.view().row_span(slot);
    ASSERT_TRUE(std::equal(then.begin(), then.end(), now.begin())) << slot;
  }
}

TEST_F(StreamTrainer, SourcesGoOnWhereTheyWereAfterRunsThatWereOfOthers) {
  const std::string records = write_records(100);
  const std::string backfill = directory_.write("backfill", "an old word comes late\n");
  const std::string other = "tsv:" + directory_.write("other.tsv", "7\tanother word comes\n") + "?id=1&text=2";
  ASSERT_TRUE(train_on(records).ok());
  ASSERT_TRUE(train_on(other).ok());
  options_.stream.on = false;
  ASSERT_TRUE(train_on(backfill).ok());
  options_.stream.on = true;
  for (const std::string& source : {records, other}) ASSERT_TRUE(train_on(source).ok());
  EXPECT_EQ(words().count(words().find("comes")), 102);
}

TEST_F(StreamTrainer, OfADirectoryThatHasGrownOnlyTheNewFileIsRead) {
  std::filesystem::create_directory(path("news"));
  for (int day = 1; day <= 3; ++day) {
    std::ofstream(path("news/") + std::to_string(4 - day)) << "day" << day << " comes\n";
    std::ofstream(path("news/\xe9") + std::to_string(day)) << "day" << day << " comes\n";
    ASSERT_TRUE(train_on(path("news")).ok());
    EXPECT_EQ(words().count(words().find("comes")), 2 * day);
  }
  const auto nothing = train_on(path("news"));
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  EXPECT_THAT(nothing->notes, Contains(HasSubstr("nothing is new")));
}

TEST_F(StreamTrainer, NothingLearntIsAnErrorThatCountsWhatWasLeftOut) {
  {
    std::ofstream file(path("same.tsv"));
    for (int i = 0; i < 5; ++i)
      file << i
           << "\tthe committee will meet on thursday to vote about a plan for its new library, "
              "which some members think costs far too much while others would rather begin today\n";
  }
  options_.min_count = 5;
  options_.stream.drop_duplicates = true;
  const Status failed = train_on("tsv:" + path("same.tsv") + "?id=1&text=2").status();
  EXPECT_EQ(failed.code(), Code::kInvalidArgument);
  EXPECT_THAT(failed.message(), HasSubstr("documents read here: 5, in other languages: 0, duplicates: 4"));
  EXPECT_THAT(failed.message(), HasSubstr("no --drop-duplicates"));
  EXPECT_FALSE(std::filesystem::exists(path("model") + "/latest"));
}

TEST_F(StreamTrainer, KeepsAHistoryWithBothHalvesAndALineOfMetrics) {
  options_.stream.snapshot_every = 1000;
  ASSERT_TRUE(train_on(write_records(1000)).ok());
  std::ifstream metrics(path("model") + "/metrics.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(metrics, line));
  EXPECT_THAT(line, HasSubstr("\"tokens\":"));
  size_t snapshots = 0, halves = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("model") + "/history")) {
    const std::string name = entry.path().filename();
    halves += name.ends_with("-a.safetensors") || name.ends_with("-b.safetensors");
    snapshots += name.ends_with(".safetensors");
  }
  EXPECT_GE(snapshots - halves, 1u);
  EXPECT_GE(halves, 2u);
}

TEST_F(StreamTrainer, ARunThatHasNothingLeftToReadWritesTheMomentThatAKillKeptOut) {
  const std::string records = write_records(300);
  ASSERT_TRUE(train_on(records).ok());
  const auto whole = History(path("model")).list().value();
  ASSERT_EQ(whole.size(), 1u);
  std::filesystem::remove_all(path("model") + "/history");  // as if killed when all was read and nothing remembered
  ASSERT_TRUE(train_on(records).ok());
  const auto again = History(path("model")).list().value();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].moment.tokens, whole[0].moment.tokens);
}

TEST_F(StreamTrainer, ARunThatHasNothingLeftToReadAddsNoMomentToAHistoryThatIsWhole) {
  const std::string records = write_records(300);
  ASSERT_TRUE(train_on(records).ok());
  const auto entry = History(path("model")).list().value().at(0);
  const auto written = std::filesystem::last_write_time(entry.path);
  ASSERT_TRUE(train_on(records).ok());
  EXPECT_EQ(History(path("model")).list().value().size(), 1u);
  EXPECT_EQ(std::filesystem::last_write_time(entry.path), written);
}

TEST_F(StreamTrainer, AModelThatGoesBackToAnOlderCheckpointHasNoLaterHistory) {
  const std::string records = write_records(300);
  ASSERT_TRUE(train_on(records).ok());
  const int64_t first = load_snapshot(path("model"))->step;
  ASSERT_TRUE(train_on(directory_.write("more", "more words come in a later run\n")).ok());
  ASSERT_EQ(History(path("model")).list()->size(), 2u);
  std::filesystem::remove_all(path("model") + "/" + std::to_string(load_snapshot(path("model"))->step));
  ASSERT_TRUE(train_on(records).ok());
  EXPECT_EQ(History(path("model")).list()->back().moment.step, first);
}

TEST_F(StreamTrainer, BeginsAgainAfterAKillBeforeTheFirstCheckpoint) {
  std::filesystem::create_directories(path("model") + "/history");
  std::filesystem::create_directories(path("model") + "/tensorboard");
  std::ofstream(path("model") + "/metrics.jsonl") << "{}\n";
  const auto result = train_on(write_records(100));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->documents, 100);
}

TEST_F(StreamTrainer, RefusesWhatAStreamCannotDo) {
  const std::string source = write_records(10);
  options_.epochs = 3;
  EXPECT_THAT(train_on(source).status().message(), HasSubstr("--replay-ratio 3"));
  options_.epochs = 1;
  options_.stream.replay = "sometimes";
  EXPECT_THAT(train_on(source).status().message(), HasSubstr("once, uniform, loss or gradient"));
  options_.stream.replay = "uniform";
  options_.stream.replay_ratio = 0;
  EXPECT_EQ(train_on(source).status().code(), Code::kInvalidArgument);
  options_.sample = 0;  // how many frequent words are left out depends on when the tables were renewed
  options_.stream.replay_ratio = 1;
  options_.stream.languages = {"klingon"};
  EXPECT_EQ(train_on(source).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path("model") + "/latest"));
}

TEST_F(StreamTrainer, TimesOutOfRangeAreRefusedByName) {
  const std::string source = write_records(10);
  for (const double seconds : {-1.0, 2e9, double{NAN}, double{INFINITY}}) {
    options_.checkpoint_every_s = seconds;
    EXPECT_THAT(train_on(source).status().message(), HasSubstr("--checkpoint-every is"));
    options_.checkpoint_every_s.reset();
    options_.stream.evaluate_every_s = seconds;
    EXPECT_THAT(train_on(source).status().message(), HasSubstr("--evaluate-every is"));
    options_.stream.evaluate_every_s = 0;
  }
  EXPECT_FALSE(std::filesystem::exists(path("model")));
}

TEST_F(StreamTrainer, AnotherHalfLifeThanTheStreamsIsRefusedWithBoth) {
  const std::string source = write_records(100);
  ASSERT_TRUE(train_on(source).ok());
  options_.stream.half_life.value = 1000;
  const auto result = train_on(source);
  EXPECT_EQ(result.status().code(), Code::kFailedPrecondition) << result.status().message();
  EXPECT_THAT(result.status().message(), HasSubstr("asks for 1k"));
}

TEST_F(StreamTrainer, ASourceThatIsGoneLeavesTheModelAsItWas) {
  const std::string source = write_records(100);
  ASSERT_TRUE(train_on(source).ok());
  std::filesystem::remove(path("records.tsv"));
  EXPECT_FALSE(train_on(source).ok());
  EXPECT_EQ(words().count(words().find("comes")), 100);
}

}  // namespace
}  // namespace streamvec
