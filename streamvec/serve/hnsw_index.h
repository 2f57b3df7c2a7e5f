// Nearest rows of very large tables without looking at each: a navigable graph (HNSW; Malkov, Yashunin 2018). What it
// finds is nearly always what an exact search would, in a time that hardly grows with the table. Building takes minutes
// for a million rows, and cannot keep up with rows that change: it is for snapshots.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/neighbours.h"

namespace streamvec {

// Thread-safe once made.
class HnswIndex {
 public:
  struct Options {
    int32_t links = 16;  // of a row to others, twice as many in the lowest layer; more: finds more, takes more memory
    int32_t breadth_build = 120;  // candidates looked at when a row is put in; more: finds more, builds longer
    int32_t breadth = 128;        // and when one is sought, at least; more: finds more, seeks longer
    int32_t threads = 1;          // that build
    uint64_t seed = 1;
  };
  // Copies the rows. kCancelled when `stop` was set on the way; kResourceExhausted when there is no memory.
  static Result<std::shared_ptr<const HnswIndex>> build(MatrixView<const float> unit, const Options& options,
                                                        const std::atomic<bool>& stop);
  virtual ~HnswIndex() = default;

  // The k nearest by cosine, nearest first, those excluded left out. REQUIRES: `unit` of length 1, k > 0.
  virtual std::vector<Neighbour> search(std::span<const float> unit, std::span<const Slot> excluded,
                                        int32_t k) const = 0;
};

}  // namespace streamvec
