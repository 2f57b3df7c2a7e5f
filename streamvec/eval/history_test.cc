#include "streamvec/eval/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class HistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "history." + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(dir_);
    fs::create_directory(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Words w0, w1, ... of rising count.
  static Snapshot snapshot(int32_t words, uint64_t seed) {
    Snapshot snapshot;
    for (int32_t i = 0; i < words; ++i) snapshot.vocabulary.add("w" + std::to_string(i), 10 + i);
    snapshot.input = random_matrix(words, 5, seed);
    return snapshot;
  }
  std::string file(const std::string& name) const { return dir_ + "/history/" + name; }
  static std::vector<int64_t> steps(const std::vector<HistoryEntry>& entries) {
    std::vector<int64_t> steps;
    for (const HistoryEntry& entry : entries) steps.push_back(entry.moment.step);
    return steps;
  }
  static void change_byte(const std::string& path, int64_t from_end) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-from_end, std::ios::end);
    const auto byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(-from_end, std::ios::end);
    stream.put(byte);
  }

  std::string dir_;
};

TEST_F(HistoryTest, GivesBackTheMostFrequentWordsAndWhenItWas) {
  History history(dir_, {.words_max = 3});
  const Snapshot saved = snapshot(10, 1);
  ASSERT_TRUE(history.add(saved, {.step = 70, .time_s = 1'700'000'000, .tokens = 12'345}).ok());
  const auto entries = history.list().value();
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].moment.step, 70);
  EXPECT_EQ(entries[0].moment.time_s, 1'700'000'000);
  EXPECT_EQ(entries[0].moment.tokens, 12'345);
  const Snapshot loaded = History::load(entries[0]).value();
  EXPECT_EQ(loaded.step, 70);
  ASSERT_EQ(loaded.vocabulary.size(), 3);
  EXPECT_EQ(loaded.vocabulary.word(0), "w9");
  EXPECT_EQ(loaded.vocabulary.count(2), 17);
  EXPECT_TRUE(std::equal(loaded.input.row(2), loaded.input.row(2) + 5, saved.input.row(7)));
}

TEST_F(HistoryTest, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(History(dir_).list().value(), IsEmpty());
  EXPECT_THAT(History(dir_ + "/nowhere").list_halves().value(), IsEmpty());
}

TEST_F(HistoryTest, HalvesComeInPairsAndDoNotCountAsSnapshots) {
  History history(dir_, {.halves_max = 2});
  for (const int64_t step : {10, 20, 30})
    ASSERT_TRUE(history.add_halves(snapshot(4, 1), snapshot(4, 2), {.step = step}).ok());
  EXPECT_THAT(history.list().value(), IsEmpty());
  EXPECT_FALSE(fs::exists(file("20-a.safetensors")));  // the oldest and the newest stay
  EXPECT_FALSE(fs::exists(file("20-b.safetensors")));
  fs::remove(file("30-b.safetensors"));
  const auto halves = history.list_halves().value();
  ASSERT_THAT(halves, SizeIs(1));
  EXPECT_EQ(halves[0].a.moment.step, 10);
  const Snapshot a = History::load(halves[0].a).value(), b = History::load(halves[0].b).value();
  EXPECT_NE(a.input.row(0)[0], b.input.row(0)[0]);
}

TEST_F(HistoryTest, WhatIsLaterThanTheModelThatGoesOnIsForgotten) {
  History history(dir_);
  for (const int64_t step : {10, 20, 30}) {
    ASSERT_TRUE(history.add(snapshot(4, 1), {.step = step}).ok());
    ASSERT_TRUE(history.add_halves(snapshot(4, 1), snapshot(4, 2), {.step = step}).ok());
  }
  ASSERT_TRUE(history.forget_after(20).ok());
  EXPECT_THAT(steps(history.list().value()), ElementsAre(10, 20));
  EXPECT_THAT(history.list_halves().value(), SizeIs(2));
  EXPECT_FALSE(fs::exists(file("30.vocab.tsv")));
  EXPECT_TRUE(History(dir_ + "/nowhere").forget_after(0).ok());
}

TEST_F(HistoryTest, HalvesOfTwoMomentsAreTheNearestAndThoseOfThenNotLater) {
  History history(dir_);
  for (const int64_t step : {10, 20, 30})
    ASSERT_TRUE(history.add_halves(snapshot(4, step), snapshot(4, step + 1), {.step = step}).ok());
  const auto halves = history.load_halves(12, 40).value();
  ASSERT_TRUE(halves.has_value());
  EXPECT_EQ(halves->old_a.step, 10);
  EXPECT_EQ(halves->old_b.step, 10);
  EXPECT_EQ(halves->new_a.step, 30);
  EXPECT_NE(halves->new_a.input.row(0)[0], halves->new_b.input.row(0)[0]);
  EXPECT_EQ(history.load_halves(28, 40).value()->old_a.step, 20);
  EXPECT_EQ(history.load_halves(5, 40).value()->old_a.step, 10);  // there is none before
  EXPECT_FALSE(history.load_halves(30, 40).value().has_value());  // the same for both
  std::ofstream(file("10-b.vocab.tsv")) << "damaged";
  std::vector<std::string> notes;
  EXPECT_FALSE(history.load_halves(12, 40, &notes).value().has_value());
  EXPECT_THAT(notes, SizeIs(1));
}

TEST_F(HistoryTest, KeepsAsManyAsToldTheOldestAndTheNewestAmongThem) {
  History history(dir_, {.entries_max = 6});
  for (int64_t step = 1; step <= 40; ++step) ASSERT_TRUE(history.add(snapshot(2, 1), {.step = step}).ok());
  const std::vector<int64_t> kept = steps(history.list().value());
  ASSERT_THAT(kept, SizeIs(6));
  EXPECT_EQ(kept.front(), 1);
  EXPECT_EQ(kept.back(), 40);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ + "/history"), fs::directory_iterator()), 12);
}

