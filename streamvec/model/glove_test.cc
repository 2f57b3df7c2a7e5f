#include "streamvec/model/glove.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "streamvec/model/model.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::cosine;
using testing::draw_slot;

constexpr int32_t kGloveWords = 600, kTopics = 6;  // more words than a tile has slots
constexpr int64_t kGloveDim = 20;
constexpr float kGloveRate = 0.05f;

// Sentences of one topic each with a fifth of strangers, frequent words more often: GloVe learns from ratios of counts,
// and nothing from pairs that never meet.
Chunk topical_chunk(uint64_t seed, int32_t sentences = 1'500) {
  Random random(seed);
  Chunk chunk;
  for (int32_t i = 0; i < sentences; ++i) {
    const Slot topic = draw_slot(random, 0, kTopics);
    for (int k = 0; k < 12; ++k) {
      const float u = random.uniform();
      const Slot own = random.below(5) > 0 ? topic : draw_slot(random, 0, kTopics);
      chunk.slots.push_back(own + kTopics * static_cast<Slot>(u * u * u * (kGloveWords / kTopics)));
    }
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  return chunk;
}

Parameters parameters_of(int64_t rows = kGloveWords, uint64_t seed = 1) {
  Parameters::Options options;
  options.rows = rows;
  options.rows_max = rows;
  options.dim = kGloveDim;
  options.seed = seed;
  options.glove = true;
  return Parameters::make(options).value();
}

CellStore store_of(const Chunk& chunk) {
  std::vector<CellCounter> counters;
  counters.emplace_back(CellCounter::Options{5, 1 << 26, ::testing::TempDir()});
  EXPECT_TRUE(counters[0].add(chunk).ok());
  return CellStore::merge(std::move(counters), 1 << 26, ::testing::TempDir()).value();
}

// All cells of the matrix, both ways round.
std::vector<CellTable::Drawn> cells_of(const CellStore& store) {
  std::vector<CellTable::Drawn> all;
  CellStore::Cells cells;
  for (const CellStore::Tile& tile : store.tiles()) {
    EXPECT_TRUE(store.read(tile, cells).ok());
    for (size_t i = 0; i < cells.places.size(); ++i) {
      const Slot low = tile.first_low + (cells.places[i] >> 8), high = tile.first_high + (cells.places[i] & 255);
      all.push_back({low, high, cells.x[i]});
      if (low != high) all.push_back({high, low, cells.x[i]});
    }
  }
  return all;
}

void shuffle(std::vector<CellTable::Drawn>& cells, Random& random) {
  for (size_t i = cells.size(); i > 1; --i) std::swap(cells[i - 1], cells[random.below(static_cast<uint32_t>(i))]);
}

// GloVe by its definition, in double precision, one cell after the other.
class Oracle {
 public:
  Oracle(int64_t rows, int64_t dim, uint64_t seed) : dim_(dim) {
    Random random(seed);
    for (int side = 0; side < 2; ++side) {
      w_[side].resize(static_cast<size_t>(rows * (dim + 1)));
      sums_[side].assign(w_[side].size(), 1.0);
      for (double& value : w_[side]) value = (random.uniform() - 0.5) / static_cast<double>(dim);
    }
  }
  void take_rows(Parameters& parameters) {
    for (int side = 0; side < 2; ++side)
      for (int64_t i = 0; i < parameters.rows(); ++i)
        for (int64_t k = 0; k <= dim_; ++k)
          w_[side][static_cast<size_t>(i * (dim_ + 1) + k)] =
              k == dim_ ? 0 : (side == 0 ? parameters.input : parameters.output).rows.row(i)[k];
  }

  // The mean cost of the cells, each taken before its step.
  double iterate(const std::vector<CellTable::Drawn>& cells, double lr) {
    double cost = 0;
    for (const auto& cell : cells) cost += step(cell, lr);
    return cost / static_cast<double>(cells.size());
  }

 private:
  double step(const CellTable::Drawn& cell, double lr) {
    double* w = &w_[0][static_cast<size_t>(cell.word * (dim_ + 1))];
    double* c = &w_[1][static_cast<size_t>(cell.context * (dim_ + 1))];
    double* w_sums = &sums_[0][static_cast<size_t>(cell.word * (dim_ + 1))];
    double* c_sums = &sums_[1][static_cast<size_t>(cell.context * (dim_ + 1))];
    const double diff = std::inner_product(w, w + dim_, c, 0.0) + w[dim_] + c[dim_] - std::log(cell.x);
    const double f_diff = std::min(1.0, std::pow(cell.x / 100, 0.75)) * diff;
    for (int64_t k = 0; k <= dim_; ++k) {
      const double w_step = k == dim_ ? f_diff : lr * f_diff * c[k], c_step = k == dim_ ? f_diff : lr * f_diff * w[k];
      w[k] -= w_step / std::sqrt(w_sums[k]);
      c[k] -= c_step / std::sqrt(c_sums[k]);
      w_sums[k] += w_step * w_step;
      c_sums[k] += c_step * c_step;
    }
    return 0.5 * f_diff * diff;
  }

  const int64_t dim_;
  std::vector<double> w_[2], sums_[2];
};

// One iteration over all tiles in a drawn order; the mean cost.
double iterate(GloveTrainer& trainer, const CellStore& store, uint64_t seed, float lr = kGloveRate) {
  std::vector<size_t> order(store.tiles().size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  double cost = 0;
  int64_t pairs = 0;
  for (const size_t tile : order) {
    const StepStats stats = trainer.step(store, store.tiles()[tile], lr, random).value();
    cost += stats.loss;
    pairs += stats.pairs;
  }
  EXPECT_EQ(pairs, store.cells());
  return cost / static_cast<double>(pairs);
}

// How much nearer words of one topic are to each other than to those of others, among the frequent ones.
double topics_apart(Parameters& parameters) {
  const Matrix vectors = glove_vectors(parameters, kGloveWords).value();
  double same = 0, other = 0;
  constexpr Slot kFrequent = 10 * kTopics;
  for (Slot a = 0; a < kFrequent; ++a) {
    for (Slot step = 1; step < 10; ++step) same += cosine(vectors, a, (a + step * kTopics) % kFrequent);
    for (Slot step = 1; step < kTopics; ++step) other += cosine(vectors, a, (a + step) % kFrequent);
  }
  return same / (9 * kFrequent) - other / ((kTopics - 1) * kFrequent);
}

TEST(Glove, CostsWhatTheDefinitionCostsOnTheSameRecords) {
  std::vector<CellTable::Drawn> cells = cells_of(store_of(topical_chunk(1)));
  Parameters parameters = parameters_of();
  GloveTrainer trainer(parameters, GloveKernel::kSimd);
  Oracle oracle(kGloveWords, kGloveDim, 0);
  oracle.take_rows(parameters);
  Random random(3);
  for (int i = 0; i < 8; ++i) {
    shuffle(cells, random);
    const StepStats stats = trainer.step(cells, kGloveRate);
    const double wanted = oracle.iterate(cells, kGloveRate);
    EXPECT_NEAR(stats.loss / static_cast<double>(stats.pairs), wanted, 2e-3 * wanted) << "iteration " << i;
  }
}

TEST(Glove, TileByTileCostsAsMuchAsFullyShuffledRecordsAtEqualIterations) {
  const CellStore store = store_of(topical_chunk(1));
  ASSERT_GT(store.tiles().size(), 6u);
  std::vector<CellTable::Drawn> cells = cells_of(store);
  Random random(4);
  shuffle(cells, random);
  Oracle oracle(kGloveWords, kGloveDim, 5);
  Parameters parameters = parameters_of();
  GloveTrainer trainer(parameters, GloveKernel::kSimd);
  double ours = 0, wanted = 0;
  for (int i = 0; i < 15; ++i) {
    wanted = oracle.iterate(cells, kGloveRate);
    ours = iterate(trainer, store, 10 + i);
    EXPECT_NEAR(ours, wanted, 0.1 * wanted) << "iteration " << i;
  }
  EXPECT_NEAR(ours, wanted, 0.04 * wanted);
}

TEST(Glove, FindsPlantedTopics) {
  const CellStore store = store_of(topical_chunk(2));
  for (const GloveKernel kernel : {GloveKernel::kReference, GloveKernel::kSimd}) {
    Parameters parameters = parameters_of();
    GloveTrainer trainer(parameters, kernel);
    for (int i = 0; i < 15; ++i) iterate(trainer, store, i);
    EXPECT_GT(topics_apart(parameters), 0.5);
  }
}

TEST(Glove, EqualSeedsGiveEqualBits) {
  const CellStore store = store_of(topical_chunk(3));
  std::vector<Matrix> results;
  for (const uint64_t seed : {1, 1, 2}) {
    Parameters parameters = parameters_of(kGloveWords, seed);
    GloveTrainer trainer(parameters, GloveKernel::kSimd);
    for (int i = 0; i < 2; ++i) iterate(trainer, store, seed + i);
    results.push_back(glove_vectors(parameters, kGloveWords).value());
  }
  const auto equal = [&](int a, int b) {
    for (int64_t i = 0; i < kGloveWords; ++i)
      if (!std::equal(results[a].row(i), results[a].row(i) + kGloveDim, results[b].row(i))) return false;
    return true;
  };
  EXPECT_TRUE(equal(0, 1));
  EXPECT_FALSE(equal(0, 2));
}

TEST(Glove, AVectorIsTheSumOfBothRows) {
  Parameters parameters = parameters_of();
  const Matrix vectors = glove_vectors(parameters, kGloveWords).value();
  for (int64_t k = 0; k < kGloveDim; ++k) {
    EXPECT_NE(parameters.output.rows.row(7)[k], 0);
    EXPECT_EQ(vectors.row(7)[k], parameters.input.rows.row(7)[k] + parameters.output.rows.row(7)[k]);
  }
}

TEST(Glove, ARestartedRowKnowsNothingOfTheOneBefore) {
  const CellStore store = store_of(topical_chunk(4, 300));
  Parameters parameters = parameters_of();
  parameters.glove->cells = std::make_unique<CellTable>(CellTable::Options{.memory_bytes = 1 << 20, .window = 5});
  parameters.glove->cells->add(topical_chunk(4, 300), 0);
  GloveTrainer trainer(parameters, GloveKernel::kSimd);
  iterate(trainer, store, 1);
  ASSERT_GT(parameters.glove->biases[0].row(0)[1], 0);
  parameters.restart(0, 99);
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(parameters.glove->biases[side].row(0)[0], 0);
    for (int64_t k = 0; k < kGloveDim; ++k) EXPECT_EQ(parameters.glove->sums[side].row(0)[k], 0);
    for (int64_t k = 0; k < kGloveDim; ++k)
      EXPECT_LE(std::fabs((side == 0 ? parameters.input : parameters.output).rows.row(0)[k]), 0.5 / kGloveDim);
  }
  Random random(1);
  std::vector<CellTable::Drawn> drawn;
  parameters.glove->cells->draw(50'000, random, drawn);
  ASSERT_GT(drawn.size(), 10'000u);
  for (const auto& cell : drawn) ASSERT_TRUE(cell.word != 0 && cell.context != 0);
}

TEST(GloveWorker, LearnsTopicsFromAStreamThroughABoundedTable) {
  Parameters parameters = parameters_of();
  constexpr int64_t kMemory = 1 << 19;  // far fewer cells than the text has
  parameters.glove->cells = std::make_unique<CellTable>(CellTable::Options{.memory_bytes = kMemory, .window = 5});
  ModelOptions options;
  options.model = "glove";
  const auto worker = make_model_worker(options, parameters).value();
  const SamplingTables tables(testing::equal_words(kGloveWords), 0);
  Random random(1);
  int64_t pairs = 0;
  for (uint64_t i = 0; i < 60; ++i) pairs += worker->step(topical_chunk(i, 100), tables, kGloveRate, random).pairs;
  EXPECT_GT(pairs, 60 * 100 * 40);
  EXPECT_LE(parameters.glove->cells->memory_bytes(), kMemory);
  EXPECT_GT(topics_apart(parameters), 0.4);
}

}  // namespace
}  // namespace streamvec
