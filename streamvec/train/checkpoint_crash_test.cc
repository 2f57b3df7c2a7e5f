// Checkpoints on a disk that loses power, is full, and fails to sync (core/simulated_disk.h): a run over some pieces of
// text, ended at any change to the disk and resumed until it is through.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "streamvec/core/simulated_disk.h"
#include "streamvec/core/testing_seeds.h"
#include "streamvec/format/test_support.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/checkpoint_test_support.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

// A training that counts its pieces of text, and dies. Each save has a number of its own, which everything in it has.
class SimulatedRun {
 public:
  SimulatedRun(uint64_t seed, SimulatedDisk::Options options) : random_(seed), disk_(root_, with_seed(options, seed)) {}

  // Until every piece was trained on and saved; returns what went wrong ("" when nothing did).
  std::string run() {
    for (int32_t life = 0; life < kLivesMax && !done_; ++life) {
      if (!live()) return wrong_.str();
      if (random_.uniform() < 0.6f) disk_.lose_power(), ++losses_;
      disk_.restart();
    }
    if (!done_) wrong_ << "the run does not come to its end: " << last_error_ << "; ";
    return wrong_.str();
  }
  int64_t losses_of_power() const { return losses_; }
  int64_t failures() const { return disk_.failures(); }
  int64_t resumed() const { return resumed_; }

 private:
  static constexpr int32_t kLivesMax = 200;
  static constexpr int64_t kPieces = 12;

  static SimulatedDisk::Options with_seed(SimulatedDisk::Options options, uint64_t seed) {
    options.seed = mix(seed, 1);
    return options;
  }

  // One process, to its end. False: something is wrong.
  bool live() {
    const DiskWatch::Scope watched(disk_);
    if (random_.uniform() < 0.9f) disk_.end_after(random_.below(90));
    if (!resume() || !check_latest()) return false;
    if (next_ == kPieces && saved_ == last_save_) return done_ = true;
    const std::string job = random_.uniform() < 0.5f ? "a job" : "";
    auto writer = CheckpointWriter::open(dir_, job);
    if (!writer.ok() && !disk_.ended()) last_error_ = writer.status().message();
    while (writer.ok()) {
      if (next_ < kPieces && random_.uniform() < 0.8f) ++counts_[static_cast<size_t>(next_++)];
      if (random_.uniform() < 0.5f) continue;
      if (!save(*writer)) break;
      if (next_ == kPieces && random_.uniform() < 0.5f) break;
      if (!job.empty() && random_.uniform() < 0.2f) return take_over(*writer);
    }
    return wrong_.str().empty();
  }

  bool save(CheckpointWriter& writer) {
    const TestModel model(++last_save_);
    CheckpointContent content = model.content(next_);
    content.state["counts"] = counts_;
    content.cursors["next"] = next_;
    const Status status = writer.save(content);
    if (status.ok()) saved_ = last_save_;
    if (!status.ok() && !disk_.ended()) last_error_ = status.message();
    return status.ok();
  }

  // A leader that is thought to be lost has a successor, which saves; it may not.
  bool take_over(CheckpointWriter& former) {
    auto successor = CheckpointWriter::open(dir_, "a job");
    if (!successor.ok() || !resume()) return wrong_.str().empty();
    save(*successor);
    const int saved = saved_;
    if (save(former)) wrong_ << "a leader that has a successor has saved; ";
    saved_ = saved;
    return wrong_.str().empty();
  }

