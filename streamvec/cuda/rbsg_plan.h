// A batch of the character model as the card reads it: numbers that the host lays out and one copy brings there.
#pragma once

#include <span>
#include <vector>

#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {

// One side: pointers into the card's memory.
struct SidePlan {
  const int32_t *parents, *characters, *alphabet, *word_nodes;
  const int32_t *order, *begins;  // nodes by character: order[begins[a]] .. order[begins[a + 1] - 1]
  int32_t nodes, inner, alphabet_size, words;
  std::vector<RbsgSide::Level> levels;
};

struct BatchResult {
  double loss, square;
  int32_t refused;
};

// Grows with room to spare, so that memory is seldom asked for.
template <typename T, bool kOnCard>
Status reserve(Buffer<T, kOnCard>& buffer, size_t size) {
  return size <= buffer.size() ? Status() : buffer.allocate(size + size / 2);
}

// Used for one batch after another. Not thread-safe.
class RbsgPlanned {
 public:
  RbsgPlanned() = default;
  RbsgPlanned(RbsgPlanned&&) = delete;
  ~RbsgPlanned();
  Status allocate();

  // Lays `work` out in host memory. REQUIRES: the batch before is done.
  Status stage(const RbsgWork& work);
  // Queues the copy.
  Status bring(cudaStream_t stream) const;
  // Queues the way back of what became of the batch; wait() waits for it.
  Status send_result(cudaStream_t stream) const;
  Status wait() const;

  SidePlan sides[2];
  const RowPair* pairs = nullptr;
  const int32_t *pool = nullptr, *places = nullptr;  // places: by word of the second side, in the pool, or -1
  const float* pool_weights = nullptr;
  int32_t pairs_count = 0, pool_size = 0;
  float lr = 0, adam_lr = 0;
  CardBuffer<BatchResult> card_result;
  PinnedBuffer<BatchResult> result;
  bool in_work = false;

 private:
  template <typename T>
  const T* add(std::span<const T> values);
  void stage_side(const RbsgSide& side, SidePlan& plan);

  PinnedBuffer<int32_t> staged_;
  CardBuffer<int32_t> numbers_;
  size_t used_ = 0;
  std::vector<int32_t> scratch_, begins_, next_;
  cudaEvent_t done_ = nullptr;
};

}  // namespace streamvec::cuda
