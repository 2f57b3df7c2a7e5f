// cuBLAS, found when it is first asked for: only the character model needs it, and a program that is linked with it
// does not start where it is missing.
#pragma once

#include <cublas_v2.h>

#include "streamvec/core/status.h"

namespace streamvec::cuda {

// A row-major matrix on the card.
struct CardMatrix {
  float* data;
  int64_t rows, cols;
  int64_t size() const { return rows * cols; }
};

// One handle on one stream. Not thread-safe.
class Blas {
 public:
  enum Products { kTf32, kFp32 };
  // kUnavailable when there is no libcublas to load.
  static Result<Blas> make(cudaStream_t stream, Products products = kTf32);
  Blas(Blas&& other) noexcept;
  Blas& operator=(Blas&&) = delete;
  ~Blas();

  // c = a b + (add ? c : 0), a and b transposed if it is said; sums in fp32. Nothing when a side is 0.
  Status multiply(const CardMatrix& a, bool a_transposed, const CardMatrix& b, bool b_transposed, bool add,
                  const CardMatrix& c) const;
  // c (x_cols by y_cols, column-major) += x' y, of `rows` rows each, one after the other; all in double.
  Status add_cross_gram(const double* x, int64_t x_cols, const double* y, int64_t y_cols, int64_t rows,
                        double* c) const;

 private:
  Blas() = default;
  cublasHandle_t handle_ = nullptr;
  cublasComputeType_t compute_ = CUBLAS_COMPUTE_32F_FAST_TF32;
};

}  // namespace streamvec::cuda
