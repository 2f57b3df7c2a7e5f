// A file that lives as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace streamvec {

class TestFile {
 public:
  explicit TestFile(std::string_view text, const std::string& name = "set.txt")
      : path_(testing::TempDir() + unique() + name) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TestFile() { std::remove(path_.c_str()); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static std::string unique() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string(test->test_suite_name()) + "." + test->name() + ".";
  }
  std::string path_;
};

}  // namespace streamvec
