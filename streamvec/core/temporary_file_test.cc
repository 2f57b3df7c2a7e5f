#include "streamvec/core/temporary_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace streamvec {
namespace {

TEST(TemporaryFile, GivesBackWhatWasWrittenAtAnyPlace) {
  auto file = TemporaryFile::create(::testing::TempDir());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append("hello ", 6).ok());
  ASSERT_TRUE(file->append("world", 5).ok());
  EXPECT_EQ(file->size(), 11);
  std::string bytes(5, ' ');
  ASSERT_TRUE(file->read(4, bytes.data(), 5).ok());
  EXPECT_EQ(bytes, "o wor");
  EXPECT_EQ(file->read(8, bytes.data(), 5).code(), Code::kDataLoss);
}

TEST(TemporaryFile, HasNoName) {
  const std::string dir = ::testing::TempDir() + "/temporary_file_test";
  std::filesystem::create_directories(dir);
  const auto file = TemporaryFile::create(dir);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

TEST(TemporaryFile, NamesTheDirectoryThatIsNotThere) {
  const auto file = TemporaryFile::create("/no/such/directory");
  EXPECT_EQ(file.status().code(), Code::kNotFound);
  EXPECT_NE(file.status().message().find("/no/such/directory"), std::string::npos);
}

}  // namespace
}  // namespace streamvec
