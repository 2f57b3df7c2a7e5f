// Skip-gram with negative sampling as the program of 2018 trained it: minibatches, every pair with negatives of its
// own, the summed loss, dense gradients of both tables, Adam on all of it. Slow by design in what it computes, since
// others are held against it; computed by the kernels that they have.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/random.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/reproduce/pairs_2018.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {

struct SgnsOptions2018 {
  int64_t dim = 200;
  int32_t negatives = 10;
  float lr = 1e-4f;
  int32_t threads = 1;        // that share a batch, as DataParallel's devices did
  bool starts_normal = true;  // the fault: both tables from N(0, 1); else word2vec's +-0.5/dim, and zeros
  uint64_t seed = 1;          // of the first rows
};

// One replica. Not thread-safe.
class Sgns2018 {
 public:
  Sgns2018(const SgnsOptions2018& options, int64_t rows);

  // Leaves the slope of the batch's summed log-likelihood in `slopes`, nothing else changed. Returns the summed loss.
  double slopes_of(std::span<const Pair2018> batch, const AliasTable& negatives, Random& random,
                   std::vector<float>& slopes);
  // One step of Adam up `slopes`, all rows.
  void step(const std::vector<float>& slopes);

  // Both tables, the input's rows first, then those of the output; dim values a row.
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }
  Result<Matrix> input() const;

 private:
  struct Share {
    RowBuffer slopes, centre;  // of both tables; of a pair's centre word
  };

  double add_slopes(std::span<const Pair2018> pairs, const AliasTable& negatives, Random random, Share& share) const;
  // By all threads, each some of both tables' rows.
  void for_each_row(const std::function<void(int64_t)>& use);
  void step_block(const std::vector<float>& slopes, size_t begin, size_t size);

  const SgnsOptions2018 options_;
  const int64_t rows_;
  std::vector<float> values_, mean_, variance_;
  RowBuffer padded_;           // the values when a batch began, as kernels want them
  std::vector<Share> shares_;  // by thread
  ThreadTeam team_;
  int64_t steps_ = 0;
};

}  // namespace streamvec
