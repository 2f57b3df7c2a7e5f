// Words and vectors as they come out of a file, gathered into a Snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// Most values of a vector that are believed; a longer one is a damaged header.
constexpr int64_t kDimMax = int64_t{1} << 20;

// Grows with the rows that really come, whatever a header promised: the table is made for rows_expected rows (which
// the caller has checked against the file's size) and doubles when there are more.
class SnapshotBuilder {
 public:
  static Result<SnapshotBuilder> make(int64_t dim, int64_t rows_expected);

  // A row of `dim` values to be filled, for a word that must be new. The caller adds the place to the message.
  // kInvalidArgument: empty, longer than Vocabulary::kWordBytesMax, there already, or counts that add up to 2^63.
  Result<float*> add(std::string_view word, int64_t count = 0);
  int64_t rows() const { return vocabulary_.size(); }
  int64_t dim() const { return table_.cols(); }

  // The whole; where no word had a count, each gets a pseudo count.
  Snapshot finish();

 private:
  SnapshotBuilder() = default;

  Vocabulary vocabulary_;
  Matrix table_;
};

// Files of vectors mostly have no counts but go by falling frequency; negative sampling and subsampling need counts. So
// the word of rank r (from 0) of V gets V / (r + 1), rounded up: Zipf's law, 1 for the last. Does nothing when there
// are counts.
void give_pseudo_counts(Vocabulary& vocabulary);

}  // namespace streamvec
