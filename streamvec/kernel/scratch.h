// Memory that kernels keep between blocks: 64-byte aligned, grown when a block needs more, never shrunk.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "streamvec/kernel/pair_block.h"

namespace streamvec {

template <typename T>
class AlignedBuffer {
 public:
  // At least `count` values, zeroed when the memory is new.
  T* reserve(size_t count) {
    if (count <= size_) return data_.get();
    // Large ones on large pages, where the system has them: who goes through rows by columns touches a page at each
    // step.
    const size_t alignment = count * sizeof(T) >= kLargePage ? kLargePage : 64;
    const size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    T* memory = static_cast<T*>(std::aligned_alloc(alignment, bytes));
    if (memory == nullptr) throw std::bad_alloc();
    if (alignment == kLargePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
    std::memset(static_cast<void*>(memory), 0, bytes);
    data_.reset(memory);
    size_ = count;
    return memory;
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }

 private:
  static constexpr size_t kLargePage = size_t{1} << 21;
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
};

inline int32_t round_up(int32_t value, int32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The transposed inputs, the coefficients and the dx of one block.
class PairScratch {
 public:
  // Makes room and returns the columns of the first two: the inputs rounded up to whole vectors.
  int32_t reserve(const PairBlock& block) {
    const int32_t columns = round_up(block.inputs, 16);
    const size_t stride = static_cast<size_t>(round_up(block.dim, 16));
    transposed_.reserve(stride * columns);
    coefficients_.reserve(static_cast<size_t>(block.outputs) * columns);
    float* dx = dx_.reserve(stride * block.inputs);
    dx_rows_.resize(block.inputs);
    for (int32_t j = 0; j < block.inputs; ++j) dx_rows_[j] = dx + j * stride;
    cuts_.reserve(static_cast<size_t>(block.outputs) + columns);
    return columns;
  }
  float* transposed() { return transposed_.data(); }
  float* coefficients() { return coefficients_.data(); }
  float* const* dx_rows() const { return dx_rows_.data(); }
  // How far the step of each output is cut, then of each input (pair_block.h: b_i, a_j).
  float* output_cuts() { return cuts_.data(); }
  float* input_cuts(const PairBlock& block) { return cuts_.data() + block.outputs; }

 private:
  AlignedBuffer<float> transposed_, coefficients_, dx_, cuts_;
  std::vector<float*> dx_rows_;
};

}  // namespace streamvec
