// What the tests of file formats share: a directory that cleans up after itself, and vectors to write and compare.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// In memory where there is such a place: thousands of small synced files would make a test wait for the disk.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string in_memory = "/dev/shm/streamvec-test-XXXXXX";
    std::string on_disk = (std::filesystem::temp_directory_path() / "streamvec-test-XXXXXX").string();
    path_ = ::mkdtemp(in_memory.data()) != nullptr ? in_memory : ::mkdtemp(on_disk.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Makes the file anew: emptying one that is there makes some file systems (ext4) wait for the disk.
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Any finite float32: tiny, huge, denormal, negative zero, so that text must carry every bit.
inline void fill_with_any_floats(Matrix& matrix, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.cols(); ++j) {
      uint32_t bits = random.next_u32();
      if ((bits & 0x7f800000u) == 0x7f800000u) bits &= 0x807fffffu;
      std::memcpy(matrix.row(i) + j, &bits, sizeof bits);
    }
}

inline Snapshot make_snapshot(const std::vector<std::string>& words, int64_t dim, uint64_t seed = 1) {
  Snapshot snapshot;
  int64_t count = 10 * static_cast<int64_t>(words.size());
  for (const std::string& word : words) snapshot.vocabulary.add(word, count -= 7);
  snapshot.input = Matrix::make(static_cast<int64_t>(words.size()), dim).value();
  fill_with_any_floats(snapshot.input, seed);
  return snapshot;
}

inline void expect_same_table(MatrixView<const float> a, MatrixView<const float> b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.cols, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    ASSERT_EQ(std::memcmp(a.row(i), b.row(i), static_cast<size_t>(a.cols) * sizeof(float)), 0) << "row " << i;
}

inline void expect_same_words(const Vocabulary& a, const Vocabulary& b) {
  ASSERT_EQ(a.size(), b.size());
  for (Slot slot = 0; slot < a.size(); ++slot) ASSERT_EQ(a.word(slot), b.word(slot));
}

}  // namespace streamvec
