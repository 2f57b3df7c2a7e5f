#include "streamvec/cuda/pair_adam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/card_testing.h"
#include "streamvec/cuda/draws.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec::cuda {
namespace {

constexpr int64_t kRows = 40;

std::vector<float> drawn_values(int64_t dim) {
  std::vector<float> values(static_cast<size_t>(2 * kRows * dim));
  Random random(1);
  for (float& value : values) value = (random.uniform() - 0.5f) / std::sqrt(static_cast<float>(dim)) * 4;
  return values;
}

std::vector<WordPair> drawn_pairs(size_t count) {
  std::vector<WordPair> pairs(count);
  Random random(2);
  for (WordPair& pair : pairs) pair = {static_cast<Slot>(random.below(kRows)), static_cast<Slot>(random.below(kRows))};
  return pairs;
}

AliasTable drawn_negatives() {
  std::vector<double> weights(kRows);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 1 / (1.0 + static_cast<double>(i));
  return AliasTable(weights);
}

Slot negative_of(const AliasTable& table, uint64_t draw, uint64_t pair, uint64_t k) {
  const uint64_t bits = negative_draw(draw, pair, k);
  const uint64_t column = ((bits >> 32) * table.columns().size()) >> 32;
  const AliasTable::Column drawn = table.columns()[column];
  return static_cast<uint32_t>(bits) < drawn.own ? static_cast<Slot>(column) : drawn.other;
}

// In plain words, in double precision but for the values.
double reference_epoch(const PairAdamOptions& options, const std::vector<WordPair>& pairs, const AliasTable& negatives,
                       size_t batch, uint64_t draw, std::vector<float>& values) {
  const auto dim = static_cast<size_t>(options.dim);
  std::vector<double> mean(values.size()), variance(values.size());
  double loss = 0;
  int64_t step = 0;
  for (size_t first = 0; first < pairs.size(); first += batch) {
    std::vector<double> slopes(values.size());
    for (size_t i = first; i < std::min(first + batch, pairs.size()); ++i)
      for (int32_t k = 0; k <= options.negatives; ++k) {
        const Slot word = k == 0 ? pairs[i].context : negative_of(negatives, draw, i, static_cast<uint64_t>(k - 1));
        const size_t a = static_cast<size_t>(pairs[i].centre) * dim, b = static_cast<size_t>(kRows + word) * dim;
        double product = 0;
        for (size_t d = 0; d < dim; ++d) product += double{values[a + d]} * values[b + d];
        const double slope = (k == 0 ? 1 : 0) - 1 / (1 + std::exp(-product));
        loss += std::log1p(std::exp(k == 0 ? -product : product));
        for (size_t d = 0; d < dim; ++d) {
          slopes[a + d] += slope * values[b + d];
          slopes[b + d] += slope * values[a + d];
        }
      }
    ++step;
    for (size_t i = 0; i < values.size(); ++i) {
      mean[i] = 0.9 * mean[i] + 0.1 * slopes[i];
      variance[i] = 0.999 * variance[i] + 0.001 * slopes[i] * slopes[i];
      const double root = std::sqrt(variance[i] / (1 - std::pow(0.999, step))) + 1e-8;
      values[i] += static_cast<float>(options.lr * mean[i] / (1 - std::pow(0.9, step)) / root);
    }
  }
  return loss;
}

class PairAdamOnCard : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { STREAMVEC_SKIP_WITHOUT_CARD(); }
};

TEST_P(PairAdamOnCard, StepsAsThePlainProgramDoes) {
  const PairAdamOptions options{.rows = kRows, .dim = GetParam(), .negatives = 10, .lr = 1e-2f};
  const std::vector<float> before = drawn_values(options.dim);
  const std::vector<WordPair> pairs = drawn_pairs(300);
  const AliasTable negatives = drawn_negatives();
  std::vector<float> expected = before, values = before;
  const double expected_loss = reference_epoch(options, pairs, negatives, 128, 7, expected);

  const auto card = make_pair_adam(options).value();
  ASSERT_TRUE(card->put(before).ok());
  ASSERT_TRUE(card->set_pairs(pairs).ok());
  ASSERT_TRUE(card->set_negatives(negatives).ok());
  const double loss = card->run_epoch(128, 7).value();
  ASSERT_TRUE(card->get(values).ok());

  EXPECT_NEAR(loss / expected_loss, 1, 1e-5);
  double difference = 0, moved = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += std::pow(double{values[i]} - expected[i], 2);
    moved += std::pow(double{expected[i]} - before[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / moved), 1e-3);
}
INSTANTIATE_TEST_SUITE_P(Dims, PairAdamOnCard, ::testing::Values(3, 50, 200, 500));

}  // namespace
}  // namespace streamvec::cuda
