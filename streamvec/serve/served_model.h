// A snapshot made ready for questions: rows to search, words in order. Immutable; readers hold it for as long
// as they need it, while newer ones take its place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/kernel/row_search.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/serve/hnsw_index.h"

namespace streamvec {

// One search over all rows.
struct SearchRequest {
  std::vector<float> unit;     // of length 1, or zero; own_part() of what is sought
  std::vector<Slot> excluded;  // not among the answers
  int32_t k = 10;
};

// Thread-safe.
class ServedModel {
 public:
  // Makes the search rows of the word vectors (SearchSpace, eval/neighbours.h). `number` counts the models served.
  // Searches look at every row. kResourceExhausted: no memory.
  static Result<std::shared_ptr<const ServedModel>> make(std::shared_ptr<const Snapshot> snapshot, int64_t number);

  // The same model, searched by the index.
  std::shared_ptr<const ServedModel> with_index(std::shared_ptr<const HnswIndex> index) const;
  bool is_exact() const { return index_ == nullptr; }

  const Snapshot& snapshot() const { return *snapshot_; }
  const Vocabulary& vocabulary() const { return snapshot_->vocabulary; }
  MatrixView<const float> search_rows() const { return parts_->rows.view(); }  // of length 1 or zero, by slot
  // A vector, as the snapshot has them, as search_rows() have it.
  std::vector<float> own_part(std::span<const float> vector) const { return parts_->space.own_part(vector); }
  int64_t number() const { return number_; }
  int64_t dim() const { return snapshot_->dim(); }
  double time_s() const { return time_s_; }  // when it was made ready, unix seconds

  // Answers all requests in one pass over the rows, or each by the index. REQUIRES: unit has dim() values, k > 0.
  std::vector<std::vector<Neighbour>> search(std::span<const SearchRequest> requests) const;

  // At most `count` words that begin with `prefix`, the most frequent first (ties: by bytes). Where none begins with it
  // as written, case-folded.
  std::vector<Slot> words_with(std::string_view prefix, int64_t count) const;
  // The `count` most frequent words.
  std::span<const Slot> most_frequent(int64_t count) const;

 private:
  // What models with and without an index share.
  struct Parts {
    SearchSpace space;
    Matrix rows;
    std::unique_ptr<const RowSearch> search;
    std::vector<Slot> by_bytes, by_count;
  };
  ServedModel(std::shared_ptr<const Snapshot> snapshot, std::shared_ptr<const Parts> parts, int64_t number,
              double time_s);
  std::vector<Slot> begin_with(std::string_view prefix, int64_t count) const;

  const std::shared_ptr<const Snapshot> snapshot_;
  const std::shared_ptr<const Parts> parts_;
  std::shared_ptr<const HnswIndex> index_;
  const int64_t number_;
  const double time_s_;
};

}  // namespace streamvec
