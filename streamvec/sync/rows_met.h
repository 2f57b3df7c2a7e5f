// Which rows of tables that grow are in use anywhere: rounds take those, by blocks. Each node tells which blocks it
// has in use, and the means, which are the same everywhere, say what the next round takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"

namespace streamvec {

class RowsMet {
 public:
  // A table that grows, borrowed.
  void add(const Matrix& table) {
    tables_.push_back(&table);
    blocks_ = std::max(blocks_, blocks_of(table.rows_max()));
    take(blocks_of(table.rows()) * kRowsOfBlock);
  }
  int64_t rows() const { return rows_; }
  // Of a table with so many rows at most, those that the next round takes.
  int64_t rows_of(const Matrix& table) const { return std::min(rows_, table.rows_max()); }
  void take(int64_t rows) { rows_ = std::max(rows_, rows); }

  // One value a block.
  int64_t values() const { return blocks_; }
  void bring(std::span<float> values) const {
    int64_t rows = 0;
    for (const Matrix* table : tables_) rows = std::max(rows, table->rows());
    for (int64_t block = 0; block < blocks_; ++block)
      values[static_cast<size_t>(block)] = block < blocks_of(rows) ? 1 : 0;
  }
  void find(std::span<const float> means) {
    for (int64_t block = 0; block < blocks_; ++block)
      if (means[static_cast<size_t>(block)] > 0) take((block + 1) * kRowsOfBlock);
  }

 private:
  static constexpr int64_t kRowsOfBlock = 64;
  static int64_t blocks_of(int64_t rows) { return (rows + kRowsOfBlock - 1) / kRowsOfBlock; }

  std::vector<const Matrix*> tables_;
  int64_t rows_ = 0, blocks_ = 0;
};

}  // namespace streamvec
