// Some rows of the shared tables: those that a node owns, or as one of its workers knows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/message.h"

namespace streamvec {

// Rows keep their places while the shard grows; a row that is given up leaves its place to the next one.
class Shard {
 public:
  // Room for the rows of all keys below key_end; memory is taken as they come.
  static Result<Shard> make(RowKey key_end, int64_t dim);

  // The row's place; a new row is zero and untouched. REQUIRES: key < key_end.
  int64_t add(RowKey key);
  void remove(RowKey key);
  int64_t find(RowKey key) const { return places_[key]; }  // -1: not here
  float* row(int64_t place) { return values_.row(place); }
  const float* row(int64_t place) const { return values_.row(place); }
  // Whether the row may differ from its initial value: somebody has trained on it.
  bool touched(int64_t place) const { return touched_[static_cast<size_t>(place)] != 0; }
  void touch(int64_t place) { touched_[static_cast<size_t>(place)] = 1; }
  std::vector<RowKey> keys() const;                  // rising
  int64_t places() const { return values_.rows(); }  // every place is below it
  int64_t size() const { return size_; }
  int64_t dim() const { return values_.cols(); }

 private:
  Matrix values_;
  std::vector<uint8_t> touched_;
  std::vector<int32_t> places_;  // by key
  int64_t size_ = 0;
  std::vector<int64_t> free_;
};

}  // namespace streamvec
