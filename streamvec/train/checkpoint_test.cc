#include "streamvec/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "streamvec/format/test_support.h"
#include "streamvec/train/checkpoint_manifest.h"
#include "streamvec/train/checkpoint_test_support.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CheckpointTest : public ::testing::Test {
 protected:
  Status save(int64_t step, int version) { return TestModel(version).save(dir_, step); }
  // Loads, and expects the whole of one version in it.
  void expect_version(int version) {
    auto loaded = load_checkpoint(dir_);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(version_of(*loaded), version);
    notes_ = loaded->notes;
  }
  std::vector<std::string> names() const { return names_in(dir_); }

  ScratchDirectory scratch_;
  std::string dir_ = scratch_.path("model");
  std::vector<std::string> notes_;
};

TEST_F(CheckpointTest, WhatIsSavedIsLoaded) {
  TestModel model(5);
  model.vocabulary.add_alias("tabs\tand spaces", 1);
  ASSERT_TRUE(model.save(dir_, 120).ok());
  const auto loaded = load_checkpoint(dir_, 1000);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->step, 120);
  EXPECT_EQ(loaded->model, "cbow");
  EXPECT_EQ(loaded->state, model.content(120).state);
  EXPECT_EQ(loaded->cursors, model.content(120).cursors);
  EXPECT_THAT(loaded->notes, IsEmpty());
  expect_same_table(loaded->input.view(), model.input.view());
  expect_same_table(loaded->output.view(), model.output.view());
  expect_same_table(loaded->optimizer.at("adam.first").view(), model.adam.view());
  expect_same_table(loaded->optimizer.at("adagrad").view(), model.adagrad.view());
  EXPECT_EQ(loaded->input.rows_max(), 1000);
  expect_same_words(loaded->vocabulary, model.vocabulary);
  EXPECT_EQ(loaded->vocabulary.find("tabs\tand spaces"), 1);
  EXPECT_EQ(loaded->vocabulary.count(0), model.vocabulary.count(0));
  EXPECT_EQ(read_bytes(dir_ + "/latest"), "120\n");
}

TEST_F(CheckpointTest, ASnapshotHasTheTablesWithoutTheOptimiser) {
  TestModel model(5);
  ASSERT_TRUE(model.save(dir_, 7).ok());
  const auto snapshot = load_snapshot(dir_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->step, 7);
  EXPECT_EQ(snapshot->model, "cbow");
  expect_same_table(snapshot->input.view(), model.input.view());
  expect_same_table(snapshot->output.view(), model.output.view());
  expect_same_words(snapshot->vocabulary, model.vocabulary);
}

TEST_F(CheckpointTest, WhereSourcesStoodIsReadAloneOfTheNewestThatSaysSo) {
  EXPECT_EQ(load_cursors(dir_).status().code(), Code::kNotFound);
  for (const int step : {1, 2}) ASSERT_TRUE(TestModel(step).save(dir_, step).ok());
  auto found = load_cursors(dir_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(found->cursors.at("version"), 2);
  std::filesystem::resize_file(dir_ + "/2/cursors.json", 3);
  found = load_cursors(dir_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(found->cursors.at("version"), 1);
}

TEST_F(CheckpointTest, AModelMayHaveNoWordsAndNoContextVectors) {
  const Matrix none = Matrix::make(0, 8).value();
  const Vocabulary vocabulary;
  ASSERT_TRUE(save_checkpoint(dir_, {.vocabulary = vocabulary,
                                     .input = none.view(),
                                     .output = none.view(),
                                     .optimizer = {},
                                     .state = {},
                                     .cursors = {}})
                  .ok());
  const auto loaded = load_checkpoint(dir_, 10);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->input.cols(), 8);
  EXPECT_EQ(loaded->output.cols(), 8);
  ASSERT_TRUE(save_checkpoint(dir_, {.step = 1,
                                     .vocabulary = vocabulary,
                                     .input = none.view(),
                                     .output = {},
                                     .optimizer = {},
                                     .state = {},
                                     .cursors = {}})
                  .ok());
  EXPECT_EQ(load_checkpoint(dir_)->output.cols(), 0);
}

TEST_F(CheckpointTest, TheOneBeforeIsKeptAndOlderOnesLeave) {
  auto writer = CheckpointWriter::open(dir_);
  ASSERT_TRUE(writer.ok());
  for (const int64_t step : {3, 20, 100}) {
    TestModel model(static_cast<int>(step));
    ASSERT_TRUE(writer->save(model.content(step)).ok());
  }
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "20", "100"));
  expect_version(100);
}

TEST_F(CheckpointTest, LeftoversOfInterruptedSavesAreRemovedByTheNext) {
  ASSERT_TRUE(save(1, 1).ok());
  fs::create_directory(dir_ + "/2.partial");
  write_bytes(dir_ + "/2.partial/model.safetensors", "half");
  fs::create_directory(dir_ + "/0.removed");
  write_bytes(dir_ + "/0.removed/state.json", "{}");
  write_bytes(dir_ + "/latest.partial-77-0", "1");
  expect_version(1);
  ASSERT_TRUE(save(2, 2).ok());
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "1", "2"));
}

