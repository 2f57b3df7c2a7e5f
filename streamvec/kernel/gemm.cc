#include "streamvec/kernel/gemm.h"

#include <dnnl.h>

#include "streamvec/core/status.h"

// Of libgomp, which oneDNN runs on whatever this file is compiled with; another compiler's <omp.h> may mean another
// one.
extern "C" void omp_set_num_threads(int count);

namespace streamvec {
namespace {

// oneDNN asks OpenMP how many threads to use; the answer belongs to the thread that asks.
void use_this_thread_alone() {
  thread_local bool told = false;
  if (!told) omp_set_num_threads(1);
  told = true;
}

void check_shapes(const Factor& a, const Factor& b, const MatrixView<float>& c) {
  STREAMVEC_CHECK_EQ(a.rows(), c.rows);
  STREAMVEC_CHECK_EQ(b.cols(), c.cols);
  STREAMVEC_CHECK_EQ(a.cols(), b.rows());
}

void product(const Factor& a, const Factor& b, float keep, MatrixView<float> c) {
  check_shapes(a, b, c);
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols() == 0) return multiply_reference(a, b, keep, c);
  use_this_thread_alone();
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', c.rows, c.cols, a.cols(), 1.0f, a.values.data,
                 a.values.stride, b.values.data, b.values.stride, keep, c.data, c.stride);
  // It refuses before it writes (no memory for its packed copies, a CPU it has no kernel for).
  if (status != dnnl_success) multiply_reference(a, b, keep, c);
}

}  // namespace

void multiply(const Factor& a, const Factor& b, MatrixView<float> c) {
  product(a, b, 0, c);
}

void multiply_add(const Factor& a, const Factor& b, MatrixView<float> c) {
  product(a, b, 1, c);
}

void multiply_reference(const Factor& a, const Factor& b, float keep, MatrixView<float> c) {
  check_shapes(a, b, c);
  const auto at = [](const Factor& factor, int64_t i, int64_t j) {
    return double{factor.transposed ? factor.values.row(j)[i] : factor.values.row(i)[j]};
  };
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.cols; ++j) {
      double sum = keep == 0 ? 0.0 : c.row(i)[j];
      for (int64_t k = 0; k < a.cols(); ++k) sum += at(a, i, k) * at(b, k, j);
      c.row(i)[j] = static_cast<float>(sum);
    }
}

}  // namespace streamvec
