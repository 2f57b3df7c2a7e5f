#include <algorithm>
#include <cmath>

#include "streamvec/cuda/draws.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/mma.cuh"
#include "streamvec/cuda/pair_adam.h"

namespace streamvec::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTogether = 4;  // rows on their way at once
constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;

struct Tables {
  const float4* values;  // input, then output; quads float4 a row
  float4* slopes;
  int64_t rows;
  int32_t quads;
};

struct Draws {
  const AliasTable::Column* columns;
  uint64_t columns_count;
  uint64_t draw;
  int32_t negatives;
};

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

__device__ float dot(const float4& a, const float4& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

__device__ int32_t sample(const Draws& draws, uint64_t pair, int32_t k) {
  const uint64_t bits = negative_draw(draws.draw, pair, k);
  const uint64_t column = ((bits >> 32) * draws.columns_count) >> 32;
  const AliasTable::Column drawn = draws.columns[column];
  return static_cast<uint32_t>(bits) < drawn.own ? static_cast<int32_t>(column) : drawn.other;
}

// A warp a pair; lane l has values 4 l .. 4 l + 3 of every 128 of a row.
template <int kPasses>
__global__ void climb_pairs(Tables tables, Draws draws, const WordPair* pairs, int64_t first, int32_t count,
                            double* loss_sum) {
  const int32_t lane = threadIdx.x % 32, pair = (blockIdx.x * kThreads + threadIdx.x) / 32;
  if (pair >= count) return;
  const WordPair words = pairs[first + pair];
  // Lane k finds the k-th output: the context, then the negatives.
  int32_t own = words.context;
  if (lane > 0 && lane <= draws.negatives) own = sample(draws, first + pair, lane - 1);
  const auto quad_of = [&](int64_t row, int pass) { return row * tables.quads + lane + 32 * pass; };
  const auto has = [&](int pass) { return lane + 32 * pass < tables.quads; };
  float4 centre[kPasses], centre_slope[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    centre[pass] = has(pass) ? tables.values[quad_of(words.centre, pass)] : make_float4(0, 0, 0, 0);
    centre_slope[pass] = make_float4(0, 0, 0, 0);
  }
  float loss = 0;
  for (int32_t k0 = 0; k0 <= draws.negatives; k0 += kTogether) {
    float4 rows[kTogether][kPasses];
    int64_t places[kTogether];
    float products[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      places[i] = tables.rows + __shfl_sync(~0u, own, (k0 + i) % 32);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        rows[i][pass] =
            has(pass) && k0 + i <= draws.negatives ? tables.values[quad_of(places[i], pass)] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      products[i] = 0;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) products[i] += dot(centre[pass], rows[i][pass]);
      products[i] = warp_sum(products[i]);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (k0 + i > draws.negatives) break;
      const bool positive = k0 + i == 0;
      const float x = products[i], decay = __expf(-fabsf(x));
      const float sigma = (x >= 0 ? 1.0f : decay) / (1.0f + decay);
      const float slope = (positive ? 1.0f : 0.0f) - sigma;
      loss += fmaxf(positive ? -x : x, 0.0f) + log1pf(decay);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        centre_slope[pass].x += slope * rows[i][pass].x;
        centre_slope[pass].y += slope * rows[i][pass].y;
        centre_slope[pass].z += slope * rows[i][pass].z;
        centre_slope[pass].w += slope * rows[i][pass].w;
        if (has(pass))
          add_to(reinterpret_cast<float*>(tables.slopes + quad_of(places[i], pass)), slope * centre[pass].x,
                 slope * centre[pass].y, slope * centre[pass].z, slope * centre[pass].w);
      }
    }
  }
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass)
    if (has(pass))
      add_to(reinterpret_cast<float*>(tables.slopes + quad_of(words.centre, pass)), centre_slope[pass].x,
             centre_slope[pass].y, centre_slope[pass].z, centre_slope[pass].w);
  if (lane == 0) atomicAdd(loss_sum, static_cast<double>(loss));
}

struct AdamStep {
  float rate, root_scale, most;  // kernel/row_ops.cc has the same
};

__device__ void step_value(const AdamStep& step, float slope, float& mean, float& variance, float& value) {
  mean = kBeta1 * mean + (1 - kBeta1) * slope;
  variance = kBeta2 * variance + (1 - kBeta2) * slope * slope;
  const float change = step.rate * mean / (sqrtf(variance) * step.root_scale + kEpsilon);
  value += fminf(fmaxf(change, -step.most), step.most);
}

// All values; leaves the slopes zeroed for the next batch.
__global__ void step_all(AdamStep step, int64_t quads, float4* slopes, float4* means, float4* variances,
                         float4* values) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < quads; i += int64_t{gridDim.x} * kThreads) {
    const float4 slope = slopes[i];
    float4 mean = means[i], variance = variances[i], value = values[i];
    step_value(step, slope.x, mean.x, variance.x, value.x);
    step_value(step, slope.y, mean.y, variance.y, value.y);
    step_value(step, slope.z, mean.z, variance.z, value.z);
    step_value(step, slope.w, mean.w, variance.w, value.w);
    slopes[i] = make_float4(0, 0, 0, 0);
    means[i] = mean;
    variances[i] = variance;
    values[i] = value;
  }
}