  bool resume() {
    const auto loaded = load_checkpoint(dir_);
    counts_.assign(kPieces, 0);
    next_ = 0;
    if (loaded.status().code() == Code::kNotFound) {
      if (saved_ > 0) wrong_ << "save " << saved_ << " was acknowledged, and nothing is there; ";
      return saved_ == 0;
    }
    if (!loaded.ok()) {
      wrong_ << loaded.status().message() << "; ";
      return false;
    }
    const int version = version_of(*loaded);
    for (const std::string& note : loaded->notes) wrong_ << note << "; ";
    if (version < saved_) wrong_ << "save " << saved_ << " was acknowledged, and " << version << " is loaded; ";
    next_ = loaded->cursors.at("next");
    counts_ = loaded->state.at("counts").get<std::vector<int>>();
    for (int64_t piece = 0; piece < kPieces; ++piece)
      if (counts_[static_cast<size_t>(piece)] != (piece < next_ ? 1 : 0))
        wrong_ << "piece " << piece << " was counted " << counts_[static_cast<size_t>(piece)] << " times; ";
    ++resumed_;
    return wrong_.str().empty();
  }

  // What it names is there and whole; while one of the same step takes its place, under the name that it has meanwhile.
  bool check_latest() {
    if (!fs::exists(dir_ + "/latest")) return true;
    std::string named = read_bytes(dir_ + "/latest");
    if (!named.empty() && named.back() == '\n') named.pop_back();
    const ScratchDirectory alone;
    for (const std::string& name : {named, named + ".replaced"})
      if (fs::exists(dir_ + "/" + name)) fs::create_directory_symlink(dir_ + "/" + name, alone.path(name));
    if (const auto loaded = load_checkpoint(alone.path()); !loaded.ok())
      wrong_ << "latest names " << named << ": " << loaded.status().message() << "; ";
    return wrong_.str().empty();
  }

  Random random_;
  const ScratchDirectory scratch_;
  const std::string root_ = scratch_.path(), dir_ = scratch_.path("runs/today/model");
  SimulatedDisk disk_;
  std::vector<int> counts_ = std::vector<int>(kPieces, 0);
  int64_t next_ = 0;
  int last_save_ = 0, saved_ = 0;  // the last that was tried, and that was acknowledged
  int64_t losses_ = 0, resumed_ = 0;
  bool done_ = false;
  std::string last_error_;
  std::ostringstream wrong_;
};

TEST(CheckpointCrash, TheNewestCompleteOneLoadsAndEveryPieceCountsOnceWhereverARunIsCutOff) {
  const int64_t first = first_seed(), seeds = seeds_or(60);
  int64_t losses = 0, failures = 0, resumed = 0;
  for (int64_t seed = first; seed < first + seeds; ++seed) {
    SimulatedDisk::Options options;
    if (seed % 2 == 0) options.full = options.sync_error = 0.01;
    SimulatedRun run(static_cast<uint64_t>(seed), options);
    ASSERT_EQ(run.run(), "") << "seed " << seed;
    losses += run.losses_of_power();
    failures += run.failures();
    resumed += run.resumed();
  }
  EXPECT_GT(losses, 2 * seeds);
  EXPECT_GT(resumed, 2 * seeds);
  EXPECT_GT(failures, seeds / 4);
}

// How many of so many seeds give the fault away, with these words.
template <typename Plant>
int64_t runs_that_find(Plant&& plant, const std::string& words, uint64_t seeds) {
  int64_t found = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SimulatedDisk::Options options;
    plant(options);
    found += SimulatedRun(seed, options).run().find(words) != std::string::npos ? 1 : 0;
  }
  return found;
}

TEST(CheckpointCrash, FilesThatAreNotSyncedAreFound) {
  EXPECT_GE(runs_that_find([](auto& options) { options.skip_sync = true; }, "is damaged", 40), 20);
}

TEST(CheckpointCrash, DirectoriesThatAreNotSyncedAreFound) {
  EXPECT_GE(runs_that_find([](auto& options) { options.skip_directory_sync = true; }, "was acknowledged", 40), 20);
}

TEST(CheckpointCrash, ALatestThatIsWrittenBeforeItsCheckpointIsFound) {
  EXPECT_GE(runs_that_find([](auto& options) { options.rename_late = true; }, "latest names", 100), 3);
}

}  // namespace
}  // namespace streamvec
