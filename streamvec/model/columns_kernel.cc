#include "streamvec/model/columns_kernel.h"

#include <algorithm>
#include <cmath>

namespace streamvec {
namespace {

// Of rows that are padded with zeros to whole vectors.
float padded_dot(const float* a, const float* b, int32_t dim) {
  float sums[16] = {};
  for (int32_t d = 0; d < dim; d += 16)
    for (int32_t lane = 0; lane < 16; ++lane) sums[lane] += a[d + lane] * b[d + lane];
  float sum = 0;
  for (const float each : sums) sum += each;
  return sum;
}

void add_times(const float* from, float factor, int32_t dim, float* to) {
  for (int32_t d = 0; d < dim; ++d) to[d] += factor * from[d];
}

// Sums of |c| become lengths of steps (kernel/pair_block.h: a_j, b_i).
void cut_steps(float step_max, const float* longest, const float* paces, std::vector<float>& sums) {
  for (size_t row = 0; row < sums.size(); ++row) {
    const float pace = paces != nullptr ? paces[row] : 1.0f, most = longest != nullptr ? longest[row] : step_max;
    sums[row] = most > 0 && pace * sums[row] > most ? most / sums[row] : pace;
  }
}

}  // namespace

PairBlockResult ColumnsPairKernel::step(const PairBlock& block) {
  PairBlockResult result;
  result.finite = false;
  if (!status_.ok()) return result;
  multiply_rows(block);
  status_ = sum_(products_);
  if (!status_.ok()) return result;
  result = weigh(block);
  if (result.finite) descend(block);
  return result;
}

void ColumnsPairKernel::multiply_rows(const PairBlock& block) {
  products_.resize(static_cast<size_t>(block.outputs) * static_cast<size_t>(block.inputs));
  float* product = products_.data();
  for (int32_t i = 0; i < block.outputs; ++i)
    for (int32_t j = 0; j < block.inputs; ++j) *product++ = padded_dot(block.y[i], block.x[j], block.dim);
}

PairBlockResult ColumnsPairKernel::weigh(const PairBlock& block) {
  PairBlockResult result;
  cuts_x_.assign(static_cast<size_t>(block.inputs), 0);
  cuts_y_.assign(static_cast<size_t>(block.outputs), 0);
  float* product = products_.data();
  for (int32_t i = 0; i < block.outputs; ++i) {
    const float label = i < block.positives ? 1.0f : 0.0f;
    for (int32_t j = 0; j < block.inputs; ++j, ++product) {
      const float weight = block.weight[i][j], z = *product;
      result.finite = result.finite && std::isfinite(z);
      if (weight == 0) {
        *product = 0;
        continue;
      }
      const float miss = label > 0 ? -z : z, slope = label - 1 / (1 + std::exp(-z));
      result.loss += double{weight} * (std::max(miss, 0.0f) + std::log1p(std::exp(-std::abs(miss))));
      result.slope += double{weight * std::abs(slope)};
      *product = block.scale * weight * slope;
      cuts_x_[static_cast<size_t>(j)] += std::abs(*product);
      cuts_y_[static_cast<size_t>(i)] += std::abs(*product);
    }
  }
  cut_steps(block.step_max, block.input_max, block.input_pace, cuts_x_);
  cut_steps(block.step_max, block.output_max, block.output_pace, cuts_y_);
  return result;
}

// Both from the old values: rows may be named twice, and steps may go to the rows themselves.
void ColumnsPairKernel::descend(const PairBlock& block) {
  const auto dim = static_cast<size_t>(block.dim);
  dx_.assign(static_cast<size_t>(block.inputs) * dim, 0);
  dy_.assign(static_cast<size_t>(block.outputs) * dim, 0);
  const float* coefficient = products_.data();
  for (int32_t i = 0; i < block.outputs; ++i)
    for (int32_t j = 0; j < block.inputs; ++j, ++coefficient) {
      if (*coefficient == 0) continue;
      const auto row_x = static_cast<size_t>(j), row_y = static_cast<size_t>(i);
      add_times(block.y[i], *coefficient * cuts_x_[row_x], block.dim, dx_.data() + row_x * dim);
      add_times(block.x[j], *coefficient * cuts_y_[row_y], block.dim, dy_.data() + row_y * dim);
    }
  for (int32_t i = 0; i < block.outputs; ++i)
    add_times(dy_.data() + static_cast<size_t>(i) * dim, 1, block.dim, block.dy[i]);
  for (int32_t j = 0; j < block.inputs; ++j)
    add_times(dx_.data() + static_cast<size_t>(j) * dim, 1, block.dim, block.dx[j]);
}

}  // namespace streamvec
