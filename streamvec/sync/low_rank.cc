#include "streamvec/sync/low_rank.h"

#include <algorithm>
#include <cmath>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr double kNothing = 1e-20;  // squared: a column that others span already

}  // namespace

LowRank::LowRank(int64_t rows, int64_t cols, int64_t rank, uint64_t seed)
    : rows_(rows),
      cols_(cols),
      rank_(std::min({rank, rows, cols})),
      right_(static_cast<size_t>(cols * rank_)),
      basis_(static_cast<size_t>(rows * rank_)) {
  Random random(seed);
  for (float& value : right_) value = random.uniform() - 0.5f;
}

void LowRank::project(std::span<const float> change, std::span<float> left) const {
  std::fill(left.begin(), left.end(), 0.0f);
  for (int64_t i = 0; i < rows_; ++i)
    for (int64_t j = 0; j < cols_; ++j) {
      const float value = change[static_cast<size_t>(i * cols_ + j)];
      for (int64_t r = 0; r < rank_; ++r)
        left[static_cast<size_t>(i * rank_ + r)] += value * right_[static_cast<size_t>(j * rank_ + r)];
    }
}

// Gram-Schmidt, twice over, since columns may be nearly parallel. One that adds nothing becomes zero.
void LowRank::span_space(std::span<const float> left) {
  basis_.assign(left.begin(), left.end());
  const auto at = [&](int64_t i, int64_t r) -> float& { return basis_[static_cast<size_t>(i * rank_ + r)]; };
  for (int64_t r = 0; r < rank_; ++r) {
    double before = 0, square = 0;
    for (int64_t i = 0; i < rows_; ++i) before += static_cast<double>(at(i, r)) * at(i, r);
    for (int64_t other = 0; other < 2 * r; ++other) {
      double dot = 0;
      for (int64_t i = 0; i < rows_; ++i) dot += static_cast<double>(at(i, r)) * at(i, other % r);
      for (int64_t i = 0; i < rows_; ++i) at(i, r) -= static_cast<float>(dot) * at(i, other % r);
    }
    for (int64_t i = 0; i < rows_; ++i) square += static_cast<double>(at(i, r)) * at(i, r);
    const bool adds = square > kNothing && square > 1e-10 * before;
    const auto scale = static_cast<float>(adds ? 1 / std::sqrt(square) : 0);
    for (int64_t i = 0; i < rows_; ++i) at(i, r) *= scale;
  }
}

void LowRank::project_back(std::span<const float> change, std::span<float> right) const {
  std::fill(right.begin(), right.end(), 0.0f);
  for (int64_t i = 0; i < rows_; ++i)
    for (int64_t j = 0; j < cols_; ++j) {
      const float value = change[static_cast<size_t>(i * cols_ + j)];
      for (int64_t r = 0; r < rank_; ++r)
        right[static_cast<size_t>(j * rank_ + r)] += value * basis_[static_cast<size_t>(i * rank_ + r)];
    }
}

void LowRank::keep(std::span<const float> right) {
  for (int64_t r = 0; r < rank_; ++r) {
    double square = 0;
    for (int64_t j = 0; j < cols_; ++j) square += std::pow(double{right[static_cast<size_t>(j * rank_ + r)]}, 2);
    if (square <= kNothing) continue;
    for (int64_t j = 0; j < cols_; ++j)
      right_[static_cast<size_t>(j * rank_ + r)] = right[static_cast<size_t>(j * rank_ + r)];
  }
}

void LowRank::expand(std::span<const float> right, std::span<float> change) const {
  for (int64_t i = 0; i < rows_; ++i)
    for (int64_t j = 0; j < cols_; ++j) {
      float sum = 0;
      for (int64_t r = 0; r < rank_; ++r)
        sum += basis_[static_cast<size_t>(i * rank_ + r)] * right[static_cast<size_t>(j * rank_ + r)];
      change[static_cast<size_t>(i * cols_ + j)] = sum;
    }
}

}  // namespace streamvec
