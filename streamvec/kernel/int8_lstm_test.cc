#include "streamvec/kernel/int8_lstm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

float of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits >> 15 ? -size : size;
}

float of_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}

// A level with weights and states that 8 bits hold exactly, so that only cells and what is written are rounded.
struct Level {
  Level(int32_t hidden_size, int32_t parent_count, uint64_t seed) : hidden(hidden_size), parents(parent_count) {
    Random random(seed);
    const auto whole = [&] { return static_cast<int>(random.below(255)) - 127; };
    for (int32_t i = 0; i < hidden * 4 * hidden; ++i) recurrent.push_back(static_cast<float>(whole()) / 1000);
    for (int32_t j = 0; j < 4 * hidden; ++j) recurrent[static_cast<size_t>(j)] = j % 7 == 0 ? -0.127f : 0.127f;
    for (int32_t i = 0; i < parents * hidden; ++i) {
      h.push_back(static_cast<int8_t>(whole()));
      c.push_back(static_cast<float>(whole()) / 64);
    }
    for (int32_t i = 0; i < kCharacters * 4 * hidden; ++i) input.push_back(4 * random.uniform() - 2);
    for (int32_t parent = 0; parent < parents; ++parent) {
      for (uint32_t left = random.below(3); left > 0; --left) add_node(parent, random, inner_parents, inner_characters);
      for (uint32_t left = random.below(4); left > 0; --left) add_node(parent, random, leaf_parents, leaf_characters);
    }
  }

  static void add_node(int32_t parent, Random& random, std::vector<int32_t>& of_parents,
                       std::vector<int32_t>& of_characters) {
    of_parents.push_back(kFirstParent + parent);
    of_characters.push_back(static_cast<int32_t>(random.below(kCharacters)));
  }

  struct State {
    double c, h;
  };
  State wanted(int32_t parent, int32_t character, int32_t unit) const {
    double z[4];
    for (int32_t gate = 0; gate < 4; ++gate) {
      z[gate] = input[static_cast<size_t>((character * 4 + gate) * hidden + unit)];
      for (int32_t k = 0; k < hidden; ++k)
        z[gate] += h[static_cast<size_t>(parent * hidden + k)] / 127.0 *
                   recurrent[static_cast<size_t>((k * 4 + gate) * hidden + unit)];
    }
    const double now = sigma(z[1]) * c[static_cast<size_t>(parent * hidden + unit)] + sigma(z[0]) * std::tanh(z[2]);
    return {now, sigma(z[3]) * std::tanh(now)};
  }

  static constexpr int32_t kCharacters = 5, kFirstParent = 3;
  int32_t hidden, parents;
  std::vector<float> recurrent, c, input;
  std::vector<int8_t> h;
  std::vector<int32_t> inner_parents, inner_characters, leaf_parents, leaf_characters;
};

uint16_t to_f16(float value) {  // of what f16 holds exactly, and is not below its normal numbers
  if (value == 0) return 0;
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10)));
}

void compare_level(const Level& level) {
  SCOPED_TRACE(::testing::Message() << "hidden " << level.hidden << ", " << level.parents << " parents");
  const int32_t hidden = level.hidden;
  Int8LstmWeights weights;
  weights.pack({level.recurrent.data(), hidden, 4 * hidden, 4 * hidden});
  AlignedBuffer<float> table;
  table.reserve(level.input.size());
  for (int32_t i = 0; i < Level::kCharacters; ++i)
    order_int8_lstm_input(level.input.data() + i * 4 * hidden, hidden, table.data() + i * 4 * hidden);
  Int8LstmStates before, after;
  before.reserve(level.parents, hidden);
  before.set_zero();
  for (int32_t row = 0; row < level.parents; ++row)
    for (int32_t k = 0; k < hidden; ++k) {
      before.h(k / 64 * 64)[row * 64 + k % 64] = level.h[static_cast<size_t>(row * hidden + k)];
      before.c(k / 16 * 16)[row * 16 + k % 16] = to_f16(2 * level.c[static_cast<size_t>(row * hidden + k)]);
    }
  const auto inner = static_cast<int32_t>(level.inner_parents.size()),
             leaves = static_cast<int32_t>(level.leaf_parents.size());
  after.reserve(inner, hidden);
  std::vector<int32_t> inner_ends;
  for (int32_t i = 0; i < inner; ++i) inner_ends.push_back(i % 2 == 0 ? i / 2 : inner + leaves);
  LeftBuffer ends;
  ends.reserve(LeftForm::kBf16, inner + leaves + 1, hidden);
  step_int8_lstm(weights, {.inner = {level.inner_parents, level.inner_characters},
                           .leaves = {level.leaf_parents, level.leaf_characters},
                           .first_parent = Level::kFirstParent,
                           .parents = level.parents,
                           .input = {table.data(), Level::kCharacters, 4 * hidden, 4 * hidden},
                           .before = &before,
                           .after = &after,
                           .ends = ends.rows(),
                           .inner_ends = inner_ends,
                           .first_leaf_end = inner});
  const auto end = [&](int32_t row, int32_t unit) { return of_bf16(ends.rows().row<uint16_t>(row)[unit]) / 2; };
  for (int32_t k = 0; k < hidden; ++k) {
    for (int32_t i = 0; i < inner; ++i) {
      const Level::State wanted = level.wanted(level.inner_parents[static_cast<size_t>(i)] - Level::kFirstParent,
                                               level.inner_characters[static_cast<size_t>(i)], k);
      ASSERT_NEAR(of_f16(after.c(k / 16 * 16)[i * 16 + k % 16]) / 2, wanted.c, 2e-3) << "inner " << i << " unit " << k;
      ASSERT_NEAR(after.h(k / 64 * 64)[i * 64 + k % 64], 127 * wanted.h, 0.53) << "inner " << i << " unit " << k;
      if (i % 2 == 0) {
        ASSERT_NEAR(end(i / 2, k), wanted.h, 3e-3) << "inner " << i << " unit " << k;
      }
    }
    for (int32_t i = 0; i < leaves; ++i) {
      const Level::State wanted = level.wanted(level.leaf_parents[static_cast<size_t>(i)] - Level::kFirstParent,
                                               level.leaf_characters[static_cast<size_t>(i)], k);
      ASSERT_NEAR(end(inner + i, k), wanted.h, 3e-3) << "leaf " << i << " unit " << k;
    }
  }
}

TEST(Int8Lstm, StepsAreThoseOfTheFormulas) {
  if (!cpu_has_amx_int8()) GTEST_SKIP() << "needs AMX with whole numbers of 8 bits";
  for (const int32_t hidden : {16, 64, 80})
    for (const int32_t parents : {1, 16, 17, 50}) compare_level(Level(hidden, parents, 1));
}

TEST(Int8Lstm, AColumnOfZerosContributesNothing) {
  if (!cpu_has_amx_int8()) GTEST_SKIP() << "needs AMX with whole numbers of 8 bits";
  Level level(32, 5, 2);
  for (size_t i = 0; i < level.recurrent.size(); ++i)
    if (i % 128 == 9) level.recurrent[i] = 0;
  compare_level(level);
}

}  // namespace
}  // namespace streamvec