TEST_F(CheckpointTest, SavesThatEndBeforeTheyRemoveOldOnesDoNotPileUp) {
  ASSERT_TRUE(save(1, 1).ok());
  fs::remove(dir_ + "/latest");
  fs::create_directories(dir_ + "/latest/in-the-way");
  for (int step = 2; step < 9; ++step) EXPECT_FALSE(save(step, step).ok());
  expect_version(8);
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "6", "7", "8"));
}

TEST_F(CheckpointTest, AStreamKilledBeforeItsFirstCheckpointBeginsAgain) {
  fs::create_directories(dir_ + "/tensorboard");
  fs::create_directories(dir_ + "/history/5");
  write_bytes(dir_ + "/metrics.jsonl", "");
  EXPECT_TRUE(save(1, 1).ok());
}

TEST_F(CheckpointTest, FilesThatTheUserPutIntoTheModelStay) {
  ASSERT_TRUE(save(1, 1).ok());
  write_bytes(dir_ + "/notes.txt", "mine");
  write_bytes(dir_ + "/1/notes.txt", "mine too");
  for (int step = 2; step < 5; ++step) ASSERT_TRUE(save(step, step).ok());
  EXPECT_EQ(read_bytes(dir_ + "/notes.txt"), "mine");
  EXPECT_EQ(read_bytes(dir_ + "/1.removed/notes.txt"), "mine too");
  expect_version(4);
}

TEST_F(CheckpointTest, ADirectoryOfOtherThingsIsRefusedAndUntouched) {
  for (const char* foreign : {"thesis.txt", "2018/photo.jpg", ".git/config"}) {
    const std::string dir = scratch_.path(foreign[0] == '.' ? "git" : std::string(foreign, 4));
    fs::create_directories(fs::path(dir) / fs::path(foreign).parent_path());
    write_bytes(dir + "/" + foreign, "precious");
    const Status status = TestModel(1).save(dir, 1);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << foreign;
    EXPECT_THAT(status.message(), HasSubstr(dir));
    EXPECT_EQ(names_in(dir).size(), 1u) << "nothing was added";
    EXPECT_EQ(load_checkpoint(dir).status().code(), Code::kNotFound);
  }
}

TEST_F(CheckpointTest, WhereThereIsNoModelLoadingSaysNotFound) {
  const Status absent = load_checkpoint(dir_).status();
  EXPECT_EQ(absent.code(), Code::kNotFound);
  EXPECT_THAT(absent.message(), HasSubstr(dir_));
  EXPECT_THAT(absent.message(), HasSubstr("streamvec train"));
  fs::create_directory(dir_);
  EXPECT_EQ(load_checkpoint(dir_).status().code(), Code::kNotFound);
  fs::create_directory(dir_ + "/5.partial");
  write_bytes(dir_ + "/5.partial/state.json", "{}");
  EXPECT_EQ(load_snapshot(dir_).status().code(), Code::kNotFound);
  EXPECT_TRUE(save(6, 6).ok()) << "a first save that was interrupted does not stand in the way";
}

TEST_F(CheckpointTest, TheLatestFileIsNotNeeded) {
  ASSERT_TRUE(save(1, 1).ok() && save(2, 2).ok());
  for (const char* text : {"", "1\n", "nonsense"}) {
    write_bytes(dir_ + "/latest", text);
    expect_version(2);
  }
  fs::remove(dir_ + "/latest");
  expect_version(2);
}

TEST_F(CheckpointTest, TheSameStepIsReplacedAndTheOneBeforeKept) {
  ASSERT_TRUE(save(1, 1).ok() && save(2, 2).ok() && save(2, 3).ok());
  expect_version(3);
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "1", "2"));
}

TEST_F(CheckpointTest, AnInterruptedReplacementLoadsAndIsFinishedByTheNextSave) {
  ASSERT_TRUE(save(1, 1).ok() && save(2, 2).ok());
  fs::rename(dir_ + "/2", dir_ + "/2.replaced");  // killed before the new one was renamed
  expect_version(2);
  ASSERT_TRUE(save(2, 3).ok());
  expect_version(3);
  fs::copy(dir_ + "/2", dir_ + "/2.replaced");  // killed after
  expect_version(3);
  ASSERT_TRUE(save(2, 4).ok());
  expect_version(4);
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "1", "2"));
}

TEST_F(CheckpointTest, AnEarlierStepDoesNotReplaceALaterOne) {
  ASSERT_TRUE(save(10, 10).ok());
  const Status status = save(9, 9);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("step 10"));
  expect_version(10);
}

