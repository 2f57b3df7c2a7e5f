#include "streamvec/kernel/pair_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Rows of `width` floats, zeroed, each in memory of its own, so that AddressSanitizer sees a step past any of them.
struct Rows {
  Rows(int32_t count, int32_t width) : stride(round_up(width, 16)), memory(static_cast<size_t>(count)) {
    for (AlignedBuffer<float>& buffer : memory) pointers.push_back(buffer.reserve(static_cast<size_t>(stride)));
  }
  float* operator[](int32_t i) { return pointers[static_cast<size_t>(i)]; }
  const float* operator[](int32_t i) const { return pointers[static_cast<size_t>(i)]; }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const float* row : pointers) all.emplace_back(row, row + stride);
    return all;
  }

  int32_t stride;
  std::vector<AlignedBuffer<float>> memory;
  std::vector<float*> pointers;
};

enum class Bands { kEmpty, kFull, kSliding };

struct Shape {
  int32_t dim = 16;
  int32_t inputs = 1;
  int32_t outputs = 1;
  int32_t positives = 0;
  Bands bands = Bands::kFull;
  bool shared_weights = false;  // the negatives have one row of weights among them
  float scale = 0.05f;
  float step_max = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "dim " << shape.dim << ", " << shape.inputs << " inputs, " << shape.outputs << " outputs, "
             << shape.positives << " positives, bands " << static_cast<int>(shape.bands)
             << (shape.shared_weights ? ", shared weights" : "") << ", step_max " << shape.step_max;
}

float between(Random& random, float low, float high) { return low + (high - low) * random.uniform(); }

// A block with rows of its own; dx and dy are zero until a kernel adds to them.
class Block {
 public:
  Block(const Shape& shape, uint64_t seed)
      : x(shape.inputs, shape.dim),
        y(shape.outputs, shape.dim),
        dx(shape.inputs, shape.dim),
        dy(shape.outputs, shape.dim),
        weights(shape.outputs, shape.inputs),
        shape_(shape) {
    Random random(seed);
    const float size = 1.5f / std::pow(static_cast<float>(shape.dim), 0.25f);  // products of about one
    for (Rows* rows : {&x, &y})
      for (float* row : rows->pointers)
        for (int32_t d = 0; d < shape.dim; ++d) row[d] = between(random, -size, size);
    draw_bands(random);
    draw_weights(random);
    point(x.pointers, x_pointers_);
    point(y.pointers, y_pointers_);
  }

  PairBlock view() {
    PairBlock block;
    block.inputs = shape_.inputs;
    block.positives = shape_.positives;
    block.outputs = shape_.outputs;
    block.dim = shape_.dim;
    block.x = x_pointers_.data();
    block.y = y_pointers_.data();
    block.weight = weight_pointers_.data();
    block.band_begin = band_begin.data();
    block.band_end = band_end.data();
    block.scale = shape_.scale;
    block.step_max = shape_.step_max;
    block.dx = dx.pointers.data();
    block.dy = dy.pointers.data();
    return block;
  }
  PairBlock in_place() {
    PairBlock block = view();
    block.dx = x.pointers.data();
    block.dy = y.pointers.data();
    return block;
  }
  // Makes two rows of a side one and the same.
  void name_twice(Rows& rows, int32_t first, int32_t second) {
    rows.pointers[static_cast<size_t>(second)] = rows.pointers[static_cast<size_t>(first)];
    point(x.pointers, x_pointers_);
    point(y.pointers, y_pointers_);
  }
  void set_scale(float scale) { shape_.scale = scale; }

  Rows x, y, dx, dy, weights;
  std::vector<int32_t> band_begin, band_end;

 private:
  static void point(const std::vector<float*>& from, std::vector<const float*>& to) {
    to.assign(from.begin(), from.end());
  }

