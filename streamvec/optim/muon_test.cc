#include "streamvec/optim/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// A matrix in double, and the few operations that a definition needs.
struct Plain {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Plain(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  explicit Plain(const Matrix& from) : Plain(from.rows(), from.cols()) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < cols; ++k) at(i, k) = double{from.row(i)[k]};
  }
  double& at(int64_t i, int64_t k) { return values[static_cast<size_t>(i * cols + k)]; }
  double at(int64_t i, int64_t k) const { return values[static_cast<size_t>(i * cols + k)]; }
};

Plain plus(double a, const Plain& x, double b, const Plain& y) {
  Plain sum = x;
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = a * x.values[i] + b * y.values[i];
  return sum;
}

Plain times(const Plain& x, const Plain& y) {
  Plain product(x.rows, y.cols);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j)
      for (int64_t k = 0; k < y.cols; ++k) product.at(i, k) += x.at(i, j) * y.at(j, k);
  return product;
}

Plain turned(const Plain& x) {
  Plain made(x.cols, x.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t k = 0; k < x.cols; ++k) made.at(k, i) = x.at(i, k);
  return made;
}

double square(const Plain& x) {
  double sum = 0;
  for (const double value : x.values) sum += value * value;
  return sum;
}

double furthest(const Plain& x, const Plain& y) {
  double most = 0;
  for (size_t i = 0; i < x.values.size(); ++i) most = std::max(most, std::abs(x.values[i] - y.values[i]));
  return most;
}

Matrix drawn_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix made = std::move(Matrix::make(rows, cols)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < cols; ++k) made.row(i)[k] = random.uniform() * 2 - 1;
  return made;
}

Plain some_of(const Plain& x, int64_t begin, int64_t end) {
  Plain made(end - begin, x.cols);
  std::copy_n(x.values.begin() + begin * x.cols, made.values.size(), made.values.begin());
  return made;
}

// As small as those of a mean loss: nothing else may count beside them.
Matrix soft_slopes(int64_t rows, int64_t cols, int step) {
  Matrix slopes = drawn_matrix(rows, cols, 100 + static_cast<uint64_t>(step));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < cols; ++k) slopes.row(i)[k] *= 1e-4f;
  return slopes;
}

// What Muon is by its definition: five times a X + b X X' X + c X X' X X' X, of each band of at most so many rows.
Plain evened_out(const Plain& momentum, int64_t band_max) {
  if (momentum.rows > momentum.cols) return turned(evened_out(turned(momentum), band_max));
  if (momentum.rows > band_max) {
    const int64_t bands = (momentum.rows + band_max - 1) / band_max;
    Plain all(0, momentum.cols);
    for (int64_t i = 0; i < bands; ++i) {
      const Plain band = some_of(momentum, momentum.rows * i / bands, momentum.rows * (i + 1) / bands);
      const Plain even = evened_out(band, band_max);
      all.values.insert(all.values.end(), even.values.begin(), even.values.end());
    }
    all.rows = momentum.rows;
    return all;
  }
  Plain x = plus(1 / std::sqrt(square(momentum)), momentum, 0, momentum);
  for (int k = 0; k < 5; ++k) {
    const Plain gram = times(x, turned(x));
    x = plus(3.4445, x, 1, times(plus(-4.7750, gram, 2.0315, times(gram, gram)), x));
  }
  return x;
}

struct Weights {
  Matrix values, momentum, slopes;
  Weights(int64_t rows, int64_t cols)
      : values(drawn_matrix(rows, cols, 1)),
        momentum(std::move(Matrix::make(rows, cols)).value()),
        slopes(std::move(Matrix::make(rows, cols)).value()) {}
  Muon::Part part() { return {&values, &momentum, &slopes}; }
};

std::vector<Weights> after_steps(const std::string& kernel, int32_t threads, int steps, int64_t band_max) {
  MuonRates rates;
  rates.band_max = band_max;
  std::vector<Weights> all;
  for (const auto& [rows, cols] : {std::pair{24, 96}, {80, 33}, {40, 40}, {1, 70}}) all.emplace_back(rows, cols);
  ThreadTeam team(threads);
  Muon muon(std::move(make_packed_gemm(kernel)).value(), team);
  for (int step = 0; step < steps; ++step) {
    std::vector<Muon::Part> parts;
    for (Weights& each : all) {
      each.slopes = soft_slopes(each.values.rows(), each.values.cols(), step);
      parts.push_back(each.part());
    }
    muon.step(parts, 0.01f, rates);
  }
  return all;
}

TEST(Muon, StepsAreThoseOfItsDefinition) {
  constexpr int kSteps = 3;
  for (const auto& [threads, band_max] : {std::pair{1, 128}, {3, 128}, {2, 16}}) {
    for (const Weights& weights : after_steps("simd", threads, kSteps, band_max)) {
      const int64_t rows = weights.values.rows(), cols = weights.values.cols();
      Plain values(drawn_matrix(rows, cols, 1)), momentum(rows, cols);
      for (int step = 0; step < kSteps; ++step) {
        const Plain slopes(soft_slopes(rows, cols, step));
        momentum = plus(0.9, momentum, 0.1, slopes);
        const double length = 0.01 * 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols)));
        values = plus(1, values, length, evened_out(plus(0.9, momentum, 0.1, slopes), band_max));
      }
      EXPECT_LT(furthest(values, Plain(weights.values)), 2e-5) << rows << " x " << cols << ", bands of " << band_max;
      EXPECT_LT(furthest(momentum, Plain(weights.momentum)), 1e-6);
      EXPECT_EQ(square(Plain(weights.slopes)), 0) << "slopes are left zeroed";
    }
  }
}

