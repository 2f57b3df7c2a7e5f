#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/glove_step.cc"
#include "streamvec/kernel/glove_step.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>
// After highway.h.
#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The machine's estimate has 12 to 14 bits; one step of Newton's doubles them.
HWY_INLINE V reciprocal_root(D d, V x) {
  const V estimate = hn::ApproximateReciprocalSqrt(x);
  const V half = hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Mul(estimate, estimate));
  return hn::Mul(estimate, hn::Sub(hn::Set(d, 1.5f), half));
}

HWY_INLINE float dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t dim) {
  const D d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  int64_t k = 0;
  for (; k + n < dim; k += 2 * n) {
    sum0 = hn::MulAdd(hn::Load(d, a + k), hn::Load(d, b + k), sum0);
    sum1 = hn::MulAdd(hn::Load(d, a + k + n), hn::Load(d, b + k + n), sum1);
  }
  if (k < dim) sum0 = hn::MulAdd(hn::Load(d, a + k), hn::Load(d, b + k), sum0);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

// g is lr f diff. The padding's gradients are zero, so it stays as it is.
HWY_INLINE void step_rows(float g, int64_t dim, float* HWY_RESTRICT w, float* HWY_RESTRICT w_sums,
                          float* HWY_RESTRICT c, float* HWY_RESTRICT c_sums) {
  const D d;
  const V scale = hn::Set(d, g), one = hn::Set(d, 1.0f);
  for (int64_t k = 0; k < dim; k += static_cast<int64_t>(hn::Lanes(d))) {
    const V word = hn::Load(d, w + k), context = hn::Load(d, c + k);
    const V word_sum = hn::Load(d, w_sums + k), context_sum = hn::Load(d, c_sums + k);
    const V word_step = hn::Mul(scale, context), context_step = hn::Mul(scale, word);
    hn::Store(hn::NegMulAdd(word_step, reciprocal_root(d, hn::Add(word_sum, one)), word), d, w + k);
    hn::Store(hn::NegMulAdd(context_step, reciprocal_root(d, hn::Add(context_sum, one)), context), d, c + k);
    hn::Store(hn::MulAdd(word_step, word_step, word_sum), d, w_sums + k);
    hn::Store(hn::MulAdd(context_step, context_step, context_sum), d, c_sums + k);
  }
}

HWY_INLINE void step_bias(float f_diff, float* bias) {
  bias[GloveSide::kBias] -= f_diff / std::sqrt(1 + bias[GloveSide::kBiasSum]);
  bias[GloveSide::kBiasSum] += f_diff * f_diff;
}

HWY_INLINE void fetch(const float* row, int64_t dim) {
  for (int64_t k = 0; k < dim; k += 16) __builtin_prefetch(row + k, 1, 3);
}

HWY_INLINE void fetch_rows(const GloveCell& cell, int64_t dim, const GloveSide& words, const GloveSide& contexts) {
  fetch(words.rows.row(cell.word), dim);
  fetch(words.sums.row(cell.word), dim);
  fetch(contexts.rows.row(cell.context), dim);
  fetch(contexts.sums.row(cell.context), dim);
  __builtin_prefetch(words.biases.row(cell.word), 1, 3);
  __builtin_prefetch(contexts.biases.row(cell.context), 1, 3);
}

GloveStats glove_step_simd(std::span<const GloveCell> cells, float lr, const GloveSide& words,
                           const GloveSide& contexts) {
  constexpr size_t kAhead = 2;
  GloveStats stats;
  const int64_t dim = words.rows.cols;
  for (size_t n = 0; n < cells.size(); ++n) {
    if (n + kAhead < cells.size()) fetch_rows(cells[n + kAhead], dim, words, contexts);
    const GloveCell& cell = cells[n];
    float* w = words.rows.row(cell.word);
    float* c = contexts.rows.row(cell.context);
    float* word_bias = words.biases.row(cell.word);
    float* context_bias = contexts.biases.row(cell.context);
    const float diff = dot(w, c, dim) + word_bias[GloveSide::kBias] + context_bias[GloveSide::kBias] - cell.log_x;
    const float f_diff = cell.weight * diff;
    if (!std::isfinite(f_diff)) {
      ++stats.refused;
      continue;
    }
    stats.cost += 0.5 * f_diff * diff;
    step_rows(lr * f_diff, dim, w, words.sums.row(cell.word), c, contexts.sums.row(cell.context));
    step_bias(f_diff, word_bias);
    step_bias(f_diff, context_bias);
  }
  return stats;
}

void glove_weights(const float* HWY_RESTRICT x, int64_t count, const GloveWeighting& weighting,
                   float* HWY_RESTRICT log_x, float* HWY_RESTRICT weight) {
  const D d;
  const V alpha = hn::Set(d, static_cast<float>(weighting.alpha));
  const V log_x_max = hn::Set(d, static_cast<float>(std::log(weighting.x_max)));
  for (int64_t k = 0; k < count; k += static_cast<int64_t>(hn::Lanes(d))) {
    const V logs = hn::Log(d, hn::LoadU(d, x + k));
    hn::StoreU(logs, d, log_x + k);
    hn::StoreU(hn::Exp(d, hn::Min(hn::Zero(d), hn::Mul(alpha, hn::Sub(logs, log_x_max)))), d, weight + k);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(glove_step_simd);
HWY_EXPORT(glove_weights);

namespace {

// One side's row in place, with the other's values before the step.
void step_side(double g, double f_diff, const GloveSide& side, int32_t row, const std::vector<double>& other) {
  float* values = side.rows.row(row);
  float* sums = side.sums.row(row);
  for (size_t k = 0; k < other.size(); ++k) {
    const double step = g * other[k];
    values[k] = static_cast<float>(values[k] - step / std::sqrt(1.0 + sums[k]));
    sums[k] = static_cast<float>(sums[k] + step * step);
  }
  float* bias = side.biases.row(row);
  bias[GloveSide::kBias] =
      static_cast<float>(bias[GloveSide::kBias] - f_diff / std::sqrt(1.0 + bias[GloveSide::kBiasSum]));
  bias[GloveSide::kBiasSum] = static_cast<float>(bias[GloveSide::kBiasSum] + f_diff * f_diff);
}

GloveStats glove_step_reference(std::span<const GloveCell> cells, float lr, const GloveSide& words,
                                const GloveSide& contexts) {
  GloveStats stats;
  std::vector<double> w, c;
  for (const GloveCell& cell : cells) {
    const auto word = words.rows.row_span(cell.word), context = contexts.rows.row_span(cell.context);
    w.assign(word.begin(), word.end());
    c.assign(context.begin(), context.end());
    double diff = double{words.biases.row(cell.word)[GloveSide::kBias]} +
                  contexts.biases.row(cell.context)[GloveSide::kBias] - cell.log_x;
    for (size_t k = 0; k < w.size(); ++k) diff += w[k] * c[k];
    const double f_diff = cell.weight * diff;
    if (!std::isfinite(f_diff)) {
      ++stats.refused;
      continue;
    }
    stats.cost += 0.5 * f_diff * diff;
    step_side(lr * f_diff, f_diff, words, cell.word, c);
    step_side(lr * f_diff, f_diff, contexts, cell.context, w);
  }
  return stats;
}

}  // namespace

Result<GloveKernel> parse_glove_kernel(const std::string& name) {
  if (name == "auto" || name == "simd") return GloveKernel::kSimd;
  if (name == "reference") return GloveKernel::kReference;
  return error(Code::kInvalidArgument, "glove has no kernel called '", name, "'; try auto, simd or reference");
}

std::string glove_kernel_name(GloveKernel kernel) {
  return kernel == GloveKernel::kSimd ? "simd" : "reference";
}

GloveStats glove_step(GloveKernel kernel, std::span<const GloveCell> cells, float lr, const GloveSide& words,
                      const GloveSide& contexts) {
  if (kernel == GloveKernel::kReference) return glove_step_reference(cells, lr, words, contexts);
  return HWY_DYNAMIC_DISPATCH(glove_step_simd)(cells, lr, words, contexts);
}

void glove_weights(const float* x, int64_t count, const GloveWeighting& weighting, float* log_x, float* weight) {
  HWY_DYNAMIC_DISPATCH(glove_weights)(x, count, weighting, log_x, weight);
}

}  // namespace streamvec
#endif