  void draw_bands(Random& random) {
    for (int32_t i = 0; i < shape_.positives; ++i) {
      const int32_t centre = i * shape_.inputs / std::max(shape_.positives, 1);
      const int32_t begin = std::max(0, centre - 5), end = std::min(shape_.inputs, centre + 6);
      band_begin.push_back(shape_.bands == Bands::kSliding ? begin : 0);
      band_end.push_back(shape_.bands == Bands::kSliding ? end : shape_.bands == Bands::kFull ? shape_.inputs : 0);
    }
    if (shape_.positives > 0 && shape_.bands == Bands::kSliding && random.below(2) == 0) band_end[0] = band_begin[0];
  }

  void draw_weights(Random& random) {
    for (int32_t i = 0; i < shape_.outputs; ++i) {
      const bool positive = i < shape_.positives;
      const int32_t begin = positive ? band_begin[static_cast<size_t>(i)] : 0;
      const int32_t end = positive ? band_end[static_cast<size_t>(i)] : shape_.inputs;
      for (int32_t j = begin; j < end; ++j)
        weights[i][j] = random.below(4) == 0 ? 0.0f : positive ? 1.0f : between(random, 0.1f, 2.0f);
      weight_pointers_.push_back(weights[positive || !shape_.shared_weights ? i : shape_.positives]);
    }
  }

  Shape shape_;
  std::vector<const float*> x_pointers_, y_pointers_, weight_pointers_;
};

double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

double product(const PairBlock& block, int32_t i, int32_t j) {
  double sum = 0;
  for (int32_t d = 0; d < block.dim; ++d) sum += static_cast<double>(block.y[i][d]) * block.x[j][d];
  return sum;
}

double plain_loss(const PairBlock& block) {
  double loss = 0;
  for (int32_t i = 0; i < block.outputs; ++i)
    for (int32_t j = 0; j < block.inputs; ++j)
      loss += block.weight[i][j] * softplus((i < block.positives ? -1 : 1) * product(block, i, j));
  return loss;
}

// What a block should add to its rows, and how large the terms of each sum are (their root of squares): the measure
// that rounding errors are held against.
struct Expected {
  using Table = std::vector<std::vector<double>>;
  explicit Expected(const PairBlock& block)
      : dx(block.inputs, std::vector<double>(block.dim)),
        dy(block.outputs, std::vector<double>(block.dim)),
        dx_size(block.inputs),
        dy_size(block.outputs) {
    std::vector<double> dx_reach(block.inputs), dy_reach(block.outputs);
    for (int32_t i = 0; i < block.outputs; ++i)
      for (int32_t j = 0; j < block.inputs; ++j) {
        if (block.weight[i][j] == 0) continue;
        const double z = product(block, i, j);
        loss += block.weight[i][j] * softplus(i < block.positives ? -z : z);
        const double sigma = 1 / (1 + std::exp(-z));
        const double c = block.scale * block.weight[i][j] * ((i < block.positives ? 1 : 0) - sigma);
        add(c, block.y[i], block.dim, dx[j], dx_size[j]);
        add(c, block.x[j], block.dim, dy[i], dy_size[i]);
        dx_reach[j] += std::abs(c);
        dy_reach[i] += std::abs(c);
      }
    finish(dx_reach, block.step_max, dx, dx_size);
    finish(dy_reach, block.step_max, dy, dy_size);
  }

  static void add(double c, const float* row, int32_t dim, std::vector<double>& sum, double& square) {
    for (int32_t d = 0; d < dim; ++d) {
      sum[d] += c * row[d];
      square += c * row[d] * c * row[d];
    }
  }

  // A step whose coefficients reach further than step_max is shortened to it.
  static void finish(const std::vector<double>& reach, double step_max, Table& sums, std::vector<double>& sizes) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const double cut = step_max > 0 && reach[i] > step_max ? step_max / reach[i] : 1;
      for (double& value : sums[i]) value *= cut;
      sizes[i] = cut * std::sqrt(sizes[i]);
    }
  }

  double loss = 0;
  Table dx, dy;
  std::vector<double> dx_size, dy_size;
};

