#include "streamvec/kernel/bf16_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {
namespace {

uint16_t to_bf16(float value) {  // to the nearest, ties to even; no NaN here
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

// rows x columns values that bf16 holds exactly, in double for the plain loops.
struct Operand {
  Operand(int32_t row_count, int32_t column_count) : rows(row_count), columns(column_count) {
    values.resize(static_cast<size_t>(rows) * static_cast<size_t>(columns));
  }
  double& at(int32_t i, int32_t j) { return values[static_cast<size_t>(i) * columns + j]; }
  double at(int32_t i, int32_t j) const { return values[static_cast<size_t>(i) * columns + j]; }

  int32_t rows, columns;
  std::vector<double> values;
};

double draw(Random& random) {
  return from_bf16(to_bf16(random.uniform() * 2 - 1));
}

Bf16Pair pair_of(double first, double second) {
  return uint32_t{to_bf16(static_cast<float>(second))} << 16 | to_bf16(static_cast<float>(first));
}

// a: neighbouring depth values in one word. REQUIRES: an even number of columns.
Bf16Pair* pack_a(const Operand& a, AlignedBuffer<Bf16Pair>& memory) {
  Bf16Pair* out = memory.reserve(a.values.size() / 2);
  for (size_t k = 0; k < a.values.size() / 2; ++k) out[k] = pair_of(a.values[2 * k], a.values[2 * k + 1]);
  return out;
}

// b: the values of two neighbouring rows in one word. REQUIRES: an even number of rows.
Bf16Pair* pack_b(const Operand& b, AlignedBuffer<Bf16Pair>& memory) {
  Bf16Pair* out = memory.reserve(b.values.size() / 2);
  for (int32_t k = 0; k < b.rows / 2; ++k)
    for (int32_t j = 0; j < b.columns; ++j)
      out[static_cast<size_t>(k) * b.columns + j] = pair_of(b.at(2 * k, j), b.at(2 * k + 1, j));
  return out;
}

double plain_product(const Operand& a, const Operand& b, int32_t i, int32_t j) {
  double sum = 0;
  for (int32_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(k, j);
  return sum;
}

class Bf16GemmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX-512 BF16 instructions";
    gemm_ = &bf16_gemm_avx512();
  }

  const Bf16Gemm* gemm_ = nullptr;
};

TEST_F(Bf16GemmTest, ProductsEqualThePlainLoops) {
  Random random(1);
  for (int32_t rows : {16, 32, 48, 80, 128})
    for (int32_t columns : {16, 32, 48, 64, 96})
      for (int32_t depth : {32, 64, 224, 320}) {
        Operand a(rows, depth), b(depth, columns);
        for (Operand* operand : {&a, &b})
          for (double& value : operand->values) value = draw(random);
        AlignedBuffer<Bf16Pair> a_memory, b_memory;
        AlignedBuffer<float> c_memory;
        float* c = c_memory.reserve(static_cast<size_t>(rows) * columns);
        std::fill_n(c, static_cast<size_t>(rows) * columns, 1e9f);  // whatever was there goes
        PairBlock block;
        block.inputs = columns;
        block.outputs = rows;
        block.dim = depth;
        gemm_->products(block, pack_a(a, a_memory), pack_b(b, b_memory), columns, depth, c);
        for (int32_t i = 0; i < rows; ++i)
          for (int32_t j = 0; j < columns; ++j)
            ASSERT_NEAR(c[static_cast<size_t>(i) * columns + j], plain_product(a, b, i, j), 2e-5)
                << rows << " x " << columns << " x " << depth << " at " << i << ", " << j;
      }
}

TEST_F(Bf16GemmTest, ProductsOfPositivesAreTakenAtLeastWhereTheirBandsAre) {
  Random random(9);
  const int32_t columns = 48, depth = 64;
  for (int32_t width : {0, 1, 11, 16, 17, 40}) {
    std::vector<int32_t> begin, end;
    for (int32_t i = 0; i < 21; ++i) {
      begin.push_back(std::min(2 * i, columns - width));
      end.push_back(begin.back() + width);
    }
    Operand a(32, depth), b(depth, columns);
    for (Operand* operand : {&a, &b})
      for (double& value : operand->values) value = draw(random);
    PairBlock block;
    block.inputs = columns;
    block.positives = 21;
    block.outputs = 32;
    block.dim = depth;
    block.band_begin = begin.data();
    block.band_end = end.data();
    AlignedBuffer<Bf16Pair> a_memory, b_memory;
    AlignedBuffer<float> c_memory;
    float* c = c_memory.reserve(32 * columns);
    std::fill_n(c, 32 * columns, 1e9f);
    gemm_->products(block, pack_a(a, a_memory), pack_b(b, b_memory), columns, depth, c);
    for (int32_t i = 0; i < block.outputs; ++i)
      for (int32_t j = 0; j < columns; ++j) {
        const float value = c[i * columns + j];
        const Range visited = i < block.positives ? visited_inputs(block, i) : Range{0, columns};
        if ((j < visited.begin || j >= visited.end) && value == 0) continue;
        ASSERT_NEAR(value, plain_product(a, b, i, j), 2e-5) << "bands of " << width << " at " << i << ", " << j;
      }
  }
}

// One call of multiply_add on random operands, a zero outside `near`.
struct AddCase {
  AddCase(int32_t rows, int32_t dim, int32_t depth, uint64_t seed)
      : a(round_up(rows, 16), depth), b(depth, round_up(dim, 32)), memory(static_cast<size_t>(rows)), dim_(dim) {
    Random random(seed);
    for (int32_t i = 0; i < rows; i += 4) near.push_back(draw_ranges(random, depth));
    for (int32_t i = 0; i < rows; ++i) cut.push_back(i % 3 == 0 ? 1.0f : random.uniform());
    for (int32_t i = 0; i < rows; ++i)
      for (const Range& range : near[static_cast<size_t>(i / 4)])
        for (int32_t k = range.begin; k < range.end; ++k) a.at(i, k) = draw(random);
    for (int32_t k = 0; k < depth; ++k)
      for (int32_t j = 0; j < dim; ++j) b.at(k, j) = draw(random);
    for (AlignedBuffer<float>& row : memory) {
      out.push_back(row.reserve(static_cast<size_t>(round_up(dim, 16))));
      for (int32_t j = 0; j < dim; ++j) out.back()[j] = random.uniform();
    }
  }

