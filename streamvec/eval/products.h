// Where the large products of measures are computed: by this thread, or on the NVIDIA card. Both give the same to the
// last digits; of rows that are as near as that another one may come first.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {

// Not thread-safe. The errors are those of a card.
class Products {
 public:
  virtual ~Products() = default;
  // kernel/top_k.h.
  virtual Status top_k(MatrixView<const float> rows, MatrixView<const float> queries,
                       std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) = 0;
  virtual Status best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                                std::span<AnalogyAnswer> answers) = 0;
  // out (x.cols by y.cols, column-major) = x' y; eval/gram.h. REQUIRES: equal rows.
  virtual Status cross_gram(MatrixView<const float> x, MatrixView<const float> y, std::span<double> out) = 0;
};

// The CPU's, which never fail and may be used by all threads.
Products& cpu_products();
// What --device asks for: cpu, cuda, or auto. The errors of cuda::use_cuda(), and those of a card that cannot be used.
Result<std::unique_ptr<Products>> make_products(std::string_view device);

}  // namespace streamvec
