// The products that evaluation is made of (kernel/top_k.h, eval/gram.h), on the card. Rows go there with each call: it
// pays where there are many rows or many questions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec::cuda {

// Not thread-safe. Errors are those of the card: kResourceExhausted when it has no memory left.
class CardProducts {
 public:
  virtual ~CardProducts() = default;
  // As streamvec::top_k(), with products that are summed in another order; k at most kNearestMax.
  static constexpr int32_t kNearestMax = 64;
  virtual Status top_k(MatrixView<const float> rows, MatrixView<const float> queries,
                       std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) = 0;
  // As streamvec::best_analogies(), likewise.
  virtual Status best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                                std::span<AnalogyAnswer> answers) = 0;
  // out (x.cols by y.cols, column-major) = x' y, in double. REQUIRES: equal rows.
  virtual Status cross_gram(MatrixView<const float> x, MatrixView<const float> y, std::span<double> out) = 0;
};

// The errors of find_device(); kUnavailable without cuBLAS.
Result<std::unique_ptr<CardProducts>> make_card_products();

}  // namespace streamvec::cuda
