#include <cstring>

#include "streamvec/cuda/rbsg_plan.h"

namespace streamvec::cuda {

RbsgPlanned::~RbsgPlanned() {
  if (done_ != nullptr) cudaEventDestroy(done_);
}

Status RbsgPlanned::allocate() {
  STREAMVEC_RETURN_IF_ERROR(result.allocate(1));
  STREAMVEC_RETURN_IF_ERROR(card_result.allocate(1));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  return {};
}

Status RbsgPlanned::stage(const RbsgWork& work) {
  size_t size = 3 * work.pairs.size() + 4 * work.pool.size() + work.sides[1].word_nodes.size() + 64;
  for (const RbsgSide& side : work.sides)
    size += 4 * side.parents.size() + 3 * side.alphabet.size() + side.word_nodes.size() + 64;
  STREAMVEC_RETURN_IF_ERROR(reserve(staged_, size));
  STREAMVEC_RETURN_IF_ERROR(reserve(numbers_, size));
  used_ = 0;
  for (int side = 0; side < 2; ++side) stage_side(work.sides[side], sides[side]);
  pairs = add(std::span<const RowPair>(work.pairs));
  pairs_count = static_cast<int32_t>(work.pairs.size());
  pool = add(work.pool);
  pool_weights = add(work.pool_weights);
  pool_size = static_cast<int32_t>(work.pool.size());
  scratch_.assign(work.sides[1].word_nodes.size(), -1);
  for (size_t i = 0; i < work.pool.size(); ++i) scratch_[static_cast<size_t>(work.pool[i])] = static_cast<int32_t>(i);
  places = add(std::span<const int32_t>(scratch_));
  lr = work.lr;
  adam_lr = work.adam_lr;
  return {};
}

Status RbsgPlanned::bring(cudaStream_t stream) const {
  STREAMVEC_CUDA_RETURN_IF_ERROR(
      copy_later(Way::kToCard, numbers_.data(), staged_.data(), used_ * sizeof(int32_t), stream));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(card_result.data(), 0, sizeof(BatchResult), stream));
  return {};
}

Status RbsgPlanned::send_result(cudaStream_t stream) const {
  STREAMVEC_CUDA_RETURN_IF_ERROR(
      copy_later(Way::kFromCard, result.data(), card_result.data(), sizeof(BatchResult), stream));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(done_, stream));
  return {};
}

Status RbsgPlanned::wait() const {
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(done_));
  return {};
}

// One array after the other, each at a 16-byte boundary.
template <typename T>
const T* RbsgPlanned::add(std::span<const T> values) {
  static_assert(sizeof(T) % sizeof(int32_t) == 0);
  const size_t at = used_;
  if (!values.empty()) std::memcpy(&staged_[at], values.data(), values.size_bytes());
  used_ += (values.size_bytes() / sizeof(int32_t) + 3) / 4 * 4;
  return reinterpret_cast<const T*>(numbers_.data() + at);
}

void RbsgPlanned::stage_side(const RbsgSide& side, SidePlan& plan) {
  plan.parents = add(side.parents);
  plan.characters = add(side.characters);
  plan.alphabet = add(std::span<const int32_t>(side.alphabet));
  plan.word_nodes = add(side.word_nodes);
  plan.nodes = static_cast<int32_t>(side.parents.size());
  plan.inner = side.inner;
  plan.alphabet_size = static_cast<int32_t>(side.alphabet.size());
  plan.words = static_cast<int32_t>(side.word_nodes.size());
  plan.levels = side.levels;
  // The empty beginning has no character.
  begins_.assign(side.alphabet.size() + 1, 0);
  for (size_t node = 1; node < side.parents.size(); ++node) ++begins_[static_cast<size_t>(side.characters[node]) + 1];
  for (size_t a = 1; a < begins_.size(); ++a) begins_[a] += begins_[a - 1];
  scratch_.resize(side.parents.size() - 1);
  next_.assign(begins_.begin(), begins_.end());
  for (size_t node = 1; node < side.parents.size(); ++node)
    scratch_[static_cast<size_t>(next_[static_cast<size_t>(side.characters[node])]++)] = static_cast<int32_t>(node);
  plan.order = add(std::span<const int32_t>(scratch_));
  plan.begins = add(std::span<const int32_t>(begins_));
}

}  // namespace streamvec::cuda
