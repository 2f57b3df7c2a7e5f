#include "streamvec/kernel/pair_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "streamvec/kernel/pair_block_testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of pair_block_testing.h

TEST(ReferencePairKernel, LossIsTheSumOfWeightedSoftplus) {
  const auto kernel = make_reference_pair_kernel();
  for (const Shape& shape : many_shapes(1)) {
    Block block(shape, 3);
    EXPECT_NEAR(kernel->step(block.view()).loss, plain_loss(block.view()), 1e-9 * plain_loss(block.view())) << shape;
  }
}

// Both losses, the kernel's own and the one written here, are differentiated at every value of `rows`.
void expect_slope(Block& block, Rows& rows, const Rows& steps, int32_t dim, const std::function<double()>& loss) {
  for (size_t i = 0; i < rows.pointers.size(); ++i)
    for (int32_t d = 0; d < dim; ++d) {
      float& value = rows.pointers[i][d];
      const float middle = value;
      const float above = middle + 0x1p-9f, below = middle - 0x1p-9f;
      value = above;
      const double loss_above = loss();
      value = below;
      const double loss_below = loss();
      value = middle;
      const double slope = (loss_above - loss_below) / (double{above} - below);
      EXPECT_NEAR(steps.pointers[i][d], -block.view().scale * slope, 1e-5) << "row " << i << ", value " << d;
    }
}

TEST(ReferencePairKernel, StepIsTheSlopeOfItsLossByFiniteDifferences) {
  const auto kernel = make_reference_pair_kernel();
  for (const Shape& shape : {Shape{3, 4, 6, 2, Bands::kFull, false, 1}, Shape{5, 7, 9, 6, Bands::kSliding, true, 0.5f},
                             Shape{1, 1, 1, 1, Bands::kFull, false, 1}, Shape{4, 3, 5, 0, Bands::kFull, true, 2}}) {
    Block block(shape, 11), probe(shape, 11);
    ASSERT_TRUE(kernel->step(block.view()).finite);
    const auto own_loss = [&] { return kernel->step(probe.view()).loss; };
    const auto independent_loss = [&] { return plain_loss(probe.view()); };
    expect_slope(block, probe.x, block.dx, shape.dim, own_loss);
    expect_slope(block, probe.y, block.dy, shape.dim, own_loss);
    expect_slope(block, probe.x, block.dx, shape.dim, independent_loss);
    expect_slope(block, probe.y, block.dy, shape.dim, independent_loss);
  }
}

