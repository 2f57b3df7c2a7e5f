// The two tables of skip-gram on the card, in fp32 or bf16, and AdaGrad's sums beside them: how rows come there and
// back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "streamvec/core/matrix.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/sgns_trainer.h"

namespace streamvec::cuda {

// Not thread-safe. What moves rows waits until they are moved. REQUIRES of that: no kernel is in work on them.
class SgnsTables {
 public:
  enum Side { kInput, kOutput };

  // Rows are `stride` values apart.
  SgnsTables(const SgnsOptions& options, int32_t stride)
      : rows_max_(static_cast<size_t>(options.rows_max)),
        stride_(stride),
        bf16_(options.bf16),
        adagrad_(options.adagrad) {}

  // Zeros, once what is queued on `stream` is done. kResourceExhausted when the card has too little memory.
  Status allocate(cudaStream_t stream);

  // The first `rows.rows` rows.
  Status put(Side side, MatrixView<const float> rows);
  Status get(Side side, MatrixView<float> rows);
  Status put_sums(Side side, MatrixView<const float> sums) { return bring(sums, sizeof(float), sums_[side].data()); }
  Status get_sums(Side side, MatrixView<float> sums) { return take(sums_[side].data(), sizeof(float), sums); }

  void* rows(Side side) const { return tables_[side].data(); }
  float* sums(Side side) const { return sums_[side].data(); }

 private:
  size_t value_bytes() const { return bf16_ ? 2 : sizeof(float); }
  static size_t bytes(int64_t values) { return static_cast<size_t>(values) * sizeof(float); }
  // Rows of fp32 to where they lie `pitch` bytes apart, and back.
  static Status bring(MatrixView<const float> from, size_t pitch, float* to);
  static Status take(const float* from, size_t pitch, MatrixView<float> to);
  template <typename View, typename OnRows>
  Status for_staged(View rows, Side side, const OnRows& on_rows);

  const size_t rows_max_;
  const int64_t stride_;
  const bool bf16_, adagrad_;
  cudaStream_t stream_ = nullptr;
  CardBuffer<std::byte> tables_[2];
  CardBuffer<float> sums_[2];
  CardBuffer<float> stage_;  // rows on their way into tables of bf16, and out
};

}  // namespace streamvec::cuda
