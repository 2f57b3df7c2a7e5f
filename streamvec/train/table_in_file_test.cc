#include "streamvec/train/table_in_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(TableInFile, BeginsWithZerosAndKeepsWhatIsWritten) {
  const TemporaryDirectory directory;
  Result<TableInFile> table = TableInFile::make(1'000, 7, directory.path());
  ASSERT_TRUE(table.ok()) << table.status().message();
  for (const int64_t row : {0, 500, 999})
    EXPECT_THAT(std::vector<float>(table->row(row), table->row(row) + 7), Each(0));
  for (int64_t row = 0; row < 1'000; ++row) table->row(row)[6] = static_cast<float>(row);
  const TableInFile moved = std::move(*table);
  const MatrixView<const float> view = moved.view();
  EXPECT_EQ(view.rows, 1'000);
  EXPECT_EQ(view.cols, 7);
  for (int64_t row = 0; row < 1'000; ++row) EXPECT_EQ(view.row(row)[6], static_cast<float>(row));
}

TEST(TableInFile, HasNoNameThatCouldStayBehind) {
  const TemporaryDirectory directory;
  const Result<TableInFile> table = TableInFile::make(10, 10, directory.path());
  ASSERT_TRUE(table.ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(TableInFile, ADirectoryThatIsNotThereIsAnError) {
  const TemporaryDirectory directory;
  const Status none = TableInFile::make(10, 10, directory.path() + "/none").status();
  EXPECT_FALSE(none.ok());
  EXPECT_THAT(none.message(), HasSubstr("/none"));
}

TEST(TableInFile, SpaceThatIsNotThereIsAnErrorAtOnce) {
  const TemporaryDirectory directory;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1 << 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = TableInFile::make(1 << 16, 10, directory.path()).status();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(full.ok());
  EXPECT_THAT(full.message(), HasSubstr("take space"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace streamvec
