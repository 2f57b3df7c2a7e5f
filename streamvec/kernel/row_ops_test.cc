#include "streamvec/kernel/row_ops.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {
namespace {

constexpr int32_t kDims[] = {1, 3, 15, 16, 17, 31, 50, 100, 200, 300, 513};

// Once for each Highway target that was compiled and that this CPU has.
class RowOps : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Targets, RowOps, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

// A row with random values and zeros behind them.
class Row {
 public:
  Row(int32_t dim, uint64_t seed) : dim_(dim) {
    Random random(seed);
    float* row = memory_.reserve(static_cast<size_t>(round_up(dim, 16)));
    for (int32_t d = 0; seed > 0 && d < dim; ++d) row[d] = random.uniform() * 2 - 1;
  }
  float* data() { return memory_.data(); }
  float& operator[](int32_t d) { return memory_.data()[d]; }
  std::vector<double> values() {
    std::vector<double> all;
    for (int32_t d = 0; d < dim_; ++d) all.push_back(data()[d]);
    return all;
  }
  void expect_zero_padding() {
    for (int32_t d = dim_; d < round_up(dim_, 16); ++d) EXPECT_EQ(data()[d], 0) << "dim " << dim_;
  }

 private:
  int32_t dim_;
  AlignedBuffer<float> memory_;
};

TEST_P(RowOps, AddScaledAddsAndKeepsThePaddingZero) {
  for (int32_t dim : kDims) {
    Row from(dim, 1), to(dim, 2);
    const std::vector<double> before = to.values();
    add_scaled(from.data(), -0.3f, dim, to.data());
    for (int32_t d = 0; d < dim; ++d) EXPECT_NEAR(to[d], before[d] - 0.3 * from[d], 1e-7);
    to.expect_zero_padding();
  }
}

TEST_P(RowOps, ARowTakesItsShareOfACopysChangeAndAllThreeAreAlikeThen) {
  for (int32_t dim : kDims) {
    Row copy(dim, 1), base(dim, 2), row(dim, 3);
    const std::vector<double> copied = copy.values(), based = base.values(), before = row.values();
    merge_row(0.75f, dim, copy.data(), base.data(), row.data());
    for (size_t d = 0; d < before.size(); ++d)
      EXPECT_NEAR(row.values()[d], before[d] + 0.75 * (copied[d] - based[d]), 1e-6);
    EXPECT_EQ(copy.values(), row.values());
    EXPECT_EQ(base.values(), row.values());
    row.expect_zero_padding();
  }
}

TEST_P(RowOps, AChangeIsTakenOnce) {
  for (int32_t dim : kDims) {
    Row row(dim, 1), known(dim, 2), change(dim, 0);
    const std::vector<double> before = known.values();
    take_change(row.data(), dim, known.data(), change.data());
    for (int32_t d = 0; d < dim; ++d) EXPECT_NEAR(change[d], row[d] - before[d], 1e-7);
    EXPECT_EQ(known.values(), row.values());
    take_change(row.data(), dim, known.data(), change.data());
    EXPECT_EQ(change.values(), std::vector<double>(static_cast<size_t>(dim)));
    for (Row* each : {&row, &known, &change}) each->expect_zero_padding();
  }
}

TEST_P(RowOps, APartOfARowIsReplacedAndTheRestOfItStays) {
  for (int32_t dim : kDims) {
    Row to(dim, 1), part(dim, 2), row(dim, 3);
    const std::vector<double> row_before = row.values(), part_before = part.values();
    replace_part(to.data(), dim, part.data(), row.data());
    for (int32_t d = 0; d < dim; ++d) EXPECT_NEAR(row[d] - to[d], row_before[d] - part_before[d], 1e-6);
    EXPECT_EQ(part.values(), to.values());
    for (Row* each : {&to, &part, &row}) each->expect_zero_padding();
  }
}

TEST_P(RowOps, ScaledRowsAreSummedAndAddedTo) {
  for (int32_t dim : kDims) {
    Row a(dim, 1), b(dim, 2), sum(dim, 3);
    float* rows[] = {a.data(), b.data(), a.data()};
    const float scales[] = {0.5f, -2, 0.25f};
    sum_scaled_rows(rows, scales, 3, dim, sum.data());
    for (int32_t d = 0; d < dim; ++d) EXPECT_NEAR(sum[d], 0.75 * a[d] - 2 * b[d], 1e-6);
    sum.expect_zero_padding();
    const std::vector<double> a_before = a.values(), b_before = b.values();
    add_scaled_to_rows(sum.data(), scales, dim, rows, 3);
    for (int32_t d = 0; d < dim; ++d) {
      EXPECT_NEAR(a[d], a_before[static_cast<size_t>(d)] + 0.75 * sum[d], 1e-6);
      EXPECT_NEAR(b[d], b_before[static_cast<size_t>(d)] - 2 * sum[d], 1e-6);
    }
    a.expect_zero_padding();
    sum_scaled_rows(rows, scales, 0, dim, sum.data());
    for (const double value : sum.values()) EXPECT_EQ(value, 0);
  }
}

TEST_P(RowOps, DualStepPutsTheDualToItsBestValue) {
  for (int32_t dim : kDims) {
    Row target(dim, 1), dual(dim, 2), change(dim, 3);
    const std::vector<double> before = dual.values(), made = change.values();
    const float noise = 0.7f, gain = 1.9f;
    const float squares = dual_step(target.data(), noise, gain, dim, dual.data(), change.data());
    double expected = 0;
    for (int32_t d = 0; d < dim; ++d) {
      const auto at = static_cast<size_t>(d);
      expected += std::pow(target[d] - made[at], 2);
      // What is left of the residual after the change is noise times the dual.
      EXPECT_NEAR(target[d] - made[at] - gain * change[d], noise * dual[d], 1e-5);
      EXPECT_NEAR(dual[d] - before[at], change[d], 1e-6);
    }
    EXPECT_NEAR(squares, expected, 1e-4 * dim);
    dual.expect_zero_padding();
    change.expect_zero_padding();
  }
}

TEST_P(RowOps, MeanSquareDividesByTheLengthWithoutPadding) {
  for (int32_t dim : kDims) {
    Row row(dim, 3);
    double sum = 0;
    for (double value : row.values()) sum += value * value;
    EXPECT_NEAR(mean_square(row.data(), dim), sum / dim, 1e-6) << "dim " << dim;
  }
}

TEST_P(RowOps, AdamStepFollowsKingmaAndBa) {
  const double beta1 = AdamRates{}.beta1, beta2 = AdamRates{}.beta2;
  for (int32_t dim : kDims) {
    Row mean(dim, 0), variance(dim, 0), row(dim, 4);
    std::vector<double> wanted = row.values(), m(wanted.size()), v(wanted.size());
    for (int64_t step = 1; step <= 20; ++step) {
      Row gradient(dim, 5 + static_cast<uint64_t>(step));
      adam_step(gradient.data(), 0.01f, step, AdamRates{}, dim, mean.data(), variance.data(), row.data());
      for (int32_t d = 0; d < dim; ++d) {
        m[d] = beta1 * m[d] + (1 - beta1) * gradient[d];
        v[d] = beta2 * v[d] + (1 - beta2) * gradient[d] * gradient[d];
        const double m_hat = m[d] / (1 - std::pow(beta1, step)), v_hat = v[d] / (1 - std::pow(beta2, step));
        wanted[d] += 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
      }
    }
    for (int32_t d = 0; d < dim; ++d) {
      EXPECT_NEAR(row[d], wanted[d], 1e-5);
      EXPECT_NEAR(mean[d], m[d], 1e-6);
      EXPECT_NEAR(variance[d], v[d], 1e-7);
    }
    for (Row* each : {&mean, &variance, &row}) each->expect_zero_padding();
  }
}

TEST_P(RowOps, NesterovStepMovesTheMeanAndDrawsTheSlopeToIt) {
  for (int32_t dim : kDims) {
    Row mean(dim, 1), slope(dim, 2);
    const std::vector<double> means = mean.values(), slopes = slope.values();
    nesterov_step(0.75f, dim, mean.data(), slope.data());
    for (int32_t d = 0; d < dim; ++d) {
      const double wanted = 0.75 * means[d] + 0.25 * slopes[d];
      EXPECT_NEAR(mean[d], wanted, 1e-6);
      EXPECT_NEAR(slope[d], 0.75 * wanted + 0.25 * slopes[d], 1e-6);
    }
    for (Row* each : {&mean, &slope}) each->expect_zero_padding();
  }
}

TEST_P(RowOps, NesterovStepTakesRowsThatBeginAnywhere) {
  constexpr int32_t kDim = 48;
  Row mean(kDim + 1, 1), slope(kDim + 3, 2);
  const std::vector<double> means = mean.values(), slopes = slope.values();
  nesterov_step(0.75f, kDim, mean.data() + 1, slope.data() + 3);
  for (size_t d = 0; d < kDim; ++d) EXPECT_NEAR(mean.data()[d + 1], 0.75 * means[d + 1] + 0.25 * slopes[d + 3], 1e-6);
}

TEST_P(RowOps, AdamStepIsBoundedWhereAVarianceWasLost) {
  constexpr int32_t kDim = 20;
  Row mean(kDim, 1), variance(kDim, 0), row(kDim, 0), gradient(kDim, 0);
  adam_step(gradient.data(), 0.01f, 1'000, AdamRates{}, kDim, mean.data(), variance.data(), row.data());
  for (int32_t d = 0; d < kDim; ++d) EXPECT_LE(std::abs(row[d]), 0.0801f);
}

TEST_P(RowOps, AdamStepIsNotCutForTheGradientsThatMoveMost) {
  // Growing by beta2 / beta1 a step: the case of equality in Cauchy-Schwarz.
  const double beta1 = AdamRates{}.beta1, beta2 = AdamRates{}.beta2;
  Row mean(1, 0), variance(1, 0), row(1, 0), gradient(1, 0);
  double m = 0, v = 0, wanted = 0;
  for (int64_t step = 1; step <= 300; ++step) {
    gradient[0] = static_cast<float>(1e-15 * std::pow(beta2 / beta1, static_cast<double>(step)));
    const float before = row[0];
    adam_step(gradient.data(), 0.01f, step, AdamRates{}, 1, mean.data(), variance.data(), row.data());
    m = beta1 * m + (1 - beta1) * gradient[0];
    v = beta2 * v + (1 - beta2) * gradient[0] * gradient[0];
    wanted = 0.01 * m / (1 - std::pow(beta1, step)) / (std::sqrt(v / (1 - std::pow(beta2, step))) + 1e-8);
    EXPECT_NEAR(row[0] - before, wanted, 1e-6) << step;
  }
  EXPECT_GT(wanted, 0.03) << "far more than lr";
}

}  // namespace
}  // namespace streamvec