class EveryPairKernel : public PairKernelTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryPairKernel, ::testing::Values("reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return test.param; });

TEST_P(EveryPairKernel, MatchesTheFormulaOverManyShapes) {
  uint64_t seed = 100;
  for (const Shape& shape : many_shapes(2)) {
    Block block(shape, ++seed);
    expect_step_matches(*kernel_, tolerance(GetParam(), shape.dim), is_exact(GetParam()) ? 1e-5 : 1e-2, block, shape);
  }
}

TEST_P(EveryPairKernel, MatchesTheReferenceKernel) {
  const auto reference = make_reference_pair_kernel();
  for (const Shape& shape : {Shape{200, 32, 72, 22, Bands::kSliding, true}, Shape{300, 70, 130, 65, Bands::kFull},
                             Shape{50, 26, 58, 16, Bands::kSliding, false}, Shape{513, 33, 61, 61, Bands::kSliding},
                             Shape{200, 32, 72, 22, Bands::kSliding, true, 0.05f, 0.25f, true}}) {
    Block block(shape, 5), other(shape, 5);
    const PairBlockResult result = kernel_->step(block.view()), wanted = reference->step(other.view());
    EXPECT_NEAR(result.loss, wanted.loss, (is_exact(GetParam()) ? 1e-5 : 1e-3) * wanted.loss) << shape;
    EXPECT_NEAR(result.slope, wanted.slope, (is_exact(GetParam()) ? 1e-5 : 1e-3) * wanted.slope) << shape;
    const Expected sizes(block.view());
    const auto table = [&](const Rows& rows) {
      Expected::Table all;
      for (const float* row : rows.pointers) all.emplace_back(row, row + shape.dim);
      return all;
    };
    EXPECT_LT(worst_error(table(other.dx), sizes.dx_size, block.dx), tolerance(GetParam(), shape.dim)) << shape;
    EXPECT_LT(worst_error(table(other.dy), sizes.dy_size, block.dy), tolerance(GetParam(), shape.dim)) << shape;
  }
}

TEST_P(EveryPairKernel, InPlaceEqualsOutOfPlaceAppliedAfterwards) {
  for (const Shape& shape : {Shape{200, 32, 72, 22, Bands::kSliding, true}, Shape{17, 9, 13, 5, Bands::kFull},
                             Shape{1, 3, 4, 2, Bands::kFull}, Shape{100, 70, 130, 60, Bands::kSliding}}) {
    Block apart(shape, 9), inside(shape, 9);
    for (Block* block : {&apart, &inside}) {
      block->name_twice(block->x, 0, shape.inputs - 1);  // far apart, and neighbours in one tile
      block->name_twice(block->x, 1, 2);
      block->name_twice(block->y, 0, shape.outputs - 1);  // a word that is a centre and a negative
      block->name_twice(block->y, 1, 2);
    }
    ASSERT_TRUE(kernel_->step(apart.view()).finite);
    ASSERT_TRUE(kernel_->step(inside.in_place()).finite);
    const auto apply = [&](const Rows& steps, Rows& rows) {
      for (size_t i = 0; i < rows.pointers.size(); ++i)
        for (int32_t d = 0; d < shape.dim; ++d) rows.pointers[i][d] += steps.pointers[i][d];
    };
    apply(apart.dx, apart.x);
    apply(apart.dy, apart.y);
    for (auto [rows, wanted] : {std::pair{&inside.x, &apart.x}, std::pair{&inside.y, &apart.y}}) {
      EXPECT_TRUE(padding_is_zero(*rows, shape.dim)) << shape;
      for (size_t i = 0; i < rows->pointers.size(); ++i)
        for (int32_t d = 0; d < shape.dim; ++d)
          ASSERT_NEAR(rows->pointers[i][d], wanted->pointers[i][d], 1e-6) << shape << ", row " << i;
    }
  }
}

TEST_P(EveryPairKernel, AddsToWhatIsThere) {
  const Shape shape{50, 20, 30, 10, Bands::kSliding, true};
  Block zeroed(shape, 13), filled(shape, 13);
  for (Rows* rows : {&filled.dx, &filled.dy})
    for (float* row : rows->pointers) std::fill_n(row, shape.dim, 3.0f);
  ASSERT_TRUE(kernel_->step(zeroed.view()).finite);
  ASSERT_TRUE(kernel_->step(filled.view()).finite);
  for (int32_t j = 0; j < shape.inputs; ++j)
    for (int32_t d = 0; d < shape.dim; ++d) ASSERT_NEAR(filled.dx[j][d], zeroed.dx[j][d] + 3, 1e-6);
  for (int32_t i = 0; i < shape.outputs; ++i)
    for (int32_t d = 0; d < shape.dim; ++d) ASSERT_NEAR(filled.dy[i][d], zeroed.dy[i][d] + 3, 1e-6);
}

TEST_P(EveryPairKernel, EqualBlocksGiveEqualBitsWhateverRanBefore) {
  const auto run = [](PairKernel& kernel, const Shape& shape) {
    Block block(shape, 37);
    const double loss = kernel.step(block.in_place()).loss;
    return std::tuple(loss, block.x.values(), block.y.values());
  };
  for (const Shape& shape :
       {Shape{200, 32, 72, 22, Bands::kSliding, true}, Shape{17, 9, 13, 5, Bands::kFull, false, 0.05f, 0.1f},
        Shape{3, 33, 20, 7, Bands::kSliding, false, 0.05f, 0.1f}, Shape{100, 1, 1, 1, Bands::kFull}}) {
    const auto first = run(*kernel_, shape);
    for (const Shape& other : {Shape{513, 70, 130, 65, Bands::kFull}, Shape{1, 2, 3, 1, Bands::kFull},
                               Shape{200, 31, 71, 30, Bands::kEmpty}})
      run(*kernel_, other);
    Block poisoned({300, 64, 96, 20, Bands::kSliding}, 41);
    for (float* row : poisoned.x.pointers) std::fill_n(row, 300, kNan);
    ASSERT_FALSE(kernel_->step(poisoned.in_place()).finite);
    for (const auto& again : {run(*kernel_, shape), run(*fresh(), shape)}) {
      EXPECT_EQ(std::get<0>(first), std::get<0>(again)) << shape;
      EXPECT_TRUE(same_bits(std::get<1>(first), std::get<1>(again))) << shape;
      EXPECT_TRUE(same_bits(std::get<2>(first), std::get<2>(again))) << shape;
    }
  }
}

TEST_P(EveryPairKernel, StepGrowsWithTheScaleAndTheLossDoesNot) {
  const Shape shape{50, 20, 30, 10, Bands::kSliding, true, 0.25f};
  Block once(shape, 43), fourfold(shape, 43), never(shape, 43);
  fourfold.set_scale(1);
  never.set_scale(0);
  const double loss = kernel_->step(once.view()).loss;
  EXPECT_EQ(kernel_->step(fourfold.view()).loss, loss);
  EXPECT_EQ(kernel_->step(never.view()).loss, loss);
  for (int32_t i = 0; i < shape.outputs; ++i)
    for (int32_t d = 0; d < shape.dim; ++d) {
      ASSERT_NEAR(fourfold.dy[i][d], 4 * once.dy[i][d], 1e-6);
      ASSERT_EQ(never.dy[i][d], 0);
    }
  for (int32_t j = 0; j < shape.inputs; ++j)
    for (int32_t d = 0; d < shape.dim; ++d) ASSERT_NEAR(fourfold.dx[j][d], 4 * once.dx[j][d], 1e-6);
}

TEST_P(EveryPairKernel, StepsReachNoFurtherThanStepMax) {
  // All x and y alike: a step is its coefficients' sum times one row, so that its length shows the sum.
  Shape shape{16, 40, 30, 12, Bands::kSliding, true, 1, 0.25f};
  Block block(shape, 53);
  for (Rows* rows : {&block.x, &block.y})
    for (float* row : rows->pointers) std::fill_n(row, shape.dim, 0.125f);
  ASSERT_TRUE(kernel_->step(block.view()).finite);
  float longest = 0;
  for (const Rows* rows : {&block.dx, &block.dy})
    for (const float* row : rows->pointers) longest = std::max(longest, std::abs(row[0]) / 0.125f);
  EXPECT_NEAR(longest, 0.25, 1e-2 * 0.25);
  EXPECT_NEAR(kernel_->step(block.view()).loss, plain_loss(block.view()), 1e-4 * plain_loss(block.view()));
}

TEST_P(EveryPairKernel, ZeroWeightsCostNothingAndChangeNothing) {
  const Shape shape{100, 35, 50, 20, Bands::kFull};
  Block block(shape, 47);
  for (float* row : block.weights.pointers) std::fill_n(row, shape.inputs, 0.0f);
  const auto x = block.x.values(), y = block.y.values();
  const PairBlockResult result = kernel_->step(block.in_place());
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(x, block.x.values());
  EXPECT_EQ(y, block.y.values());
}

TEST(SimdPairKernel, EveryTargetMatchesTheFormula) {
  for_each_target([](PairKernel& kernel) {
    uint64_t seed = 500;
    for (const Shape& shape : many_shapes(1)) {
      Block block(shape, ++seed);
      expect_step_matches(kernel, 1e-5, 1e-5, block, shape);
    }
  });
}

TEST(SimdPairKernel, NameTellsATargetThatWasCompiled) {
  EXPECT_EQ(make_simd_pair_kernel()->name(),
            std::string("simd ") + hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()));
}