  // A run of partners and, after it or right at its end, all from some point on; either may be empty.
  static RangePair draw_ranges(Random& random, int32_t depth) {
    const auto below = [&](int32_t bound) { return static_cast<int32_t>(random.below(static_cast<uint32_t>(bound))); };
    const int32_t split = below(depth + 1), begin = below(split + 1), end = begin + below(split - begin + 1);
    return {Range{begin, end}, Range{split, random.below(3) == 0 ? split : depth}};
  }

  void run(const Bf16Gemm& gemm) {
    AlignedBuffer<Bf16Pair> a_memory, b_memory;
    RowPrefetch prefetch{PairBlock{}};
    gemm.multiply_add(pack_a(a, a_memory), pack_b(b, b_memory), static_cast<int32_t>(out.size()), dim_, b.columns,
                      a.columns, near.data(), cut.data(), prefetch, out.data());
  }
  double wanted(int32_t i, int32_t j) const { return cut[i] * plain_product(a, b, i, j); }

  Operand a, b;
  std::vector<RangePair> near;
  std::vector<float> cut;
  std::vector<AlignedBuffer<float>> memory;
  std::vector<float*> out;

 private:
  int32_t dim_;
};

TEST_F(Bf16GemmTest, MultiplyAddEqualsThePlainLoopsAndKeepsThePaddingZero) {
  uint64_t seed = 2;
  for (int32_t rows : {1, 3, 4, 5, 16, 17, 31, 70})
    for (int32_t dim : {1, 15, 16, 17, 50, 64, 100, 200, 300})
      for (int32_t depth : {32, 64, 160}) {
        AddCase test(rows, dim, depth, ++seed);
        std::vector<std::vector<float>> before;
        for (const float* row : test.out) before.emplace_back(row, row + dim);
        test.run(*gemm_);
        for (int32_t i = 0; i < rows; ++i) {
          for (int32_t j = 0; j < dim; ++j)
            ASSERT_NEAR(test.out[i][j], before[i][j] + test.wanted(i, j), 2e-5)
                << rows << " x " << dim << " x " << depth << " at " << i << ", " << j;
          for (int32_t j = dim; j < round_up(dim, 16); ++j) ASSERT_EQ(test.out[i][j], 0);
        }
      }
}

TEST_F(Bf16GemmTest, MultiplyAddSumsARowThatIsNamedTwice) {
  AddCase test(12, 50, 32, 77);
  test.out[2] = test.out[1];   // in one tile
  test.out[11] = test.out[0];  // in another
  const std::vector<float> first(test.out[0], test.out[0] + 50), second(test.out[1], test.out[1] + 50);
  test.run(*gemm_);
  for (int32_t j = 0; j < 50; ++j) {
    EXPECT_NEAR(test.out[0][j], first[j] + test.wanted(0, j) + test.wanted(11, j), 2e-5);
    EXPECT_NEAR(test.out[1][j], second[j] + test.wanted(1, j) + test.wanted(2, j), 2e-5);
  }
}

}  // namespace
}  // namespace streamvec