// The largest error of a row, as a share of the size of its terms. A row without any term must be exactly as it was.
double worst_error(const Expected::Table& expected, const std::vector<double>& sizes, const Rows& rows) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double square = 0;
    const float* row = rows.pointers[i];
    for (size_t d = 0; d < expected[i].size(); ++d) square += (row[d] - expected[i][d]) * (row[d] - expected[i][d]);
    if (!(square >= 0)) return kInf;
    if (square > 0) worst = std::max(worst, std::sqrt(square) / sizes[i]);
  }
  return worst;
}

bool padding_is_zero(const Rows& rows, int32_t dim) {
  return std::all_of(rows.pointers.begin(), rows.pointers.end(), [&](const float* row) {
    return std::all_of(row + dim, row + rows.stride, [](float value) { return std::bit_cast<uint32_t>(value) == 0; });
  });
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](float first, float second) {
      return std::bit_cast<uint32_t>(first) == std::bit_cast<uint32_t>(second);
    });
  });
}

// Every dim of interest with each kind of band and weights, and random numbers of rows.
std::vector<Shape> many_shapes(int repetitions) {
  std::vector<Shape> shapes;
  Random random(7);
  for (int32_t dim : {1, 3, 16, 17, 50, 100, 200, 300, 513})
    for (Bands bands : {Bands::kEmpty, Bands::kFull, Bands::kSliding})
      for (bool shared : {false, true})
        for (int r = 0; r < repetitions; ++r) {
          Shape shape{dim, 1, 1, 0, bands, shared, 0.05f, r % 2 == 0 ? 0.0f : 0.25f};
          shape.inputs = 1 + static_cast<int32_t>(random.below(70));
          shape.outputs = 1 + static_cast<int32_t>(random.below(130));
          shape.positives = static_cast<int32_t>(random.below(static_cast<uint32_t>(shape.outputs) + 1));
          shapes.push_back(shape);
        }
  // The corners: one pair; only positives; only negatives; whole tiles; one more and one less.
  for (int32_t dim : {1, 16, 200})
    for (int32_t size : {1, 15, 16, 17, 31, 32, 33, 64})
      for (int32_t positives : {0, size / 2, size})
        shapes.push_back({dim, size, size, positives, Bands::kSliding, true, 0.05f, positives > 0 ? 0.1f : 0.0f});
  return shapes;
}

bool is_exact(const std::string& kind) { return kind == "reference" || kind == "simd"; }

// bf16 keeps 8 bits of each operand and of each coefficient; in a sum over few values the errors do not even out.
double tolerance(const std::string& kind, int32_t dim) { return is_exact(kind) ? 1e-5 : dim < 16 ? 2e-2 : 1e-2; }

void expect_step_matches(PairKernel& kernel, double error_max, double loss_error_max, Block& block,
                         const Shape& shape) {
  const Expected expected(block.view());
  const PairBlockResult result = kernel.step(block.view());
  ASSERT_TRUE(result.finite) << shape;
  EXPECT_NEAR(result.loss, expected.loss, loss_error_max * expected.loss) << shape;
  EXPECT_LT(worst_error(expected.dx, expected.dx_size, block.dx), error_max) << shape;
  EXPECT_LT(worst_error(expected.dy, expected.dy_size, block.dy), error_max) << shape;
  EXPECT_TRUE(padding_is_zero(block.dx, shape.dim)) << shape;
  EXPECT_TRUE(padding_is_zero(block.dy, shape.dim)) << shape;
}

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

