// The arithmetic of GloVe (Pennington, Socher, Manning 2014): one cell of the co-occurrence matrix, a word's row
// against a context's, and one step of AdaGrad on both.
//   diff = w.c + b_w + b_c - log x,   cost = f(x) diff^2 / 2,   f(x) = min(1, (x / x_max)^alpha)
// The steps are those of the authors' program (version 1.2): every value has a sum of squared steps of its own, which
// counts from 1, and a step g becomes g / sqrt(sum before it), where g = lr f diff * other for a row, and f diff,
// without the learning rate, for a bias.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

struct GloveCell {
  int32_t word = 0, context = 0;  // rows of the two sides
  float log_x = 0;
  float weight = 0;  // f(x)
};

// A table with what AdaGrad keeps beside it. Sums are kept without the 1 that they count from.
struct GloveSide {
  static constexpr int64_t kBias = 0, kBiasSum = 1;
  MatrixView<float> rows, sums;  // D values a row
  MatrixView<float> biases;      // the bias and its sum
};

struct GloveStats {
  double cost = 0;      // summed, each cell's taken before its step
  int64_t refused = 0;  // cells left out because a row or a product was not finite
};

struct GloveWeighting {
  double x_max = 100;  // cells this heavy and heavier weigh 1; more: frequent pairs count for more
  double alpha = 0.75;
};

// Which arithmetic: `reference` is double precision (rows stay float), `simd` fp32 with Highway.
enum class GloveKernel { kReference, kSimd };
// auto and simd, reference. kInvalidArgument for others.
Result<GloveKernel> parse_glove_kernel(const std::string& name);
std::string glove_kernel_name(GloveKernel kernel);

// One step for each cell, in their order. Rows as in row_ops.h; every cell must have its rows.
GloveStats glove_step(GloveKernel kernel, std::span<const GloveCell> cells, float lr, const GloveSide& words,
                      const GloveSide& contexts);

// log x and f(x) of `count` values above 0. The arrays have room for a multiple of 16 values.
void glove_weights(const float* x, int64_t count, const GloveWeighting& weighting, float* log_x, float* weight);

}  // namespace streamvec
