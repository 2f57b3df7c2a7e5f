// Random pair blocks, the formula in double precision and how far a kernel is from it, for the tests of the kernels.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec::testing {

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
  bool paces = false;   // rows have paces of 1 to 8
  bool maxima = false;  // and longest steps of their own, a tenth of step_max to all of it
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "dim " << shape.dim << ", " << shape.inputs << " inputs, " << shape.outputs << " outputs, "
             << shape.positives << " positives, bands " << static_cast<int>(shape.bands)
             << (shape.shared_weights ? ", shared weights" : "") << ", step_max " << shape.step_max
             << (shape.paces ? ", paces" : "") << (shape.maxima ? ", maxima" : "");
}

inline float between(Random& random, float low, float high) {
  return low + (high - low) * random.uniform();
}

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
    for (int32_t i = 0; i < shape.outputs; ++i) output_pace_.push_back(between(random, 1, 8));
    for (int32_t j = 0; j < shape.inputs; ++j) input_pace_.push_back(between(random, 1, 8));
    for (int32_t i = 0; i < shape.outputs; ++i) output_max_.push_back(shape.step_max * between(random, 0.1f, 1));
    for (int32_t j = 0; j < shape.inputs; ++j) input_max_.push_back(shape.step_max * between(random, 0.1f, 1));
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
    block.input_pace = shape_.paces ? input_pace_.data() : nullptr;
    block.output_pace = shape_.paces ? output_pace_.data() : nullptr;
    block.input_max = shape_.maxima ? input_max_.data() : nullptr;
    block.output_max = shape_.maxima ? output_max_.data() : nullptr;
    block.upcoming = y_pointers_.data();
    block.upcoming_count = shape_.outputs;
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
      const int32_t reach = std::max(5, shape_.inputs / shape_.positives + 1);  // no gaps between bands
      const int32_t begin = std::max(0, centre - reach), end = std::min(shape_.inputs, centre + reach + 1);
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
  std::vector<float> input_pace_, output_pace_, input_max_, output_max_;
};

inline double softplus(double z) {
  return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}

inline double product(const PairBlock& block, int32_t i, int32_t j) {
  double sum = 0;
  for (int32_t d = 0; d < block.dim; ++d) sum += static_cast<double>(block.y[i][d]) * block.x[j][d];
  return sum;
}

inline double plain_loss(const PairBlock& block) {
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
    finish(dx_reach, block.step_max, block.input_max, block.input_pace, dx, dx_size);
    finish(dy_reach, block.step_max, block.output_max, block.output_pace, dy, dy_size);
  }

  static void add(double c, const float* row, int32_t dim, std::vector<double>& sum, double& square) {
    for (int32_t d = 0; d < dim; ++d) {
      sum[d] += c * row[d];
      square += c * row[d] * c * row[d];
    }
  }

  // A step is as long as the row's pace says; one whose coefficients reach further than step_max, or the row's own, is
  // shortened to it.
  static void finish(const std::vector<double>& reach, double step_max, const float* maxima, const float* paces,
                     Table& sums, std::vector<double>& sizes) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const double pace = paces != nullptr ? paces[i] : 1;
      const double most = maxima != nullptr ? maxima[i] : step_max;
      const double length = most > 0 && pace * reach[i] > most ? most / reach[i] : pace;
      for (double& value : sums[i]) value *= length;
      sizes[i] = length * std::sqrt(sizes[i]);
    }
  }

  double loss = 0;
  Table dx, dy;
  std::vector<double> dx_size, dy_size;
};

// The largest error of a row, as a share of the size of its terms. A row without any term must be exactly as it was.
inline double worst_error(const Expected::Table& expected, const std::vector<double>& sizes, const Rows& rows) {
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

inline bool padding_is_zero(const Rows& rows, int32_t dim) {
  return std::all_of(rows.pointers.begin(), rows.pointers.end(), [&](const float* row) {
    return std::all_of(row + dim, row + rows.stride, [](float value) { return std::bit_cast<uint32_t>(value) == 0; });
  });
}

inline bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](float first, float second) {
      return std::bit_cast<uint32_t>(first) == std::bit_cast<uint32_t>(second);
    });
  });
}

// Every dim of interest with each kind of band and weights, and random numbers of rows.
inline std::vector<Shape> many_shapes(int repetitions) {
  std::vector<Shape> shapes;
  Random random(7);
  for (int32_t dim : {1, 3, 16, 17, 50, 100, 200, 300, 513})
    for (Bands bands : {Bands::kEmpty, Bands::kFull, Bands::kSliding})
      for (bool shared : {false, true})
        for (int r = 0; r < repetitions; ++r) {
          Shape shape{dim, 1, 1, 0, bands, shared, 0.05f, r % 2 == 0 ? 0.0f : 0.25f, random.below(2) == 0};
          shape.maxima = shape.step_max > 0 && random.below(2) == 0;
          shape.inputs = 1 + static_cast<int32_t>(random.below(70));
          shape.outputs = 1 + static_cast<int32_t>(random.below(130));
          shape.positives = static_cast<int32_t>(random.below(static_cast<uint32_t>(shape.outputs) + 1));
          shapes.push_back(shape);
        }
  // The corners: one pair; only positives; only negatives; whole tiles; one more and one less.
  for (int32_t dim : {1, 16, 200})
    for (int32_t size : {1, 15, 16, 17, 31, 32, 33, 64})
      for (int32_t positives : {0, size / 2, size})
        shapes.push_back(
            {dim, size, size, positives, Bands::kSliding, true, 0.05f, positives > 0 ? 0.1f : 0.0f, size % 3 == 0});
  return shapes;
}

inline bool is_exact(const std::string& kind) {
  return kind == "reference" || kind == "simd";
}

// bf16 keeps 8 bits of each operand and of each coefficient; in a sum over few values the errors do not even out.
inline double tolerance(const std::string& kind, int32_t dim) {
  return is_exact(kind) ? 1e-5 : dim < 16 ? 2e-2 : 1e-2;
}

inline void expect_step_matches(PairKernel& kernel, double error_max, double loss_error_max, Block& block,
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

// Skips what this machine cannot run.
class PairKernelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<PairKernel>> made = make_pair_kernel(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    kernel_ = std::move(made).value();
  }
  std::unique_ptr<PairKernel> fresh() const { return std::move(make_pair_kernel(GetParam())).value(); }

  std::unique_ptr<PairKernel> kernel_;
};

// Runs `test` once for each Highway target that was compiled and that this CPU has, the baseline included.
inline void for_each_target(const std::function<void(PairKernel&)>& test) {
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

}  // namespace streamvec::testing