class EveryPairKernel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<PairKernel>> made = make_pair_kernel(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    kernel_ = std::move(made).value();
  }
  std::unique_ptr<PairKernel> fresh() const { return std::move(make_pair_kernel(GetParam())).value(); }

  std::unique_ptr<PairKernel> kernel_;
};

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
                             Shape{50, 26, 58, 16, Bands::kSliding, false}, Shape{513, 33, 61, 61, Bands::kSliding}}) {
    Block block(shape, 5), other(shape, 5);
    const PairBlockResult result = kernel_->step(block.view()), wanted = reference->step(other.view());
    EXPECT_NEAR(result.loss, wanted.loss, (is_exact(GetParam()) ? 1e-5 : 1e-3) * wanted.loss) << shape;
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

// One value of x or y, by side, row and place.
struct Place {
  bool in_x;
  int32_t row, value;
};

std::vector<Place> places(const Shape& shape) {
  std::vector<Place> all;
  for (int32_t value : {0, shape.dim / 2, shape.dim - 1}) {
    for (int32_t j : {0, shape.inputs / 2, shape.inputs - 1}) all.push_back({true, j, value});
    for (int32_t i : {0, shape.positives - 1, shape.positives, shape.outputs - 1})
      if (i >= 0 && i < shape.outputs) all.push_back({false, i, value});
  }
  return all;
}

void expect_refusal(PairKernel& kernel, const Shape& shape, float bad) {
  Block block(shape, 17);
  for (const Place& place : places(shape)) {
    float& value = (place.in_x ? block.x : block.y)[place.row][place.value];
    const float good = std::exchange(value, bad);
    const auto x = block.x.values(), y = block.y.values();
    EXPECT_FALSE(kernel.step(block.in_place()).finite)
        << bad << " in " << (place.in_x ? "x " : "y ") << place.row << " at " << place.value << "; " << shape;
    EXPECT_TRUE(same_bits(x, block.x.values())) << shape;
    EXPECT_TRUE(same_bits(y, block.y.values())) << shape;
    value = good;
  }
  EXPECT_TRUE(kernel.step(block.in_place()).finite) << shape << ": the block after a refused one";
}

const std::vector<Shape>& shapes_to_refuse() {
  static const std::vector<Shape> shapes{
      {200, 32, 72, 22, Bands::kSliding, true}, {17, 9, 13, 5, Bands::kFull, false},
      {3, 1, 1, 1, Bands::kFull, false},        {50, 70, 33, 0, Bands::kFull, true},
      {100, 40, 40, 40, Bands::kSliding, true}, {16, 20, 45, 30, Bands::kEmpty, false}};
  return shapes;
}

TEST_P(EveryPairKernel, NanOrInfAnywhereIsRefusedAndChangesNothing) {
  for (const Shape& shape : shapes_to_refuse())
    for (float bad : {kNan, kInf, -kInf}) expect_refusal(*kernel_, shape, bad);
}

// No negatives, and between the bands inputs that nobody looks at: NaN there may be found or not, but goes nowhere.
void expect_lonely_nan_stays_alone(PairKernel& kernel) {
  const Shape shape{20, 40, 11, 11, Bands::kEmpty, false};
  for (int32_t bad = 0; bad < shape.inputs; ++bad) {
    Block block(shape, 23);
    for (int32_t i = 0; i < shape.outputs; ++i) {
      block.band_begin[i] = 3 * i;
      block.band_end[i] = 3 * i + 2;
      std::fill_n(block.weights[i] + 3 * i, 2, 1.0f);
    }
    block.x[bad][7] = kNan;
    const auto y = block.y.values();
    const bool lonely = bad % 3 == 2 || bad >= 3 * shape.outputs;
    if (kernel.step(block.in_place()).finite) {
      EXPECT_TRUE(lonely) << "input " << bad;
      for (const float* row : block.y.pointers) ASSERT_TRUE(std::isfinite(row[7])) << "input " << bad;
    } else {
      EXPECT_TRUE(same_bits(y, block.y.values()));
    }
  }
}

TEST_P(EveryPairKernel, NanWithoutAnyPartnerSpoilsNoOtherRow) { expect_lonely_nan_stays_alone(*kernel_); }

TEST_P(EveryPairKernel, AProductThatOverflowsIsRefusedOrStaysFinite) {
  const Shape shape{20, 5, 7, 3, Bands::kFull};
  Block block(shape, 19);
  std::fill_n(block.x[2], shape.dim, 1e25f);
  std::fill_n(block.y[4], shape.dim, 1e25f);
  const auto x = block.x.values(), y = block.y.values();
  const PairBlockResult result = kernel_->step(block.in_place());
  if (result.finite) {
    for (const Rows* rows : {&block.x, &block.y})
      for (const float* row : rows->pointers) EXPECT_TRUE(std::all_of(row, row + shape.dim, [](float value) {
          return std::isfinite(value);
        }));
  } else {
    EXPECT_TRUE(same_bits(x, block.x.values()));
    EXPECT_TRUE(same_bits(y, block.y.values()));
  }
  EXPECT_EQ(result.finite, GetParam() == "reference") << "1e50 is past a float and within a double";
}

// dim 1, x = 1 and y of at most 8 bits, exact in bf16: every product is a y_i without rounding.
Block block_of_products(float low, float high, int32_t positives) {
  Block block({1, 40, 30, positives, Bands::kFull, false, 1}, 29);
  Random random(31);
  const float unit = std::exp2(std::ceil(std::log2(std::max(std::abs(low), std::abs(high)))) - 8);
  for (float* row : block.x.pointers) row[0] = 1;
  for (float* row : block.y.pointers) row[0] = std::round(between(random, low, high) / unit) * unit;
  return block;
}

TEST_P(EveryPairKernel, LossIsExactForProductsOfEverySize) {
  for (float size : {0.125f, 0.5f, 1.0f, 2.0f, 4.0f, 8.0f, 12.0f}) {
    Block block = block_of_products(-size, size, 15);
    const double wanted = plain_loss(block.view());
    EXPECT_NEAR(kernel_->step(block.view()).loss, wanted, 1e-5 * wanted) << size;
  }
}

TEST_P(EveryPairKernel, LossOfSaturatedProductsIsTheProductOrNothing) {
  for (int32_t positives : {0, 15, 30})
    for (float size : {30.0f, 80.0f, 88.0f, 100.0f, 1000.0f}) {
      Block mixed = block_of_products(-size, size, positives);
      EXPECT_NEAR(kernel_->step(mixed.view()).loss / plain_loss(mixed.view()), 1, 1e-4) << size;
      const float sure = positives == 30 ? size : -size;
      Block certain = block_of_products(sure, sure, positives);
      for (int32_t i = 0; i < positives; ++i) certain.y[i][0] = size;
      const PairBlockResult result = kernel_->step(certain.view());
      EXPECT_NEAR(result.loss, 0, 1e-9) << size;
      for (const float* row : certain.dx.pointers) EXPECT_NEAR(row[0], 0, 1e-7 * size);
    }
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

// Runs `test` once for each Highway target that was compiled and that this CPU has, the baseline included.
void for_each_target(const std::function<void(PairKernel&)>& test) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    const auto kernel = make_simd_pair_kernel();
    EXPECT_EQ(kernel->name(), std::string("simd ") + hwy::TargetName(target));
    test(*kernel);
    hwy::SetSupportedTargetsForTest(0);
  }
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

TEST(SimdPairKernel, EveryTargetRefusesNanAndInf) {
  for_each_target([](PairKernel& kernel) {
    for (const Shape& shape : shapes_to_refuse())
      for (float bad : {kNan, kInf, -kInf}) expect_refusal(kernel, shape, bad);
    expect_lonely_nan_stays_alone(kernel);
  });
}

TEST(SimdPairKernel, NameTellsATargetThatWasCompiled) {
  EXPECT_EQ(make_simd_pair_kernel()->name(),
            std::string("simd ") + hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()));
}

TEST(MakePairKernel, AutoIsTheLastThatIsAvailable) {
  const std::vector<std::string> kinds = pair_kernels_available();
  ASSERT_GE(kinds.size(), 2);
  EXPECT_THAT(kinds, ::testing::IsSupersetOf({"reference", "simd"}));
  for (const std::string& kind : kinds) EXPECT_TRUE(make_pair_kernel(kind).ok()) << kind;
  const auto chosen = make_pair_kernel("auto");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value()->name(), make_pair_kernel(kinds.back()).value()->name());
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
