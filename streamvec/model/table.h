// Rows that are trained, with what their optimiser keeps beside them.
#pragma once

#include <cstdint>
#include <memory>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/optim/optimizer.h"

namespace streamvec {

struct Table {
  Matrix rows;
  std::unique_ptr<Optimizer> optimizer;

  // Zeroed rows that may grow to rows_max.
  static Result<Table> make(int64_t rows, int64_t dim, int64_t rows_max, OptimizerKind optimizer);
  void grow(int64_t count);  // adds zeroed rows up to `count`
};

}  // namespace streamvec
