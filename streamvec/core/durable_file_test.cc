#include "streamvec/core/durable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// What `body` returns in a process of its own, so that limits and user ids it sets end with it.
bool run_in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class DurableFileTest : public ::testing::Test {
 protected:
  DurableFileTest() {
    std::string pattern = (fs::temp_directory_path() / "streamvec-durable-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~DurableFileTest() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path().filename());
    return found;
  }

  fs::path directory_;
};

TEST_F(DurableFileTest, WhatIsCommittedIsWhatIsRead) {
  const std::string bytes = std::string(3'000'000, 'a') + std::string("\0end", 4);
  ASSERT_TRUE(write_file_durably(path("f"), bytes).ok());
  auto reader = FileReader::open(path("f"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->read_all(1 << 22).value(), bytes);
  EXPECT_EQ(Checksum::to_text(reader->checksum(0, reader->size()).value()), Checksum::of(bytes));
}

TEST_F(DurableFileTest, TheOldFileStaysUntilCommit) {
  ASSERT_TRUE(write_file_durably(path("f"), "old").ok());
  {
    auto file = DurableFile::create(path("f"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
    EXPECT_EQ(content(path("f")), "old");
  }
  EXPECT_EQ(content(path("f")), "old");
  EXPECT_EQ(names().size(), 1u) << "an abandoned file leaves nothing behind";
}

TEST_F(DurableFileTest, ASymbolicLinkStaysALink) {
  ASSERT_TRUE(write_file_durably(path("target"), "old").ok());
  fs::create_symlink("target", path("link"));
  ASSERT_TRUE(write_file_durably(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(DurableFileTest, AFullDeviceIsResourceExhausted) {
  auto file = DurableFile::create("/dev/full");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("x").ok()) << "still in the buffer";
  const Status status = file->commit();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("/dev/full"));
  EXPECT_THAT(status.message(), HasSubstr("free some space"));
}

TEST_F(DurableFileTest, TheFirstWriteErrorSticks) {
  auto writer = FileWriter::create("/dev/full");
  ASSERT_TRUE(writer.ok());
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(writer->write(large).code(), Code::kResourceExhausted);
  EXPECT_EQ(writer->write("y").code(), Code::kResourceExhausted);
  EXPECT_EQ(writer->close().code(), Code::kResourceExhausted);
}

TEST_F(DurableFileTest, AFailedWriteLeavesTheOldFileAndNoLeftover) {
  ASSERT_TRUE(write_file_durably(path("f"), "old").ok());
  EXPECT_TRUE(run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return write_file_durably(path("f"), std::string(5000, 'n')).code() == Code::kResourceExhausted;
  }));
  EXPECT_EQ(content(path("f")), "old");
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(DurableFileTest, ErrorsNameThePathAndWhatToTry) {
  const Status missing = FileReader::open(path("none")).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(path("none")));
  const Status nowhere = write_file_durably(path("no/such/place"), "x");
  EXPECT_EQ(nowhere.code(), Code::kNotFound);
  EXPECT_THAT(nowhere.message(), HasSubstr("no/such/place"));
  EXPECT_EQ(write_file_durably(directory_.string(), "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(FileReader::open(directory_.string()).status().code(), Code::kInvalidArgument);
}

TEST_F(DurableFileTest, LinksThatLeadInACircleAreCalledThat) {
  fs::create_symlink(path("b"), path("a"));
  fs::create_symlink(path("a"), path("b"));
  EXPECT_THAT(FileReader::open(path("a")).status().message(), HasSubstr("in a circle"));
}

TEST_F(DurableFileTest, APipeIsRefusedWithoutWaitingForItsWriter) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(FileReader::open(path("pipe")).status().code(), Code::kInvalidArgument);
}

TEST_F(DurableFileTest, AFileWithoutPermissionIsRefused) {
  ASSERT_TRUE(write_file_durably(path("f"), "x").ok());
  fs::permissions(path("f"), fs::perms::none);
  fs::permissions(directory_, fs::perms(0555));
  EXPECT_TRUE(run_in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;  // root may read everything
    return FileReader::open(path("f")).status().code() == Code::kPermissionDenied &&
           write_file_durably(path("g"), "x").code() == Code::kPermissionDenied;
  }));
  fs::permissions(directory_, fs::perms(0755));
}

TEST_F(DurableFileTest, AFileThatShrinksIsAnErrorWithItsOffset) {
  ASSERT_TRUE(write_file_durably(path("f"), "0123456789").ok());
  auto reader = FileReader::open(path("f"));
  ASSERT_TRUE(reader.ok());
  fs::resize_file(path("f"), 4);
  const Status status = reader->read_all(100).status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("ends at byte 4"));
}

TEST_F(DurableFileTest, AFileLargerThanExpectedIsRefusedBeforeMemoryIsTaken) {
  ASSERT_TRUE(write_file_durably(path("f"), "x").ok());
  fs::resize_file(path("f"), uintmax_t{1} << 40);  // sparse
  auto reader = FileReader::open(path("f"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->read_all(1 << 20).status().code(), Code::kResourceExhausted);
}

TEST_F(DurableFileTest, ADirectoryAppearsWholeOrNotAtAll) {
  {
    auto directory = DurableDirectory::create(path("d"));
    ASSERT_TRUE(directory.ok());
    auto file = FileWriter::create(directory->partial_path() + "/f");
    ASSERT_TRUE(file.ok() && file->write("x").ok() && file->close().ok());
    EXPECT_FALSE(fs::exists(path("d")));
  }
  EXPECT_TRUE(names().empty()) << "an abandoned directory leaves nothing behind";
  auto directory = DurableDirectory::create(path("d"));
  ASSERT_TRUE(directory.ok() && directory->commit().ok());
  EXPECT_THAT(names(), ::testing::ElementsAre("d"));
}

TEST_F(DurableFileTest, ADirectoryIsNeverWrittenOver) {
  fs::create_directory(path("d"));
  std::ofstream(path("d/mine")) << "x";
  auto directory = DurableDirectory::create(path("d"));
  ASSERT_TRUE(directory.ok());
  EXPECT_EQ(directory->commit().code(), Code::kAlreadyExists);
  EXPECT_TRUE(fs::exists(path("d/mine")));
}

TEST_F(DurableFileTest, AKillAtAnyMomentLeavesTheOldOrTheNew) {
  const std::string target = path("f");
  ASSERT_TRUE(write_file_durably(target, std::string(70'000, 'a')).ok());
  for (int round = 0; round < 50; ++round) {
    const pid_t child = ::fork();
    if (child == 0)
      for (char letter = 'a';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
        if (!write_file_durably(target, std::string(70'000, letter)).ok()) ::_exit(1);
    ::usleep(static_cast<useconds_t>(100 + 173 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string bytes = content(target);
    ASSERT_EQ(bytes.size(), 70'000u);
    ASSERT_EQ(bytes, std::string(70'000, bytes[0]));
  }
}

TEST(Checksum, PiecesGiveTheSumOfTheWhole) {
  Checksum sum;
  for (const std::string_view piece : {"word", "", " vect", "ors"}) sum.update(piece);
  EXPECT_EQ(sum.text(), Checksum::of("word vectors"));
  EXPECT_EQ(Checksum::of(""), "2d06800538d394c2") << "the published value for no bytes";
}

}  // namespace
}  // namespace streamvec
