// What happens to a model directory: bytes lost, changed and added, disks that fill up, processes killed while saving.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "streamvec/core/random.h"
#include "streamvec/format/test_support.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/checkpoint_manifest.h"
#include "streamvec/train/checkpoint_test_support.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFiles[] = {"model.safetensors", "vocab.tsv", "cursors.json", "state.json"};

// Versions 1 and 2 as steps 1 and 2; step 2 gets damaged.
class CheckpointDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(TestModel(1).save(dir_, 1).ok());
    ASSERT_TRUE(TestModel(2).save(dir_, 2).ok());
  }
  std::string newest(const std::string& file) const { return dir_ + "/2/" + file; }

  // The newest is passed over, with a note that names its file and a place in it.
  void expect_fallback(const std::string& file, const std::string& what) {
    const auto loaded = load_checkpoint(dir_);
    ASSERT_TRUE(loaded.ok()) << what << ": " << loaded.status().message();
    ASSERT_EQ(version_of(*loaded), 1) << what;
    ASSERT_THAT(loaded->notes, ElementsAre(HasSubstr("went back to the checkpoint of step 1"))) << what;
    ASSERT_THAT(loaded->notes[0], HasSubstr(file)) << what;
  }
  void expect_all_damaged() {
    fs::rename(dir_ + "/1", scratch_.path("1"));
    EXPECT_EQ(load_checkpoint(dir_).status().code(), Code::kDataLoss);
    fs::rename(scratch_.path("1"), dir_ + "/1");
  }

  ScratchDirectory scratch_;
  std::string dir_ = scratch_.path("model");
};

TEST_F(CheckpointDamageTest, EveryTruncationOfEveryFileFallsBack) {
  for (const char* file : kFiles) {
    const std::string whole = read_bytes(newest(file));
    for (size_t length = 0; length < whole.size(); ++length) {
      write_bytes(newest(file), whole.substr(0, length));
      expect_fallback(newest(file), "cut at byte " + std::to_string(length));
      if (HasFatalFailure()) return;
    }
    expect_all_damaged();
    write_bytes(newest(file), whole);
  }
  EXPECT_EQ(version_of(load_checkpoint(dir_).value()), 2) << "mended";
}

// That damage falls back is shown above; here the one before is out of the way, which spares reading it 15,000 times.
TEST_F(CheckpointDamageTest, EveryFlippedBitOfEveryFileIsFoundOut) {
  fs::rename(dir_ + "/1", scratch_.path("1"));
  for (const char* file : kFiles) {
    const std::string whole = read_bytes(newest(file));
    const int descriptor = ::open(newest(file).c_str(), O_WRONLY);
    ASSERT_GE(descriptor, 0);
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      const char flipped = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
      ASSERT_EQ(::pwrite(descriptor, &flipped, 1, static_cast<off_t>(bit / 8)), 1);
      const Status status = load_checkpoint(dir_).status();
      ASSERT_EQ(status.code(), Code::kDataLoss) << file << " bit " << bit;
      ASSERT_THAT(status.message(), HasSubstr(newest(file))) << "bit " << bit;
      ASSERT_EQ(::pwrite(descriptor, &whole[bit / 8], 1, static_cast<off_t>(bit / 8)), 1);
    }
    ::close(descriptor);
  }
  EXPECT_EQ(version_of(load_checkpoint(dir_).value()), 2) << "mended";
}

TEST_F(CheckpointDamageTest, AQueryNeverSeesAFlippedBit) {
  const std::string whole = read_bytes(newest("model.safetensors"));
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 0x10);
    write_bytes(newest("model.safetensors"), bytes);
    std::vector<std::string> notes;
    const auto snapshot = load_snapshot(dir_, &notes);
    ASSERT_TRUE(snapshot.ok());
    ASSERT_EQ(snapshot->input.row(2)[1], static_cast<float>(snapshot->step)) << byte;
    ASSERT_EQ(snapshot->step == 1, notes.size() == 1) << byte;
  }
}

TEST_F(CheckpointDamageTest, BytesThatFollowFallBack) {
  for (const char* file : kFiles)
    for (const size_t count : {1, 8, 4096}) {
      const std::string whole = read_bytes(newest(file));
      write_bytes(newest(file), whole + std::string(count, ' '));
      expect_fallback(newest(file), std::to_string(count) + " more bytes");
      write_bytes(newest(file), whole);
    }
}

TEST_F(CheckpointDamageTest, AMissingFileFallsBack) {
  for (const char* file : kFiles) {
    fs::rename(newest(file), scratch_.path("away"));
    expect_fallback(newest(file), "missing");
    expect_all_damaged();
    fs::rename(scratch_.path("away"), newest(file));
  }
}

