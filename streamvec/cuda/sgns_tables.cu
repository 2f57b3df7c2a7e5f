#include <algorithm>

#include "streamvec/cuda/sgns_kernel.h"
#include "streamvec/cuda/sgns_tables.cuh"

namespace streamvec::cuda {

Status SgnsTables::allocate(cudaStream_t stream) {
  stream_ = stream;
  const size_t size = rows_max_ * static_cast<size_t>(stride_) * value_bytes();
  STREAMVEC_RETURN_IF_ERROR(check_device_memory("both tables", 2.0 * static_cast<double>(size),
                                                "a smaller --dim or --vocab-max, or --device cpu"));
  for (CardBuffer<std::byte>& table : tables_) {
    STREAMVEC_RETURN_IF_ERROR(table.allocate(size));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(table.data(), 0, size, stream_));
  }
  const size_t sums = adagrad_ ? rows_max_ : 0;
  for (CardBuffer<float>& table : sums_) {
    STREAMVEC_RETURN_IF_ERROR(table.allocate(sums));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(table.data(), 0, sums * sizeof(float), stream_));
  }
  return {};
}

Status SgnsTables::put(Side side, MatrixView<const float> rows) {
  if (!bf16_) return bring(rows, bytes(stride_), reinterpret_cast<float*>(tables_[side].data()));
  return for_staged(rows, side, [&](MatrixView<const float> part, std::byte* at, int64_t values) {
    // Past `dim` there are zeros.
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(stage_.data(), 0, bytes(values), stream_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    STREAMVEC_RETURN_IF_ERROR(bring(part, bytes(stride_), stage_.data()));
    return status_of(launch_to_bf16(stage_.data(), at, values, stream_), "rows to bf16");
  });
}

Status SgnsTables::get(Side side, MatrixView<float> rows) {
  if (!bf16_) return take(reinterpret_cast<const float*>(tables_[side].data()), bytes(stride_), rows);
  return for_staged(rows, side, [&](MatrixView<float> part, const std::byte* at, int64_t values) {
    STREAMVEC_CUDA_RETURN_IF_ERROR(launch_from_bf16(at, stage_.data(), values, stream_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    return take(stage_.data(), bytes(stride_), part);
  });
}

Status SgnsTables::bring(MatrixView<const float> from, size_t pitch, float* to) {
  STREAMVEC_CUDA_RETURN_IF_ERROR(copy_rows_now(Way::kToCard, to, pitch, from.data, bytes(from.stride), bytes(from.cols),
                                               static_cast<size_t>(from.rows)));
  return {};
}

Status SgnsTables::take(const float* from, size_t pitch, MatrixView<float> to) {
  STREAMVEC_CUDA_RETURN_IF_ERROR(copy_rows_now(Way::kFromCard, to.data, bytes(to.stride), from, pitch, bytes(to.cols),
                                               static_cast<size_t>(to.rows)));
  return {};
}

// Some rows after others, as many as fit into stage_: `on_rows` gets them, their place in the table, and how many
// values they are there.
template <typename View, typename OnRows>
Status SgnsTables::for_staged(View rows, Side side, const OnRows& on_rows) {
  constexpr int64_t kStagedRows = 65'536;
  STREAMVEC_RETURN_IF_ERROR(stage_.allocate(static_cast<size_t>(std::min(kStagedRows, rows.rows) * stride_)));
  for (int64_t first = 0; first < rows.rows; first += kStagedRows) {
    View part = rows;
    part.data = rows.row(first);
    part.rows = std::min(kStagedRows, rows.rows - first);
    std::byte* at = tables_[side].data() + static_cast<size_t>(first * stride_) * value_bytes();
    STREAMVEC_RETURN_IF_ERROR(on_rows(part, at, part.rows * stride_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  }
  return {};
}

}  // namespace streamvec::cuda
