#include "streamvec/optim/lbfgs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/optim/lbfgs_testing.h"

namespace streamvec {
namespace {

// All vectors at hand.
class VectorsAtHand final : public VectorSpace {
 public:
  VectorsAtHand(PlainFunction f, PlainVector x, PlainVector scales)
      : f_(std::move(f)), vectors_(256, PlainVector(x.size())), scales_(std::move(scales)) {
    vectors_[kPoint] = std::move(x);
  }
  Status apply(std::span<const VectorOp> ops, std::vector<double>& told) override {
    told.clear();
    for (const VectorOp& op : ops) {
      PlainVector &a = vectors_[op.a], &b = vectors_[op.b], divided = b;
      for (size_t i = 0; i < divided.size(); ++i) divided[i] /= scales_[i];
      if (op.kind == VectorOp::Kind::kCopy) b = a;
      if (op.kind == VectorOp::Kind::kScale) a = plain_sum(PlainVector(a.size()), op.factor, a);
      if (op.kind == VectorOp::Kind::kAxpy) b = plain_sum(b, op.factor, a);
      if (op.kind == VectorOp::Kind::kDot) told.push_back(plain_dot(a, b));
      if (op.kind == VectorOp::Kind::kDotDivided) told.push_back(plain_dot(a, divided));
      if (op.kind == VectorOp::Kind::kDivide)
        for (size_t i = 0; i < a.size(); ++i) a[i] /= scales_[i];
    }
    return {};
  }
  Result<double> evaluate() override { return f_(vectors_[kTrial], vectors_[kTrialGradient]); }
  const PlainVector& point() const { return vectors_[kPoint]; }

 private:
  const PlainFunction f_;
  std::vector<PlainVector> vectors_;
  const PlainVector scales_;
};

double rosenbrock(const PlainVector& x, PlainVector& gradient) {
  double value = 0;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double bend = x[i + 1] - x[i] * x[i];
    value += 100 * bend * bend + (1 - x[i]) * (1 - x[i]);
    gradient[i] += -400 * bend * x[i] - 2 * (1 - x[i]);
    gradient[i + 1] += 200 * bend;
  }
  return value;
}

// Curvatures 1, 4, 9, ...
double bowl(const PlainVector& x, PlainVector& gradient) {
  double value = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double curvature = static_cast<double>((i + 1) * (i + 1));
    gradient[i] = curvature * (x[i] - 1);
    value += gradient[i] * (x[i] - 1) / 2;
  }
  return value;
}

Result<std::string> minimise(VectorsAtHand& space, const LbfgsOptions& options, std::vector<double>* values = nullptr,
                             LbfgsProgress* progress = nullptr) {
  Lbfgs lbfgs(space, options);
  auto ended = lbfgs.minimise([&](const LbfgsProgress& now) -> Result<bool> {
    if (values != nullptr) values->push_back(now.value);
    return true;
  });
  if (progress != nullptr) *progress = lbfgs.progress();
  return ended;
}

TEST(Lbfgs, TakesTheStepsOfThePlainOne) {
  const PlainVector scales = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const PlainVector& divisors : {PlainVector(8, 1.0), scales}) {
    LbfgsOptions options;
    options.history = 4;
    options.iterations_max = 20;
    PlainVector x(8, -1.2);
    VectorsAtHand space(rosenbrock, x, divisors);
    std::vector<double> values;
    ASSERT_TRUE(minimise(space, options, &values).ok());
    const std::vector<double> plain = plain_lbfgs(rosenbrock, options, divisors, x);
    ASSERT_EQ(values.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(values[i], plain[i], 1e-6 * plain[i]) << i;
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(space.point()[i], x[i], 1e-6);
  }
}

TEST(Lbfgs, FindsTheFootOfACurvedValley) {
  LbfgsOptions options;
  options.iterations_max = 500;
  options.gradient_min = 1e-10;
  VectorsAtHand space(rosenbrock, PlainVector(10, -1.2), PlainVector(10, 1.0));
  ASSERT_TRUE(minimise(space, options).ok());
  for (const double each : space.point()) EXPECT_NEAR(each, 1, 1e-6);
}

TEST(Lbfgs, KnownCurvaturesMakeABowlRound) {
  LbfgsOptions options;
  options.iterations_max = 1000;
  PlainVector curvatures;
  for (size_t i = 0; i < 100; ++i) curvatures.push_back(static_cast<double>((i + 1) * (i + 1)));
  LbfgsProgress known, unknown;
  VectorsAtHand round(bowl, PlainVector(100), curvatures), flat(bowl, PlainVector(100), PlainVector(100, 1.0));
  ASSERT_TRUE(minimise(round, options, nullptr, &known).ok());
  ASSERT_TRUE(minimise(flat, options, nullptr, &unknown).ok());
  EXPECT_LE(known.iterations, 3);
  EXPECT_GT(unknown.iterations, 20);
}

TEST(Lbfgs, EndsWhereNoStepLeadsDown) {
  // The gradient lies: what it calls down is up.
  const PlainFunction lies = [](const PlainVector& x, PlainVector& gradient) {
    gradient[0] = -2 * x[0];
    return x[0] * x[0];
  };
  VectorsAtHand space(lies, {3}, {1});
  const auto ended = minimise(space, {});
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, "no step leads further down");
  EXPECT_EQ(space.point()[0], 3);
}

TEST(Lbfgs, PassesOverPlacesWhereTheValueIsNoNumber) {
  const PlainFunction half = [](const PlainVector& x, PlainVector& gradient) {  // x - log x: only above 0
    gradient[0] = 1 - 1 / x[0];
    return x[0] - std::log(x[0]);
  };
  LbfgsOptions options;
  options.first_step = 100;
  VectorsAtHand space(half, {5}, {1});
  ASSERT_TRUE(minimise(space, options).ok());
  EXPECT_NEAR(space.point()[0], 1, 1e-6);
}

TEST(Lbfgs, AnErrorOfTheSpaceEndsIt) {
  class Broken final : public VectorSpace {
    Status apply(std::span<const VectorOp>, std::vector<double>&) override { return error(Code::kAborted, "gone"); }
    Result<double> evaluate() override { return 0.0; }
  } broken;
  Lbfgs lbfgs(broken, {});
  EXPECT_EQ(lbfgs.minimise([](const LbfgsProgress&) -> Result<bool> { return true; }).status().code(), Code::kAborted);
}

}  // namespace
}  // namespace streamvec