TEST_F(HistoryTest, ASnapshotOfTheSameStepIsReplaced) {
  History history(dir_);
  ASSERT_TRUE(history.add(snapshot(2, 1), {.step = 5}).ok());
  ASSERT_TRUE(history.add(snapshot(3, 2), {.step = 5}).ok());
  const auto entries = history.list().value();
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(History::load(entries[0]).value().vocabulary.size(), 3);
}

TEST_F(HistoryTest, BadFilesArePassedOverWithANoteAndForeignOnesIgnored) {
  History history(dir_);
  ASSERT_TRUE(history.add(snapshot(2, 1), {.step = 5}).ok());
  ASSERT_TRUE(history.add(snapshot(2, 1), {.step = 6}).ok());
  fs::resize_file(file("6.safetensors"), 20);
  std::ofstream(file("notes.txt")) << "mine";
  std::ofstream(file("007.safetensors")) << "not a step of ours";
  std::vector<std::string> notes;
  EXPECT_THAT(steps(history.list(&notes).value()), ElementsAre(5));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("6.safetensors")));
}

TEST_F(HistoryTest, FlippedBitsAreNoticedInVectorsAndInWords) {
  History history(dir_);
  for (const int64_t step : {1, 2, 3}) ASSERT_TRUE(history.add(snapshot(4, 1), {.step = step}).ok());
  change_byte(file("1.safetensors"), 7);
  change_byte(file("2.vocab.tsv"), 2);  // a digit of a count: still a list of words
  const auto entries = history.list().value();
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(History::load(entries[0]).status().code(), Code::kDataLoss);
  EXPECT_EQ(History::load(entries[1]).status().code(), Code::kDataLoss);
  EXPECT_THAT(History::load(entries[1]).status().message(), HasSubstr("2.vocab.tsv"));
  EXPECT_TRUE(History::load(entries[2]).ok());
  fs::remove(file("3.vocab.tsv"));
  EXPECT_EQ(History::load(entries[2]).status().code(), Code::kNotFound);
}

TEST_F(HistoryTest, WhatACrashLeftIsRemovedByTheNextSave) {
  History history(dir_);
  ASSERT_TRUE(history.add(snapshot(2, 1), {.step = 5}).ok());
  std::ofstream(file("6.vocab.tsv")) << "#word\tcount\n";
  std::ofstream(file("6.safetensors.partial-77-1")) << "half";
  ASSERT_TRUE(history.add(snapshot(2, 1), {.step = 7}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ + "/history"), fs::directory_iterator()), 4);
}

TEST_F(HistoryTest, AnErrorNamesThePath) {
  std::ofstream(dir_ + "/history") << "a file where the directory belongs";
  EXPECT_THAT(History(dir_).add(snapshot(2, 1), {.step = 5}).message(), HasSubstr("/history"));
}

TEST(StepsToDrop, LeavesAgesThatGrowLikePowers) {
  std::vector<int64_t> kept;
  for (int64_t step = 0; step < 2'000; ++step) {  // one at a time, as a stream goes
    kept.push_back(step);
    for (const size_t i : steps_to_drop(kept, 12)) kept.erase(kept.begin() + static_cast<int64_t>(i));
  }
  ASSERT_THAT(kept, SizeIs(12));
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept.back(), 1'999);
  for (size_t i = 1; i + 2 < kept.size(); ++i) {
    const double age = static_cast<double>(1'999 - kept[i]), newer = static_cast<double>(1'999 - kept[i + 1]);
    EXPECT_LT(age / newer, 5) << kept[i];
  }
  EXPECT_GE(kept[kept.size() - 4], 1'980);
  EXPECT_THAT(steps_to_drop({1, 2, 3}, 1), SizeIs(1));  // two always stay
  EXPECT_THAT(steps_to_drop({}, 3), IsEmpty());
}

}  // namespace
}  // namespace streamvec