TEST_F(CheckpointTest, ADamagedOneDoesNotCountAsTheOneBefore) {
  ASSERT_TRUE(save(10, 10).ok() && save(20, 20).ok());
  fs::resize_file(dir_ + "/20/model.safetensors", 100);
  ASSERT_TRUE(save(15, 15).ok()) << "training went on from step 10";
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "10", "15", "20.damaged"));
  fs::resize_file(dir_ + "/15/model.safetensors", 100);
  expect_version(10);
}

TEST_F(CheckpointTest, ASecondWriterIsRefused) {
  auto first = CheckpointWriter::open(dir_);
  ASSERT_TRUE(first.ok());
  const Status status = CheckpointWriter::open(dir_).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(status.message(), HasSubstr(dir_));
  EXPECT_EQ(run_in_child([&] { return save(1, 1).code() == Code::kFailedPrecondition; }), true);
  TestModel model(2);
  EXPECT_TRUE(first->save(model.content(2)).ok());
  first = error(Code::kCancelled, "done");
  EXPECT_TRUE(save(3, 3).ok());
}

TEST_F(CheckpointTest, AWriterFromWhichTheDirectoryWasTakenOverWritesNothingMore) {
  auto first = CheckpointWriter::open(dir_, "a job");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->save(TestModel(1).content(1)).ok());
  for (const char* another : {"", "another job"})
    EXPECT_EQ(CheckpointWriter::open(dir_, another).status().code(), Code::kFailedPrecondition);
  auto second = CheckpointWriter::open(dir_, "a job");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(first->save(TestModel(5).content(5)).code(), Code::kAborted);
  expect_version(1);
  EXPECT_TRUE(second->save(TestModel(2).content(2)).ok());
  EXPECT_EQ(CheckpointWriter::open(dir_).status().code(), Code::kFailedPrecondition) << "it is locked as ever";
  first = error(Code::kCancelled, "done");
  EXPECT_EQ(CheckpointWriter::open(dir_).status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(names(), UnorderedElementsAre(".lock", "latest", "1", "2"));
}

TEST_F(CheckpointTest, AJobTakesNothingOverFromARunThatIsNotOfIt) {
  const auto run = CheckpointWriter::open(dir_);
  ASSERT_TRUE(run.ok());
  const Status refused = CheckpointWriter::open(dir_, "a job").status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("process " + std::to_string(::getpid())));
}

TEST_F(CheckpointTest, ValuesThatAreNotFiniteAreNoted) {
  TestModel model(1);
  model.input.row(1)[0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(model.save(dir_, 1).ok());
  const auto loaded = load_checkpoint(dir_);
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(loaded->notes, ElementsAre(HasSubstr("first of 1 values of input that are not finite")));
}

TEST_F(CheckpointTest, ReadersNeverMissWhileAWriterGoesOn) {
  ASSERT_TRUE(save(1, 1).ok());
  const ChildProcess writer([&] {
    auto open = CheckpointWriter::open(dir_);
    for (int version = 2; open.ok(); ++version) {
      TestModel model(version);
      if (!open->save(model.content(version / 2)).ok()) break;  // each step twice
    }
  });
  for (int round = 0; round < 300; ++round) {
    const auto loaded = load_checkpoint(dir_);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    ASSERT_GE(version_of(*loaded), 1);
    ASSERT_THAT(loaded->notes, IsEmpty());
  }
}

TEST(CheckpointDirectories, WhereNoneCanBeMadeTheErrorNamesThePlace) {
  const Status status = CheckpointWriter::open("/proc/nothing/model").status();  // where mkdir says ENOENT of any name
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/proc/nothing"), std::string::npos) << status.message();
}

TEST(CheckpointManifest, WhatIsEncodedIsDecoded) {
  CheckpointManifest manifest{7, "sgns", {}, {{"lr", 0.1}, {"seed", ~uint64_t{0}}}};
  manifest.files["a"] = {123, 0xfedcba9876543210u, {{"", 0, 23, 1}, {"input", 23, 100, 2}}};
  const auto back = CheckpointManifest::decode(manifest.encode(), "state.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->step, 7);
  EXPECT_EQ(back->state, manifest.state);
  EXPECT_EQ(back->files.at("a").checksum, 0xfedcba9876543210u);
  EXPECT_EQ(back->files.at("a").parts[1].offset, 23);
}

TEST(CheckpointManifest, StatesOfLaterVersionsAreRefusedWithoutGoingBack) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(TestModel(1).save(scratch.path("m"), 1).ok() && TestModel(2).save(scratch.path("m"), 2).ok());
  std::string text = read_bytes(scratch.path("m/2/state.json"));
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  const size_t body = text.size() - 20;
  text.replace(body, 16, Checksum::of(std::string_view(text).substr(0, body)));
  write_bytes(scratch.path("m/2/state.json"), text);
  EXPECT_EQ(load_checkpoint(scratch.path("m")).status().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace streamvec