TEST_F(CheckpointDamageTest, HugeLengthsTakeNoMemory) {
  const std::string whole = read_bytes(newest("model.safetensors"));
  for (const uint64_t length : {uint64_t{1} << 20, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::string bytes = whole;
    std::memcpy(bytes.data(), &length, sizeof length);
    write_bytes(newest("model.safetensors"), bytes);
    expect_fallback(newest("model.safetensors"), std::to_string(length));
  }
  write_bytes(newest("model.safetensors"), whole);
  auto manifest = CheckpointManifest::decode(read_bytes(newest("state.json")), "");
  ASSERT_TRUE(manifest.ok());
  for (auto& [name, file] : manifest->files) {
    const int64_t bytes = std::exchange(file.bytes, int64_t{1} << 60);
    write_bytes(newest("state.json"), manifest->encode());
    expect_fallback(newest(name), "a huge size, rightly summed");
    file.bytes = bytes;
  }
  fs::resize_file(newest("state.json"), uintmax_t{1} << 40);  // sparse
  expect_fallback(newest("state.json"), "a terabyte of zeros");
}

TEST_F(CheckpointDamageTest, FilesOfTwoCheckpointsMixedUpAreFoundOut) {
  for (const char* file : {"model.safetensors", "vocab.tsv", "cursors.json"}) {
    fs::copy_file(newest(file), scratch_.path("mine"), fs::copy_options::overwrite_existing);
    fs::copy_file(dir_ + "/1/" + file, newest(file), fs::copy_options::overwrite_existing);
    expect_fallback(newest(file), "from the other");
    fs::copy_file(scratch_.path("mine"), newest(file), fs::copy_options::overwrite_existing);
  }
  fs::rename(dir_ + "/2", dir_ + "/3");
  expect_fallback(dir_ + "/3/state.json", "renamed");
}

TEST_F(CheckpointDamageTest, WhatMayNotBeReadIsAnErrorAndNotDamage) {
  fs::permissions(scratch_.path(), fs::perms(0755));
  fs::permissions(newest("model.safetensors"), fs::perms::none);
  EXPECT_TRUE(run_in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
    const Status status = load_checkpoint(dir_).status();
    return status.code() == Code::kPermissionDenied &&
           status.message().find(newest("model.safetensors")) != std::string::npos;
  }));
}

// The files of a checkpoint end at ever more bytes, as on a disk with that much space; the limit is the process's own.
TEST_F(CheckpointDamageTest, ASaveThatCannotBeWrittenLeavesTheOnesBefore) {
  const TestModel model(3, 50, 10);
  for (rlim_t limit = 0; limit < 6000; limit += 97) {
    const bool refused = run_in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      auto writer = CheckpointWriter::open(dir_);
      const rlimit bound{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &bound);
      const Status status = writer.ok() ? writer->save(model.content(3)) : writer.status();
      return status.code() == Code::kResourceExhausted && status.message().find(dir_) != std::string::npos;
    });
    ASSERT_TRUE(refused) << limit;
    const auto loaded = load_checkpoint(dir_);
    ASSERT_TRUE(loaded.ok());
    ASSERT_EQ(version_of(*loaded), 2);
    ASSERT_THAT(names_in(dir_), ::testing::UnorderedElementsAre(".lock", "latest", "1", "2"));
  }
}

TEST(CheckpointDiskTest, AFullDiskLeavesTheOnesBefore) {
  const ScratchDirectory scratch;
  if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=512k,mode=0777") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here (needs root): " << std::strerror(errno);
  const std::string dir = scratch.path("model");
  Status full;
  int saved = 0;
  for (int version = 1; full.ok() && version < 100; ++version) {
    full = TestModel(version, 20 * version, 16).save(dir, version);
    if (full.ok()) saved = version;
  }
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("No space left"));
  EXPECT_THAT(full.message(), HasSubstr(dir));
  EXPECT_GT(saved, 2);
  const auto loaded = load_checkpoint(dir);
  EXPECT_TRUE(loaded.ok() && version_of(*loaded) == saved && loaded->notes.empty());
  EXPECT_TRUE(TestModel(saved + 1).save(dir, saved + 1).ok()) << "the failed save gave its space back";
  ::umount(scratch.path().c_str());
}

TEST(CheckpointKillTest, AKillAtAnyMomentLeavesACompleteCheckpoint) {
  const ScratchDirectory scratch;
  const std::string dir = scratch.path("model");
  auto save_us =
      std::chrono::microseconds::max();  // the shortest of several: a disk or a core may stand still for long
  for (int save = 0; save < 6; ++save) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(TestModel(1, 300, 20).save(dir, 1).ok());
    save_us = std::min(save_us,
                       std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start));
  }
  Random random(11);
  constexpr int kHitsLeast = 50, kNewestLeast = 50;
  int newest = 1, kills_that_hit_a_save = 0;
  // More rounds where saves are slower than they were.
  const auto enough = [&] { return kills_that_hit_a_save > kHitsLeast && newest > kNewestLeast; };
  for (int round = 0; round < 250 || (round < 2'500 && !enough()); ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    ChildProcess child([&] {
      auto writer = CheckpointWriter::open(dir);
      for (int version = newest + 1; writer.ok(); ++version) {
        const TestModel model(version, 300, 20);
        if (!writer->save(model.content(1 + version / 3)).ok()) break;  // each step is replaced twice
        if (::write(pipe_ends[1], &version, sizeof version) < 0) break;
      }
    });
    ::usleep(random.below(static_cast<uint32_t>(1000 + 4 * save_us.count())));
    child.kill();
    ::close(pipe_ends[1]);
    int acknowledged = newest, version = 0;
    while (::read(pipe_ends[0], &version, sizeof version) == sizeof version) acknowledged = version;
    ::close(pipe_ends[0]);
    for (const std::string& name : names_in(dir)) kills_that_hit_a_save += name.find('.', 1) != name.npos ? 1 : 0;

    const auto loaded = load_checkpoint(dir);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    ASSERT_TRUE(loaded->notes.empty()) << loaded->notes[0];
    newest = version_of(*loaded);
    // What save() returned for is there; the one in the making may be, too.
    ASSERT_GE(newest, acknowledged);
    ASSERT_LE(newest, acknowledged + 1);
  }
  EXPECT_GT(kills_that_hit_a_save, kHitsLeast) << "the kills must fall into saves to show anything";
  EXPECT_GT(newest, kNewestLeast);
}

}  // namespace
}  // namespace streamvec