TEST(MakePairKernel, AutoIsTheFastestThatIsAvailable) {
  const std::vector<std::string> kinds = pair_kernels_available();
  ASSERT_GE(kinds.size(), 2);
  EXPECT_THAT(kinds, ::testing::IsSupersetOf({"reference", "simd"}));
  for (const std::string& kind : kinds) EXPECT_TRUE(make_pair_kernel(kind).ok()) << kind;
  EXPECT_THAT(kinds, ::testing::Contains(fastest_pair_kernel()));
  const auto chosen = make_pair_kernel("auto");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value()->name(), make_pair_kernel(fastest_pair_kernel()).value()->name());
}

TEST(MakePairKernel, AnUnknownNameIsAnInvalidArgumentThatNamesTheKnownOnes) {
  for (const char* kind : {"", "AMX", "cuda", "simd "}) {
    const auto made = make_pair_kernel(kind);
    ASSERT_FALSE(made.ok()) << kind;
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(made.status().message(), ::testing::HasSubstr("auto, reference, simd, bf16 or amx"));
  }
}

TEST(MakePairKernel, MissingInstructionsAreAFailedPrecondition) {
  const std::vector<std::string> kinds = pair_kernels_available();
  bool tried = false;
  for (const std::string kind : {"bf16", "amx"}) {
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    const auto made = make_pair_kernel(kind);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kFailedPrecondition);
    EXPECT_THAT(made.status().message(), ::testing::HasSubstr("--kernel auto"));
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "this machine has the instructions of every kernel";
}

}  // namespace
}  // namespace streamvec
