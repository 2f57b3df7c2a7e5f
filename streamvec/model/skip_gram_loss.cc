#include "streamvec/model/skip_gram_loss.h"

#include <algorithm>
#include <cmath>

#include "streamvec/kernel/gemm.h"
#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {

double SkipGramLoss::climb_pairs(std::span<const VectorPair> pairs, bool attract, MatrixView<const float> centres,
                                 MatrixView<const float> outputs, MatrixView<float> centre_slopes,
                                 MatrixView<float> output_slopes) {
  const auto dim = static_cast<int32_t>(centres.cols);
  const float sign = attract ? 1.0f : -1.0f;
  double loss = 0;
  for (const VectorPair& pair : pairs) {
    const float *u = centres.row(pair.centre), *v = outputs.row(pair.output);
    const float miss = -sign * dot(u, v, dim);
    loss += std::max(miss, 0.0f) + std::log1p(std::exp(-std::abs(miss)));
    const float slope = sign / (1 + std::exp(-miss));
    add_scaled(v, slope, dim, centre_slopes.row(pair.centre));
    add_scaled(u, slope, dim, output_slopes.row(pair.output));
  }
  return loss;
}

double SkipGramLoss::climb_pool(std::span<const VectorPair> pairs, const NegativePool& pool,
                                MatrixView<const float> centres, MatrixView<const float> outputs,
                                MatrixView<float> centre_slopes, MatrixView<float> output_slopes) {
  const auto size = static_cast<int64_t>(pool.outputs.size());
  const auto dim = static_cast<int32_t>(centres.cols);
  const MatrixView<float> pooled = pooled_.reserve(size, dim);
  for (int64_t k = 0; k < size; ++k) std::copy_n(outputs.row(pool.outputs[static_cast<size_t>(k)]), dim, pooled.row(k));
  fill_weights(pairs, pool, centres.rows, outputs.rows);
  const MatrixView<float> products = products_.reserve_zeroed(centres.rows, size);
  multiply(centres, transposed(pooled), products);
  double loss = 0;
  for (int64_t i = 0; i < centres.rows; ++i)
    loss += climb_negatives(weights_.row(i), static_cast<int32_t>(size), products.row(i));
  multiply_add(products, pooled, centre_slopes);
  const MatrixView<float> pooled_slopes = pooled_slopes_.reserve_zeroed(size, dim);
  multiply(transposed(products), centres, pooled_slopes);
  for (int64_t k = 0; k < size; ++k)
    add_scaled(pooled_slopes.row(k), 1, dim, output_slopes.row(pool.outputs[static_cast<size_t>(k)]));
  return loss;
}

// How much each centre meets each of the pool: once for each of its pairs, but for the excused.
void SkipGramLoss::fill_weights(std::span<const VectorPair> pairs, const NegativePool& pool, int64_t centres,
                                int64_t outputs) {
  const auto size = static_cast<int64_t>(pool.outputs.size());
  counts_.assign(static_cast<size_t>(centres), 0);
  for (const VectorPair& pair : pairs) ++counts_[static_cast<size_t>(pair.centre)];
  const MatrixView<float> weights = weights_.reserve_zeroed(centres, size);
  for (int64_t i = 0; i < centres; ++i)
    for (int64_t k = 0; k < size; ++k)
      weights.row(i)[k] = static_cast<float>(counts_[static_cast<size_t>(i)]) * pool.weights[static_cast<size_t>(k)];
  places_.assign(static_cast<size_t>(outputs), -1);
  for (int64_t k = 0; k < size; ++k)
    places_[static_cast<size_t>(pool.outputs[static_cast<size_t>(k)])] = static_cast<int32_t>(k);
  for (const VectorPair& pair : pairs) {
    const int32_t place = places_[static_cast<size_t>(pair.output)];
    if (place >= 0) weights.row(pair.centre)[place] -= pool.weights[static_cast<size_t>(place)];
  }
}

}  // namespace streamvec
