#include "streamvec/kernel/glove_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// Two sides of random rows, biases and sums.
struct Tables {
  Tables(int64_t rows, int64_t dim, uint64_t seed) {
    Random random(seed);
    for (int side = 0; side < 2; ++side) {
      values[side] = Matrix::make(rows, dim).value();
      sums[side] = Matrix::make(rows, dim).value();
      biases[side] = Matrix::make(rows, 2).value();
      for (int64_t i = 0; i < rows; ++i) {
        for (float& value : values[side].view().row_span(i)) value = random.uniform() - 0.5f;
        for (float& value : sums[side].view().row_span(i)) value = random.uniform();
        for (float& value : biases[side].view().row_span(i)) value = random.uniform();
      }
    }
  }
  GloveSide side(int i) { return {values[i].view(), sums[i].view(), biases[i].view()}; }
  GloveStats step(GloveKernel kernel, const std::vector<GloveCell>& cells, float lr) {
    return glove_step(kernel, cells, lr, side(0), side(1));
  }

  Matrix values[2], sums[2], biases[2];
};

double cost_of(Tables& tables, const GloveCell& cell) {
  double diff = double{tables.biases[0].row(cell.word)[0]} + tables.biases[1].row(cell.context)[0] - cell.log_x;
  for (int64_t k = 0; k < tables.values[0].cols(); ++k)
    diff += double{tables.values[0].row(cell.word)[k]} * tables.values[1].row(cell.context)[k];
  return 0.5 * cell.weight * diff * diff;
}

TEST(GloveStep, StepsGoDownTheSlopeThatFiniteDifferencesShow) {
  const GloveCell cell{1, 2, 2.0f, 0.7f};
  for (const GloveKernel kernel : {GloveKernel::kReference, GloveKernel::kSimd})
    for (int side = 0; side < 2; ++side)
      for (int64_t k = 0; k < 5; ++k) {
        Tables before(3, 5, 1), moved(3, 5, 1), after(3, 5, 1);
        const int64_t row = side == 0 ? cell.word : cell.context;
        constexpr float kStep = 1e-3f;
        moved.values[side].row(row)[k] += kStep;
        const double up = cost_of(moved, cell);
        moved.values[side].row(row)[k] -= 2 * kStep;
        const double slope = (up - cost_of(moved, cell)) / (2 * kStep);
        const float lr = 0.1f;
        EXPECT_NEAR(after.step(kernel, {cell}, lr).cost, cost_of(before, cell), 1e-5);
        const double sum = before.sums[side].row(row)[k];
        EXPECT_NEAR(after.values[side].row(row)[k] - before.values[side].row(row)[k], -lr * slope / std::sqrt(1 + sum),
                    2e-5);
        EXPECT_NEAR(after.sums[side].row(row)[k] - sum, lr * lr * slope * slope, 2e-5);
      }
}

TEST(GloveStep, BiasesGoDownTheirSlopeWithoutTheLearningRate) {
  const GloveCell cell{0, 0, 3.0f, 0.5f};
  for (const GloveKernel kernel : {GloveKernel::kReference, GloveKernel::kSimd})
    for (int side = 0; side < 2; ++side) {
      Tables before(1, 4, 2), moved(1, 4, 2), after(1, 4, 2);
      constexpr float kStep = 1e-3f;
      moved.biases[side].row(0)[0] += kStep;
      const double slope = (cost_of(moved, cell) - cost_of(before, cell)) / kStep;
      after.step(kernel, {cell}, 0.01f);
      const double sum = before.biases[side].row(0)[1];
      EXPECT_NEAR(after.biases[side].row(0)[0] - before.biases[side].row(0)[0], -slope / std::sqrt(1 + sum), 2e-3);
      EXPECT_NEAR(after.biases[side].row(0)[1] - sum, slope * slope, 5e-3);
    }
}

TEST(GloveStep, SimdMatchesTheReferenceAtEveryDimension) {
  for (const int64_t dim : {1, 7, 16, 17, 33, 100, 200}) {
    Tables simd(20, dim, 3), reference(20, dim, 3);
    Random random(4);
    std::vector<GloveCell> cells(200);
    for (GloveCell& cell : cells)
      cell = {static_cast<int32_t>(random.below(20)), static_cast<int32_t>(random.below(20)), 4 * random.uniform(),
              random.uniform()};
    const double cost = reference.step(GloveKernel::kReference, cells, 0.05f).cost;
    EXPECT_NEAR(simd.step(GloveKernel::kSimd, cells, 0.05f).cost, cost, 1e-4 * cost) << dim;
    for (int side = 0; side < 2; ++side)
      for (int64_t i = 0; i < 20; ++i) {
        for (int64_t k = 0; k < dim; ++k) {
          EXPECT_NEAR(simd.values[side].row(i)[k], reference.values[side].row(i)[k], 2e-4);
          EXPECT_NEAR(simd.sums[side].row(i)[k], reference.sums[side].row(i)[k], 2e-4);
        }
        EXPECT_NEAR(simd.biases[side].row(i)[0], reference.biases[side].row(i)[0], 1e-3);
        for (int64_t k = dim; k < simd.values[side].stride(); ++k) EXPECT_EQ(simd.values[side].row(i)[k], 0);
      }
  }
}

TEST(GloveStep, RefusesCellsThatAreNotFinite) {
  for (const GloveKernel kernel : {GloveKernel::kReference, GloveKernel::kSimd}) {
    Tables tables(2, 8, 5), untouched(2, 8, 5);
    tables.values[0].row(0)[3] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(tables.step(kernel, {{0, 1, 1, 1}}, 0.05f).refused, 1);
    for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(tables.values[1].row(1)[k], untouched.values[1].row(1)[k]);
    EXPECT_EQ(tables.step(kernel, {{1, 1, 1, 1}}, 0.05f).refused, 0);
  }
}

TEST(GloveWeights, AreThoseOfTheDefinition) {
  std::vector<float> x = {1e-4f, 0.2f, 0.5f, 1, 2, 17, 99, 100, 101, 1e9f}, log_x(16), weight(16);
  const auto count = static_cast<int64_t>(x.size());
  x.resize(16, 1);
  for (const GloveWeighting weighting : {GloveWeighting{}, GloveWeighting{10, 0.5}, GloveWeighting{1, 0}}) {
    glove_weights(x.data(), count, weighting, log_x.data(), weight.data());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      EXPECT_NEAR(log_x[i], std::log(x[i]), 2e-6 * (1 + std::fabs(std::log(x[i]))));
      const double f = x[i] < weighting.x_max ? std::pow(x[i] / weighting.x_max, weighting.alpha) : 1;
      EXPECT_NEAR(weight[i], f, 1e-5 * f) << x[i];
    }
  }
}

TEST(GloveKernels, AreNamedAndOthersRefused) {
  EXPECT_EQ(glove_kernel_name(parse_glove_kernel("auto").value()), "simd");
  EXPECT_EQ(glove_kernel_name(parse_glove_kernel("reference").value()), "reference");
  EXPECT_EQ(parse_glove_kernel("bf16").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