// What is left of x when every column has lost its mean.
double square_beside_means(const Plain& x) {
  Plain ones(x.rows, x.rows);
  std::fill(ones.values.begin(), ones.values.end(), 1.0 / static_cast<double>(x.rows));
  return square(plus(1, x, -1, times(ones, x)));
}

TEST(Muon, WhatSlopesSaySoftlyMovesAsFarAsWhatTheySayLoudly) {
  for (const char* kernel : {"reference", "simd"}) {
    constexpr int64_t kRows = 32, kCols = 64;
    Weights weights(kRows, kCols);
    const Plain before(weights.values);
    weights.slopes = drawn_matrix(kRows, kCols, 5);  // loud: the same in all rows
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t k = 0; k < kCols; ++k) weights.slopes.row(i)[k] = 0.1f * weights.slopes.row(i)[k] + 1;
    const Plain slopes(weights.slopes);
    ASSERT_LT(square_beside_means(slopes), 0.01 * square(slopes));
    ThreadTeam team(2);
    Muon muon(std::move(make_packed_gemm(kernel)).value(), team);
    const Muon::Part part = weights.part();
    muon.step({&part, 1}, 1);
    const double length = 0.2 * std::sqrt(double{kCols});
    const Plain moved = plus(1 / length, Plain(weights.values), -1 / length, before);
    // 31 directions beside the loud one, each by .7 to 1.2.
    EXPECT_GT(square_beside_means(moved), 31 * 0.7 * 0.7) << kernel;
    EXPECT_LT(square_beside_means(moved), 31 * 1.2 * 1.2) << kernel;
    EXPECT_LT(square(moved) - square_beside_means(moved), 1.3 * 1.3) << kernel;
  }
}

TEST(Muon, SlopesOfZeroMoveNothing) {
  Weights weights(16, 32);
  ThreadTeam team(2);
  Muon muon(std::move(make_packed_gemm("simd")).value(), team);
  const Muon::Part part = weights.part();
  muon.step({&part, 1}, 1);
  EXPECT_EQ(Plain(weights.values).values, Plain(drawn_matrix(16, 32, 1)).values);
}

// The slopes of a band, which lie together elsewhere, row by row.
std::vector<float> slopes_of(Matrix& slopes, const Muon::Cut& cut) {
  const MatrixView<float> band = Muon::part_of(slopes.view(), cut);
  std::vector<float> all;
  for (int64_t i = 0; i < band.rows; ++i) all.insert(all.end(), band.row(i), band.row(i) + band.cols);
  return all;
}

Muon::Band band_of(Matrix& momentum, const Muon::Cut& cut, std::vector<float>& slopes) {
  const MatrixView<float> means = Muon::part_of(momentum.view(), cut);
  return {means, {slopes.data(), means.rows, means.cols, means.cols}, cut.turned};
}

TEST(Muon, BandsThatSomebodyElseStepsGoWhereAStepGoes) {
  MuonRates rates;
  rates.band_max = 16;
  ThreadTeam team(3);
  Muon muon(std::move(make_packed_gemm("simd")).value(), team);
  for (const Weights& stepped : after_steps("simd", 1, 3, 16)) {
    const int64_t rows = stepped.values.rows(), cols = stepped.values.cols();
    Weights weights(rows, cols);
    const std::vector<Muon::Cut> cuts = Muon::cuts_of(rows, cols, rates);
    for (int step = 0; step < 3; ++step) {
      Matrix slopes = soft_slopes(rows, cols, step);
      std::vector<std::vector<float>> lying_together;
      for (const Muon::Cut& cut : cuts) lying_together.push_back(slopes_of(slopes, cut));
      std::vector<Muon::Band> bands;
      for (size_t i = 0; i < cuts.size(); ++i) bands.push_back(band_of(weights.momentum, cuts[i], lying_together[i]));
      muon.even_out(bands, rates);
      for (size_t i = 0; i < cuts.size(); ++i) {
        const MatrixView<float> values = Muon::part_of(weights.values.view(), cuts[i]);
        for (int64_t row = 0; row < values.rows; ++row)
          for (int64_t col = 0; col < values.cols; ++col) values.row(row)[col] += 0.01f * bands[i].slopes.row(row)[col];
      }
    }
    EXPECT_LT(furthest(Plain(weights.values), Plain(stepped.values)), 1e-5) << rows << " x " << cols;
    EXPECT_LT(furthest(Plain(weights.momentum), Plain(stepped.momentum)), 1e-9);
  }
}

TEST(Muon, BandsWithoutSlopesOrWithSuchAsAreNotFiniteGoNowhereAndKeepTheirMomentum) {
  for (const float slope :
       {0.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e18f}) {
    Weights weights(8, 32);
    for (int64_t i = 0; i < 8; ++i) std::fill_n(weights.momentum.row(i), 32, 0.5f);
    std::vector<float> slopes(8 * 32);
    slopes[40] = slope;
    ThreadTeam team(1);
    Muon muon(std::move(make_packed_gemm("simd")).value(), team);
    const Muon::Band band = band_of(weights.momentum, {false, 0, 8}, slopes);
    muon.even_out({&band, 1});
    EXPECT_EQ(slopes, std::vector<float>(8 * 32)) << slope;
    EXPECT_EQ(weights.momentum.row(1)[8], 0.5f) << slope;
  }
}

TEST(Muon, WhatComesOutDoesNotDependOnTheNumberOfThreads) {
  const std::vector<Weights> once = after_steps("simd", 1, 2, 16), again = after_steps("simd", 3, 2, 16);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(Plain(once[i].values).values, Plain(again[i].values).values);
}

}  // namespace
}  // namespace streamvec
