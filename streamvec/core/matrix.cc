#include "streamvec/core/matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "streamvec/core/threads.h"

namespace streamvec {
namespace {
constexpr size_t kMegabyte = size_t{1} << 20, kHugePage = 2 * kMegabyte;
}

void Matrix::Unmap::operator()(float* data) const {
  ::munmap(data, bytes);
}

Result<Matrix> Matrix::make(int64_t rows, int64_t cols, int64_t rows_max) {
  STREAMVEC_CHECK(rows >= 0 && cols > 0);
  Matrix matrix;
  matrix.rows_ = rows;
  matrix.cols_ = cols;
  matrix.stride_ = (cols + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  matrix.rows_max_ = rows_max > rows ? rows_max : rows;
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(matrix.rows_max_), matrix.stride_ * sizeof(float), &bytes) ||
      bytes > (size_t{1} << 46))
    return error(Code::kResourceExhausted, "a table of ", matrix.rows_max_, " rows of ", cols,
                 " values is larger than an address space; try a smaller vocabulary or --dim");
  const bool huge = bytes >= kHugePage;
  if (huge) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  // The kernel counts pages only when they are touched, so that a table may be reserved far larger than it gets.
  void* memory =
      bytes == 0 ? nullptr
                 : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return error(Code::kResourceExhausted, "no memory for a table of ", matrix.rows_max_, " rows of ", cols,
                 " values (", (bytes + kMegabyte - 1) / kMegabyte, " MB); try a smaller vocabulary or --dim");
  // Rows are visited at random: with 2 MB pages a row costs far fewer page-table walks. A table of a few rows would
  // spend its time on clearing one.
  if (huge) ::madvise(memory, bytes, MADV_HUGEPAGE);
  matrix.data_ = std::unique_ptr<float, Unmap>(static_cast<float*>(memory), Unmap{bytes});
  return matrix;
}

Result<Matrix> Matrix::copy() const {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix other, make(rows_, cols_));
  if (rows_ > 0) std::memcpy(other.row(0), row(0), static_cast<size_t>(rows_ * stride_) * sizeof(float));
  return other;
}

void Matrix::grow(int64_t rows) {
  STREAMVEC_CHECK(rows_ <= rows && rows <= rows_max_);
  rows_ = rows;
}

void Matrix::take_pages([[maybe_unused]] int32_t threads) {
#ifdef MADV_POPULATE_WRITE
  const size_t bytes = static_cast<size_t>(rows_ * stride_) * sizeof(float);
  const size_t pages = (bytes + kHugePage - 1) / kHugePage;
  const size_t parts = std::min(static_cast<size_t>(std::max(threads, 1)), std::max<size_t>(pages, 1));
  const auto take = [&](size_t part) {
    const size_t begin = pages * part / parts * kHugePage;
    const size_t end = std::min(pages * (part + 1) / parts * kHugePage, bytes);
    if (begin < end) ::madvise(reinterpret_cast<char*>(data_.get()) + begin, end - begin, MADV_POPULATE_WRITE);
  };
  Threads others;
  (void)others.start(static_cast<int64_t>(parts) - 1, [&](int64_t i) { take(static_cast<size_t>(i) + 1); });
  take(0);
  for (size_t part = static_cast<size_t>(others.size()) + 1; part < parts; ++part) take(part);
#endif
}

}  // namespace streamvec
