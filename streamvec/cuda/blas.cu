#include <string>
#include <utility>

#include "streamvec/core/shared_library.h"
#include "streamvec/cuda/blas.h"

namespace streamvec::cuda {
namespace {

// cublas_v2.h has the name twice.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                  const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                  cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

// The functions that are used, as cublas_v2.h declares them.
struct Functions {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  GemmEx gemm = nullptr;
  decltype(&cublasDgemm_v2) gemm_double = nullptr;
  std::string error;
};

Functions load() {
  Functions functions;
  SharedLibrary library("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR), {"/usr/local/cuda/lib64"});
  library.find("cublasCreate_v2", functions.create);
  library.find("cublasDestroy_v2", functions.destroy);
  library.find("cublasSetStream_v2", functions.set_stream);
  library.find("cublasGemmEx", functions.gemm);
  library.find("cublasDgemm_v2", functions.gemm_double);
  functions.error = library.error();
  return functions;
}

const Functions& functions() {
  static const Functions loaded = load();
  return loaded;
}

Status status_of(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return error(Code::kInternal, "cuBLAS failed (", doing, ", status ", static_cast<int>(status), "); try --device cpu");
}

}  // namespace

Result<Blas> Blas::make(cudaStream_t stream, Products products) {
  if (!functions().error.empty())
    return error(Code::kUnavailable, "the character model and evaluation need cuBLAS on the card: ",
                 functions().error, "; try --device cpu, or LD_LIBRARY_PATH");
  Blas blas;
  if (products == kFp32) blas.compute_ = CUBLAS_COMPUTE_32F;
  STREAMVEC_RETURN_IF_ERROR(status_of(functions().create(&blas.handle_), "cublasCreate"));
  STREAMVEC_RETURN_IF_ERROR(status_of(functions().set_stream(blas.handle_, stream), "cublasSetStream"));
  return Result<Blas>(std::move(blas));
}

Blas::Blas(Blas&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), compute_(other.compute_) {}

Blas::~Blas() {
  if (handle_ != nullptr) functions().destroy(handle_);
}

// cuBLAS has columns where we have rows: it is asked for the transposed product.
Status Blas::multiply(const CardMatrix& a, bool a_transposed, const CardMatrix& b, bool b_transposed, bool add,
                      const CardMatrix& c) const {
  const int64_t depth = a_transposed ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0 || depth == 0) return {};
  const float one = 1, before = add ? 1 : 0;
  return status_of(
      functions().gemm(handle_, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                       static_cast<int>(c.cols), static_cast<int>(c.rows), static_cast<int>(depth), &one, b.data,
                       CUDA_R_32F, static_cast<int>(b.cols), a.data, CUDA_R_32F, static_cast<int>(a.cols), &before,
                       c.data, CUDA_R_32F, static_cast<int>(c.cols), compute_, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

// Row-major x is column-major x'.
Status Blas::add_cross_gram(const double* x, int64_t x_cols, const double* y, int64_t y_cols, int64_t rows,
                            double* c) const {
  if (x_cols == 0 || y_cols == 0 || rows == 0) return {};
  const double one = 1;
  const auto m = static_cast<int>(x_cols), n = static_cast<int>(y_cols);
  return status_of(functions().gemm_double(handle_, CUBLAS_OP_N, CUBLAS_OP_T, m, n, static_cast<int>(rows), &one, x, m,
                                           y, n, &one, c, m),
                   "cublasDgemm");
}

}  // namespace streamvec::cuda
