// Rows that need not stay in memory: a file without a name, mapped, so that the system may write pages out and take
// them back. For tables that are written once and read once, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Movable.
class TableInFile {
 public:
  TableInFile() = default;
  // Zeros, on the file system of directory `dir`, whose space is taken at once: a full disk is an error here. REQUIRES:
  // rows > 0, cols > 0.
  static Result<TableInFile> make(int64_t rows, int64_t cols, const std::string& dir);

  float* row(int64_t i) { return data_.get() + i * cols_; }
  MatrixView<const float> view() const { return {data_.get(), rows_, cols_, cols_}; }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(float* data) const;
  };
  std::unique_ptr<float, Unmap> data_{nullptr, Unmap{}};
  int64_t rows_ = 0, cols_ = 0;
};

// Both tables of a model, of one shape.
struct TablesInFiles {
  static Result<TablesInFiles> make(int64_t rows, int64_t cols, const std::string& dir);
  TableInFile input, output;
};

}  // namespace streamvec
