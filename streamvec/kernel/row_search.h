// Exact search over rows that stay as they are, for many questions one after the other. A first pass goes over a copy
// in the form of the fastest matrix product of this machine (packed_gemm.h; in bf16 where it has that: half the memory
// to read, twice the products a second); what may be among the k best, rounding considered, is then weighed with the
// rows themselves. So the answer is that of top_k(), sooner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {

// Thread-safe; runs on the calling thread.
class RowSearch {
 public:
  // Borrows `rows`, which must outlive it and not change. REQUIRES: rows of length 1 (or zero). `kind` as
  // make_packed_gemm() has it, and fails as that. kResourceExhausted: there is no memory for the copy.
  static Result<std::unique_ptr<const RowSearch>> make(MatrixView<const float> rows, std::string_view kind = "auto");

  // As top_k(), over the rows; the scores are inner_product()'s. REQUIRES: queries of length 1 (or zero).
  void top_k(MatrixView<const float> queries, std::span<const std::span<const int32_t>> excluded, int32_t k,
             std::span<Hit> hits) const;
  std::string kind() const { return gemm_->name(); }

 private:
  RowSearch(MatrixView<const float> rows, std::shared_ptr<const PackedGemm> gemm);
  void weigh(const float* query, std::span<const Hit> likely, float least, std::span<const int32_t> excluded,
             std::span<Hit> hits) const;

  const MatrixView<const float> rows_;
  const std::shared_ptr<const PackedGemm> gemm_;
  float error_ = 0;  // of a product, at most
  std::vector<PackedFactor> blocks_;
};

}  // namespace streamvec
