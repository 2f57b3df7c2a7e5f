// Rows of both tables that lie somewhere else: 2 * slot in the input table, 2 * slot + 1 in the output table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// Thread-safe. What one thread adds is in what it asks for afterwards, and not in what it has asked for before.
class RemoteRows {
 public:
  virtual ~RemoteRows() = default;
  // Asks for rows, each once, and does not wait for them; returns the number of the question.
  virtual uint64_t ask(std::span<const uint32_t> rows) = 0;
  // Waits for the answer: the rows' values, one row after another. An error: they will never come.
  virtual Status await(uint64_t question, std::vector<float>& values) = 0;
  // Adds to rows, wherever they are; does not wait.
  virtual void add(std::span<const uint32_t> rows, std::span<const float> changes) = 0;
};

}  // namespace streamvec
