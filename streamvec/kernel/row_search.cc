#include "streamvec/kernel/row_search.h"

#include <algorithm>

#include "streamvec/core/memory.h"
#include "streamvec/kernel/top_k_selection.h"

namespace streamvec {
namespace {

constexpr int64_t kBlockRows = 2'048;   // products with them stay in the second cache
constexpr int64_t kQueriesAtOnce = 16;  // likewise
// A product of unit vectors: rounding both factors to bf16 changes it by 2^-9 of either length at most (Cauchy,
// Schwarz), summing hundreds of floats in another order by far less than 1e-4.
constexpr float kErrorBf16 = 2 * 0x1p-9f * 1.01f + 1e-4f, kErrorFloat = 1e-4f;

// What the first pass has found for one query: everything that may still be among the k best.
struct Likely {
  explicit Likely(int32_t k) : best(k, {}) {}
  TopKSelection best;  // by the rounded products
  std::vector<Hit> all;

  // Rows that are worse than the k-th by more than both errors are out, now and later.
  void offer(const float* scores, int64_t count, int64_t first, float both_errors) {
    float least = best.threshold() - both_errors;
    int64_t i = 0;
    for (; i + kStride <= count; i += kStride) {
      int any = 0;
      for (int64_t j = 0; j < kStride; ++j) any |= scores[i + j] >= least;  // many at once, which mostly is all
      for (int64_t j = 0; any != 0 && j < kStride; ++j) offer_one(scores[i + j], first + i + j, both_errors, least);
    }
    for (; i < count; ++i) offer_one(scores[i], first + i, both_errors, least);
  }

 private:
  static constexpr int64_t kStride = 64;
  void offer_one(float score, int64_t row, float both_errors, float& least) {
    if (!(score >= least)) return;
    all.push_back({static_cast<int32_t>(row), score});
    best.offer(static_cast<int32_t>(row), score);
    least = best.threshold() - both_errors;
  }
};

}  // namespace

Result<std::unique_ptr<const RowSearch>> RowSearch::make(MatrixView<const float> rows, std::string_view kind) {
  STREAMVEC_ASSIGN_OR_RETURN(auto gemm, make_packed_gemm(kind));
  const double bytes = static_cast<double>(rows.rows) * static_cast<double>(rows.cols + 16) * sizeof(float);
  STREAMVEC_RETURN_IF_ERROR(check_memory("searching " + std::to_string(rows.rows) + " rows", bytes, "fewer words"));
  return std::unique_ptr<const RowSearch>(new RowSearch(rows, std::move(gemm)));
}

RowSearch::RowSearch(MatrixView<const float> rows, std::shared_ptr<const PackedGemm> gemm)
    : rows_(rows), gemm_(std::move(gemm)) {
  const bool rounds = gemm_->name() == "bf16" || gemm_->name() == "amx";
  error_ = rounds ? kErrorBf16 : kErrorFloat;
  for (int64_t begin = 0; begin < rows.rows; begin += kBlockRows)
    gemm_->pack(transposed(some_rows(rows, begin, std::min(kBlockRows, rows.rows - begin))), blocks_.emplace_back());
}

void RowSearch::top_k(MatrixView<const float> queries, std::span<const std::span<const int32_t>> excluded, int32_t k,
                      std::span<Hit> hits) const {
  STREAMVEC_CHECK(k > 0);
  STREAMVEC_CHECK_EQ(queries.cols, rows_.cols);
  STREAMVEC_CHECK_EQ(hits.size(), static_cast<size_t>(queries.rows * k));
  std::vector<float> products(static_cast<size_t>(kQueriesAtOnce * kBlockRows));
  for (int64_t first = 0; first < queries.rows; first += kQueriesAtOnce) {
    const int64_t count = std::min(kQueriesAtOnce, queries.rows - first);
    std::vector<Likely> likely;
    for (int64_t q = 0; q < count; ++q) {
      // Rows that are excluded do not count among the k.
      const size_t more = excluded.empty() ? 0 : excluded[static_cast<size_t>(first + q)].size();
      likely.emplace_back(k + static_cast<int32_t>(more));
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const MatrixView<float> block{products.data(), count, blocks_[b].cols, kBlockRows};
      gemm_->multiply(some_rows(queries, first, count), blocks_[b], false, block);
      for (int64_t q = 0; q < count; ++q)
        likely[static_cast<size_t>(q)].offer(block.row(q), block.cols, static_cast<int64_t>(b) * kBlockRows,
                                             2 * error_);
    }
    for (int64_t q = 0; q < count; ++q) {
      Likely& found = likely[static_cast<size_t>(q)];
      weigh(queries.row(first + q), found.all, found.best.threshold() - 2 * error_,
            excluded.empty() ? std::span<const int32_t>() : excluded[static_cast<size_t>(first + q)],
            hits.subspan(static_cast<size_t>((first + q) * k), static_cast<size_t>(k)));
    }
  }
}

void RowSearch::weigh(const float* query, std::span<const Hit> likely, float least, std::span<const int32_t> excluded,
                      std::span<Hit> hits) const {
  TopKSelection best(static_cast<int32_t>(hits.size()), excluded);
  for (const Hit& hit : likely)
    if (hit.score >= least) best.offer(hit.row, inner_product(rows_.row(hit.row), query, rows_.cols));
  best.write(hits);
}

}  // namespace streamvec
