// A function of rows that is a sum over many portions, each of which looks at a few rows only: so that nodes can work
// on different portions at once, and a portion can be worked on twice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"

namespace streamvec {

// What a portion adds: the function is the sum of the values through the sum of the weights.
struct PortionValue {
  double value = 0, weight = 0;
};

// Works on one portion after another. Not thread-safe. The same portion at the same rows gives the same bits.
class PortionWorker {
 public:
  virtual ~PortionWorker() = default;
  // The rows that the portion looks at, each once, in an order of its own.
  virtual void begin(int64_t portion, std::vector<uint32_t>& rows) = 0;
  // The value of the portion that was begun, at `values` of those rows; its gradient is added to `gradient`. Both have
  // rows on 64-byte boundaries, padded with zeros to whole vectors of 16 floats, and the padding stays zero.
  virtual PortionValue add_gradient(MatrixView<const float> values, MatrixView<float> gradient) = 0;
};

// Thread-safe.
class PortionedObjective {
 public:
  virtual ~PortionedObjective() = default;
  virtual int64_t portions() const = 0;
  // Borrows this.
  virtual std::unique_ptr<PortionWorker> make_worker() const = 0;
};

}  // namespace streamvec