class CardPairAdam final : public PairAdam {
 public:
  CardPairAdam(const PairAdamOptions& options, int32_t multiprocessors)
      : options_(options), quads_((options.dim + 3) / 4), blocks_(8 * multiprocessors) {}
  ~CardPairAdam() override {
    if (stream_ == nullptr) return;
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  Status begin() {
    const auto size = static_cast<size_t>(2 * options_.rows * quads_);
    STREAMVEC_RETURN_IF_ERROR(check_device_memory("tables and Adam's moments", 16.0 * 4 * static_cast<double>(size),
                                                  "fewer dimensions, or --device cpu"));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (CardBuffer<float4>* buffer : {&values_, &slopes_, &means_, &variances_}) {
      STREAMVEC_RETURN_IF_ERROR(buffer->allocate(size));
      STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(buffer->data(), 0, size * sizeof(float4), stream_));
    }
    return loss_.allocate(1);
  }

  Status put(std::span<const float> values) override { return copy(values_.data(), values.data(), true); }
  Status get(std::span<float> values) override { return copy(values.data(), values_.data(), false); }
  Status set_pairs(std::span<const WordPair> pairs) override {
    pairs_count_ = static_cast<int64_t>(pairs.size());
    return upload(pairs, pairs_, stream_);
  }
  Status set_negatives(const AliasTable& table) override { return upload(table.columns(), columns_, stream_); }

  Result<double> run_epoch(int64_t batch, uint64_t draw) override {
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(loss_.data(), 0, sizeof(double), stream_));
    for (int64_t first = 0; first < pairs_count_; first += batch)
      STREAMVEC_RETURN_IF_ERROR(run_batch(first, std::min(batch, pairs_count_ - first), draw));
    double loss = 0;
    STREAMVEC_CUDA_RETURN_IF_ERROR(copy_later(Way::kFromCard, &loss, loss_.data(), sizeof loss, stream_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    return loss;
  }

 private:
  Status copy(void* to, const void* from, bool to_card) {
    const size_t dim_bytes = static_cast<size_t>(options_.dim) * sizeof(float);
    const size_t quad_bytes = static_cast<size_t>(quads_) * sizeof(float4);
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(
        copy_rows_now(to_card ? Way::kToCard : Way::kFromCard, to, to_card ? quad_bytes : dim_bytes, from,
                      to_card ? dim_bytes : quad_bytes, dim_bytes, static_cast<size_t>(2 * options_.rows)));
    return {};
  }

  Status run_batch(int64_t first, int64_t count, uint64_t draw) {
    const Tables tables{values_.data(), slopes_.data(), options_.rows, static_cast<int32_t>(quads_)};
    const Draws draws{columns_.data(), columns_.size(), draw, options_.negatives};
    const auto climb = quads_ <= 32 ? climb_pairs<1> : quads_ <= 64 ? climb_pairs<2> : climb_pairs<4>;
    climb<<<static_cast<uint32_t>((count * 32 + kThreads - 1) / kThreads), kThreads, 0, stream_>>>(
        tables, draws, pairs_.data(), first, static_cast<int32_t>(count), loss_.data());
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
    const int64_t size = 2 * options_.rows * quads_;
    const auto blocks = static_cast<uint32_t>(std::min<int64_t>((size + kThreads - 1) / kThreads, blocks_));
    step_all<<<blocks, kThreads, 0, stream_>>>(next_step(), size, slopes_.data(), means_.data(), variances_.data(),
                                               values_.data());
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
    return {};
  }

  AdamStep next_step() {
    ++steps_;
    const double correction1 = 1 - std::pow(double{kBeta1}, static_cast<double>(steps_));
    const double correction2 = 1 - std::pow(double{kBeta2}, static_cast<double>(steps_));
    const double ratio = double{kBeta1} * kBeta1 / kBeta2;
    return {static_cast<float>(options_.lr / correction1), static_cast<float>(1 / std::sqrt(correction2)),
            static_cast<float>(1.1 * options_.lr * (1 - kBeta1) / std::sqrt((1 - kBeta2) * (1 - ratio)))};
  }

  const PairAdamOptions options_;
  const int64_t quads_, blocks_;
  cudaStream_t stream_ = nullptr;
  CardBuffer<float4> values_, slopes_, means_, variances_;
  CardBuffer<WordPair> pairs_;
  CardBuffer<AliasTable::Column> columns_;
  CardBuffer<double> loss_;
  int64_t pairs_count_ = 0, steps_ = 0;
};

}  // namespace

Result<std::unique_ptr<PairAdam>> make_pair_adam(const PairAdamOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(const Device device, find_device());
  if (options.dim < 1 || options.dim > 512 || options.negatives < 0 || options.negatives > 31)
    return error(Code::kInvalidArgument, "dim ", options.dim, " with ", options.negatives,
                 " negatives; the card takes 1 to 512 and 0 to 31");
  auto made = std::make_unique<CardPairAdam>(options, device.multiprocessors);
  STREAMVEC_RETURN_IF_ERROR(made->begin());
  return std::unique_ptr<PairAdam>(std::move(made));
}

}  // namespace streamvec::cuda
