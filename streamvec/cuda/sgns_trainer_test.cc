#include "streamvec/cuda/sgns_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/card_testing.h"
#include "streamvec/cuda/copies.h"
#include "streamvec/cuda/draws.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/step_share.h"

namespace streamvec::cuda {
namespace {

using ::testing::Gt;
using ::testing::Lt;

constexpr int64_t kWords = 300;

std::vector<double> zipf_counts() {
  std::vector<double> counts(kWords);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = 1e5 / static_cast<double>(i + 1);
  return counts;
}

Chunk drawn_chunk(int32_t words, uint64_t seed) {
  Random random(seed);
  const AliasTable table(zipf_counts());
  Chunk chunk;
  for (int32_t i = 0; i < words; ++i) {
    chunk.slots.push_back(table.sample(random));
    if (random.below(17) == 0) chunk.sentence_ends.push_back(i + 1);
  }
  if (chunk.sentence_ends.empty() || chunk.sentence_ends.back() != words) chunk.sentence_ends.push_back(words);
  return chunk;
}

Matrix drawn_rows(int64_t dim, uint64_t seed, float size = 1.0f) {
  Matrix rows = Matrix::make(kWords, dim).value();
  Random random(seed);
  for (int64_t i = 0; i < kWords; ++i)
    for (int64_t d = 0; d < dim; ++d)
      rows.row(i)[d] = size * (random.uniform() - 0.5f) / std::sqrt(static_cast<float>(dim));
  return rows;
}

SgnsOptions options_for(int64_t dim) {
  SgnsOptions options;
  options.rows_max = kWords;
  options.dim = dim;
  options.blocks = 1;
  options.crowd = 1e9f;
  options.kept_bytes = int64_t{1} << 28;
  options.words_per_block = 0;
  return options;
}

// What the card does with a chunk of one segment, in plain words: sequential blocks by the reference kernel.
class Reference {
 public:
  Reference(const SgnsOptions& options, Matrix& input, Matrix& output)
      : options_(options), input_(input), output_(output), kernel_(make_reference_pair_kernel()) {}

  SgnsTotals train(const Chunk& chunk, const SamplingTables& tables, float lr, uint64_t draw) {
    keep(chunk, tables, draw);
    SgnsTotals totals;
    const auto count = static_cast<int32_t>(words_.size());
    for (int32_t first = 0; first < count; first += options_.centres) {
      std::vector<Slot> negatives(static_cast<size_t>(options_.negatives_shared));
      const uint64_t stratum = std::numeric_limits<uint64_t>::max() / negatives.size();
      for (size_t k = 0; k < negatives.size(); ++k) {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(negative_draw(draw, static_cast<uint64_t>(first), k)) * stratum;
        negatives[k] = tables.negatives.invert(k * stratum + static_cast<uint64_t>(product >> 64));
      }
      train_block(first, std::min(first + options_.centres, count), negatives, tables.pace, lr, totals);
    }
    return totals;
  }

 private:
  void keep(const Chunk& chunk, const SamplingTables& tables, uint64_t draw) {
    words_.clear();
    int32_t sentence = 0;
    for (int32_t i = 0; i < static_cast<int32_t>(chunk.slots.size()); ++i) {
      while (chunk.sentence_ends[static_cast<size_t>(sentence)] <= i) ++sentence;
      const Slot slot = chunk.slots[static_cast<size_t>(i)];
      const auto at = static_cast<uint64_t>(i);
      if (tables.subsampling.keep(slot, keep_draw(draw, at)))
        words_.push_back({slot, sentence, reach_draw(draw, at, options_.window)});
    }
  }

  void train_block(int32_t first, int32_t last, const std::vector<Slot>& negatives, const RowPace& pace, float lr,
                   SgnsTotals& totals) {
    const int32_t begin = std::max(first - options_.window, 0);
    const int32_t end = std::min(last + options_.window, static_cast<int32_t>(words_.size()));
    const size_t columns = static_cast<size_t>(end - begin), centres = static_cast<size_t>(last - first);
    std::vector<std::vector<float>> weights(centres + negatives.size(), std::vector<float>(columns));
    std::vector<float*> x, y;
    std::vector<Slot> outputs;
    std::vector<float> x_pace, y_pace;
    for (int32_t j = begin; j < end; ++j) {
      x.push_back(input_.row(word(j).slot));
      x_pace.push_back(pace.input(word(j).slot));
    }
    const auto add_output = [&](Slot slot) {
      y.push_back(output_.row(slot));
      outputs.push_back(slot);
      y_pace.push_back(pace.output(slot));
    };
    for (int32_t i = first; i < last; ++i) add_output(word(i).slot);
    for (const Slot negative : negatives) add_output(negative);
    const float share = static_cast<float>(options_.negatives) / static_cast<float>(options_.negatives_shared);
    for (int32_t i = first; i < last; ++i)
      for (int32_t j = begin; j < end; ++j) {
        if (i == j || std::abs(i - j) > word(i).reach || word(i).sentence != word(j).sentence) continue;
        ++totals.pairs;
        weights[static_cast<size_t>(i - first)][static_cast<size_t>(j - begin)] = 1;
        for (size_t k = 0; k < negatives.size(); ++k)
          if (negatives[k] != word(i).slot) weights[centres + k][static_cast<size_t>(j - begin)] += share;
      }
    std::vector<const float*> rows;
    for (const auto& row : weights) rows.push_back(row.data());
    Matrix dx = Matrix::make(static_cast<int64_t>(x.size()), options_.dim).value();
    Matrix dy = Matrix::make(static_cast<int64_t>(y.size()), options_.dim).value();
    std::vector<float*> x_slopes, y_slopes;
    for (size_t j = 0; j < x.size(); ++j) x_slopes.push_back(dx.row(static_cast<int64_t>(j)));
    for (size_t i = 0; i < y.size(); ++i) y_slopes.push_back(dy.row(static_cast<int64_t>(i)));
    PairBlock block;
    block.inputs = static_cast<int32_t>(columns);
    block.positives = static_cast<int32_t>(centres);
    block.outputs = static_cast<int32_t>(y.size());
    block.dim = static_cast<int32_t>(options_.dim);
    block.x = x.data();
    block.y = y.data();
    block.weight = rows.data();
    block.scale = options_.adagrad ? 1 : lr;
    block.step_max =
        options_.adagrad ? 0 : options_.step_max * step_share_of(std::span(outputs).first(centres), outputs);
    block.input_pace = options_.adagrad ? nullptr : x_pace.data();
    block.output_pace = options_.adagrad ? nullptr : y_pace.data();
    block.dx = options_.adagrad ? x_slopes.data() : x.data();
    block.dy = options_.adagrad ? y_slopes.data() : y.data();
    const PairBlockResult result = kernel_->step(block);
    if (options_.adagrad) {
      for (size_t j = 0; j < x.size(); ++j) adagrad_step(x_slopes[j], lr, x[j]);
      for (size_t i = 0; i < y.size(); ++i) adagrad_step(y_slopes[i], lr, y[i]);
    }
    totals.loss += result.loss;
    totals.slope += result.slope;
  }

  // optim/optimizer.h's.
  void adagrad_step(const float* slope, float lr, float* row) {
    double square = 0;
    for (int64_t d = 0; d < options_.dim; ++d) square += double{slope[d]} * slope[d];
    double& sum = sums_[row];
    sum += square / static_cast<double>(options_.dim);
    for (int64_t d = 0; d < options_.dim; ++d) row[d] += lr * slope[d] / static_cast<float>(std::sqrt(sum + 1e-10));
  }

  struct Word {
    Slot slot;
    int32_t sentence, reach;
  };
  const Word& word(int32_t i) const { return words_[static_cast<size_t>(i)]; }

  const SgnsOptions options_;
  Matrix &input_, &output_;
  std::unique_ptr<PairKernel> kernel_;
  std::vector<Word> words_;
  std::map<const float*, double> sums_;  // of AdaGrad, by row
};

// |a - b| / |b - before|: how far apart two trainings have come, in steps.
double apart(const Matrix& a, const Matrix& b, const Matrix& before) {
  double difference = 0, step = 0;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t d = 0; d < a.cols(); ++d) {
      difference += std::pow(double{a.row(i)[d]} - b.row(i)[d], 2);
      step += std::pow(double{b.row(i)[d]} - before.row(i)[d], 2);
    }
  return std::sqrt(difference / step);
}

// How far `a` has gone where `b` went, as a share of its way.
double along(const Matrix& a, const Matrix& b, const Matrix& before) {
  double both = 0, step = 0;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t d = 0; d < a.cols(); ++d) {
      const double way = double{b.row(i)[d]} - before.row(i)[d];
      both += way * (double{a.row(i)[d]} - before.row(i)[d]);
      step += way * way;
    }
  return both / step;
}

class SgnsOnCard : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { STREAMVEC_SKIP_WITHOUT_CARD(); }
};

TEST_P(SgnsOnCard, TrainsAsTheReferenceDoesWithOneBlockAtATime) {
  const int64_t dim = GetParam();
  const SgnsOptions options = options_for(dim);
  const SamplingTables tables(zipf_counts(), 1e-2, {.pace_max = 8});
  const Matrix input = drawn_rows(dim, 1), output = drawn_rows(dim, 2);
  Matrix x = input.copy().value(), y = output.copy().value();
  Reference reference(options, x, y);
  const Chunk chunk = drawn_chunk(500, 3);  // one segment in any dimension
  const SgnsTotals expected = reference.train(chunk, tables, 0.1f, 42);

  const auto trainer = make_sgns_trainer(options).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  ASSERT_TRUE(trainer->add(chunk, 0.1f, 42).ok());
  const SgnsTotals totals = trainer->totals(true).value();
  Matrix a = input.copy().value(), b = output.copy().value();
  ASSERT_TRUE(trainer->get(a.view(), b.view()).ok());

  EXPECT_EQ(totals.pairs, expected.pairs);
  EXPECT_EQ(totals.refused, 0);
  EXPECT_NEAR(totals.loss / expected.loss, 1, 1e-3);
  EXPECT_NEAR(totals.slope / expected.slope, 1, 1e-3);
  EXPECT_THAT(apart(a, x, input), Lt(1e-2));
  EXPECT_THAT(apart(b, y, output), Lt(1e-2));
}
INSTANTIATE_TEST_SUITE_P(Dims, SgnsOnCard, ::testing::Values(8, 50, 200, 300, 1000));

// Plain steps that are each a fraction of what bf16 can tell apart: to the nearest, all would be lost.
TEST_P(SgnsOnCard, TablesOfBf16LoseNoStepsOnAverage) {
  const int64_t dim = GetParam();
  SgnsOptions options = options_for(dim);
  options.bf16 = true;
  const SamplingTables tables(zipf_counts(), 1e-2);
  Matrix input = drawn_rows(dim, 1), output = drawn_rows(dim, 2);
  const auto trainer = make_sgns_trainer(options).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->get(input.view(), output.view()).ok());  // rounded
  Matrix x = input.copy().value(), y = output.copy().value();
  Reference reference(options, x, y);
  const Chunk chunk = drawn_chunk(500, 3);
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  SgnsTotals expected;
  for (uint64_t i = 0; i < 4; ++i) {
    const SgnsTotals done = reference.train(chunk, tables, 0.004f, i);
    expected.pairs += done.pairs;
    expected.loss += done.loss;
    ASSERT_TRUE(trainer->add(chunk, 0.004f, i).ok());
  }
  const SgnsTotals totals = trainer->totals(true).value();
  Matrix a = input.copy().value(), b = output.copy().value();
  ASSERT_TRUE(trainer->get(a.view(), b.view()).ok());
  EXPECT_EQ(totals.pairs, expected.pairs);
  EXPECT_NEAR(totals.loss / expected.loss, 1, 1e-2);
  EXPECT_NEAR(along(a, x, input), 1, 0.15);
  EXPECT_NEAR(along(b, y, output), 1, 0.15);
}

class SgnsCard : public ::testing::Test {
 protected:
  void SetUp() override { STREAMVEC_SKIP_WITHOUT_CARD(); }
};

// Words of the chunk are all different, and seldom among the negatives: then no two steps of a block meet in a row.
TEST_F(SgnsCard, AdagradTakesTheCpusSteps) {
  SgnsOptions options = options_for(64);
  options.adagrad = true;
  options.negatives_shared = 10;
  const SamplingTables tables(std::vector<double>(kWords, 100.0), 0);
  const Matrix input = drawn_rows(64, 1), output = drawn_rows(64, 2);
  Matrix x = input.copy().value(), y = output.copy().value(), a = input.copy().value(), b = output.copy().value();
  Reference reference(options, x, y);
  Chunk chunk;
  for (Slot slot = 0; slot < kWords; ++slot) chunk.slots.push_back(slot * 7 % static_cast<Slot>(kWords));
  chunk.sentence_ends = {static_cast<int32_t>(kWords)};
  const auto trainer = make_sgns_trainer(options).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  for (uint64_t i = 0; i < 3; ++i) {
    const SgnsTotals expected = reference.train(chunk, tables, 0.05f, i);
    ASSERT_TRUE(trainer->add(chunk, 0.05f, i).ok());
    const SgnsTotals totals = trainer->totals(true).value();
    EXPECT_EQ(totals.pairs, expected.pairs);
    EXPECT_NEAR(totals.loss / expected.loss, 1, 1e-2);
  }
  ASSERT_TRUE(trainer->get(a.view(), b.view()).ok());
  EXPECT_THAT(apart(a, x, input), Lt(0.05));
  EXPECT_THAT(apart(b, y, output), Lt(0.1));
}

TEST_F(SgnsCard, AdagradsSumsComeBackAndBeginAnewWithTheirRow) {
  SgnsOptions options = options_for(64);
  options.adagrad = true;
  const auto trainer = make_sgns_trainer(options).value();
  Matrix in = Matrix::make(kWords, 1).value(), out = Matrix::make(kWords, 1).value();
  for (int64_t i = 0; i < kWords; ++i) {
    *in.row(i) = static_cast<float>(i);
    *out.row(i) = static_cast<float>(-i);
  }
  const Matrix rows = drawn_rows(64, 1);
  ASSERT_TRUE(trainer->put_sums(in.view(), out.view()).ok());
  ASSERT_TRUE(trainer->put_row(7, rows.view().row_span(0), rows.view().row_span(1)).ok());
  ASSERT_TRUE(trainer->get_sums(in.view(), out.view()).ok());
  for (int64_t i = 0; i < kWords; ++i) {
    EXPECT_EQ(*in.row(i), i == 7 ? 0 : static_cast<float>(i));
    EXPECT_EQ(*out.row(i), i == 7 ? 0 : static_cast<float>(-i));
  }
}

TEST_F(SgnsCard, TellsOfEachChunkThatHasAName) {
  const SamplingTables tables(zipf_counts(), 1e-2);
  SgnsOptions options = options_for(64);
  options.blocks = 4;
  const auto trainer = make_sgns_trainer(options).value();
  ASSERT_TRUE(trainer->put(drawn_rows(64, 1).view(), drawn_rows(64, 2).view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  SgnsTotals all;
  for (uint64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(trainer
                    ->add(drawn_chunk(static_cast<int32_t>(2'000 * (i + 1)), i),
                          {.lr = 0.01f, .draw = i, .fresh = i == 1, .name = 100 + i})
                    .ok());
  all = trainer->totals(true).value();
  std::vector<SgnsTold> told = trainer->told();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(trainer->told().empty());
  SgnsTotals sum;
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(told[i].name, 100 + i);
    EXPECT_NEAR(static_cast<double>(told[i].pairs) / static_cast<double>(told[0].pairs), static_cast<double>(i + 1),
                0.3);
    sum.pairs += told[i].pairs;
    sum.loss += told[i].loss;
    sum.slope += told[i].slope;
  }
  EXPECT_EQ(sum.pairs, all.pairs);
  EXPECT_EQ(told[1].pairs, all.fresh_pairs);
  EXPECT_NEAR(sum.loss / all.loss, 1, 1e-6);
  EXPECT_NEAR(sum.slope / all.slope, 1, 1e-6);
  EXPECT_NEAR(told[1].loss / all.fresh_loss, 1, 1e-6);
}

// Rows of both tables after training on two chunks, the second time from where they were kept if `keep`.
Matrix trained(bool keep) {
  const SgnsOptions options = options_for(64);
  const SamplingTables tables(zipf_counts(), 1e-2);
  const Chunk chunks[] = {drawn_chunk(900, 3), drawn_chunk(20, 4)};
  Matrix input = drawn_rows(64, 1), output = drawn_rows(64, 2);
  const auto trainer = make_sgns_trainer(options).value();
  EXPECT_TRUE(trainer->put(input.view(), output.view()).ok());
  EXPECT_TRUE(trainer->set_tables(tables).ok());
  for (uint64_t epoch = 0; epoch < 2; ++epoch)
    for (uint64_t c = 0; c < 2; ++c) {
      const uint64_t draw = 10 * epoch + c;
      EXPECT_EQ(trainer->known(c), keep && epoch == 1);
      EXPECT_TRUE((!keep        ? trainer->add(chunks[c], 0.1f, draw)
                   : epoch == 0 ? trainer->add(chunks[c], 0.1f, draw, c)
                                : trainer->add_known(c, 0.1f, draw))
                      .ok());
      EXPECT_TRUE(trainer->totals(true).ok());
    }
  EXPECT_TRUE(trainer->get(input.view(), output.view()).ok());
  return input;
}

TEST_F(SgnsCard, TextThatStaysThereTrainsAsTextThatComesAgain) {
  const Matrix kept = trained(true), sent = trained(false);
  EXPECT_THAT(apart(kept, sent, drawn_rows(64, 1)), Lt(1e-3));
}

TEST_F(SgnsCard, ManyBlocksAtOnceLearnWhatOneAtATimeLearns) {
  const SamplingTables tables(zipf_counts(), 1e-2);
  double losses[2];
  for (const int many : {0, 1}) {
    SgnsOptions options = options_for(64);
    options.blocks = many ? 32 : 1;
    options.crowd = many ? 0.5f : 1e9f;
    const auto trainer = make_sgns_trainer(options).value();
    ASSERT_TRUE(trainer->put(drawn_rows(64, 1, 0.1f).view(), drawn_rows(64, 2, 0.1f).view()).ok());
    ASSERT_TRUE(trainer->set_tables(tables).ok());
    SgnsTotals last;
    for (uint64_t i = 0; i < 40; ++i) {
      ASSERT_TRUE(trainer->add(drawn_chunk(10'000, 100 + i), 0.05f, i).ok());
      last = trainer->totals(true).value();
    }
    losses[many] = last.loss / static_cast<double>(last.pairs);
  }
  EXPECT_NEAR(losses[1], losses[0], 0.02 * losses[0]);
}

// Four words, said again and again: their rows would be thrown from side to side, further each time.
TEST_F(SgnsCard, TextThatSaysFewWordsAgainAndAgainThrowsNoRowAbout) {
  const SamplingTables tables(std::vector<double>(4, 1e3), 0);
  Chunk chunk;
  for (Slot i = 0; i < 4'000; ++i) chunk.slots.push_back(i % 4);
  chunk.sentence_ends = {4'000};
  const Matrix input = drawn_rows(20, 1), output = drawn_rows(20, 2);
  const auto trainer = make_sgns_trainer(options_for(20)).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  for (uint64_t pass = 0; pass < 5; ++pass) ASSERT_TRUE(trainer->add(chunk, 0.05f, pass).ok());
  const SgnsTotals totals = trainer->totals(true).value();
  EXPECT_EQ(totals.refused, 0);
  EXPECT_LT(totals.loss / static_cast<double>(totals.pairs), 20);
}

TEST_F(SgnsCard, RefusesBlocksWithRowsThatAreNotFinite) {
  const SamplingTables tables(zipf_counts(), 0);
  Matrix input = drawn_rows(64, 1), output = drawn_rows(64, 2);
  input.row(5)[3] = std::numeric_limits<float>::quiet_NaN();
  const auto trainer = make_sgns_trainer(options_for(64)).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  Chunk chunk;
  chunk.slots.assign(22 * 4, 7);
  chunk.slots[40] = 5;
  chunk.sentence_ends = {22 * 4};
  ASSERT_TRUE(trainer->add(chunk, 0.1f, 1).ok());
  const SgnsTotals totals = trainer->totals(true).value();
  ASSERT_TRUE(trainer->get(input.view(), output.view()).ok());
  EXPECT_THAT(totals.refused, Gt(0));
  EXPECT_THAT(totals.refused, Lt(4));
  for (int64_t i = 0; i < kWords; ++i)
    for (int64_t d = 0; d < 64; ++d) {
      EXPECT_TRUE(i == 5 || std::isfinite(input.row(i)[d]));
      EXPECT_TRUE(std::isfinite(output.row(i)[d]));
    }
}

TEST_F(SgnsCard, ARowThatIsPutIsThereForTheNextChunk) {
  const Matrix input = drawn_rows(64, 1), output = drawn_rows(64, 2);
  Matrix a = input.copy().value(), b = output.copy().value();
  const auto trainer = make_sgns_trainer(options_for(64)).value();
  ASSERT_TRUE(trainer->put(input.view(), output.view()).ok());
  ASSERT_TRUE(trainer->set_tables(SamplingTables(zipf_counts(), 0)).ok());
  for (int64_t row = 0; row < 200; ++row)
    ASSERT_TRUE(trainer->put_row(row, input.view().row_span(299 - row), output.view().row_span(row + 1)).ok());
  ASSERT_TRUE(trainer->get(a.view(), b.view()).ok());
  for (int64_t row = 0; row < kWords; ++row) {
    EXPECT_EQ(a.row(row)[9], input.row(row < 200 ? 299 - row : row)[9]);
    EXPECT_EQ(b.row(row)[9], output.row(row < 200 ? row + 1 : row)[9]);
  }
}

TEST_F(SgnsCard, NothingIsCopiedButAChunksWordsOnceAndItsSegments) {
  constexpr int64_t kChunkWords = 50'000, kSegmentBytes = 64, kTotalsBytes = 64;
  const SamplingTables tables(zipf_counts(), 1e-2);
  const auto trainer = make_sgns_trainer(options_for(64)).value();
  ASSERT_TRUE(trainer->put(drawn_rows(64, 1).view(), drawn_rows(64, 2).view()).ok());
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  const Chunk chunk = drawn_chunk(kChunkWords, 3);
  Copies before = copies_so_far();
  const auto copied = [&] {
    EXPECT_TRUE(trainer->totals(true).ok());
    const Copies now = copies_so_far(),
                 more{now.to_card - before.to_card, now.from_card - before.from_card,
                      now.to_card_count - before.to_card_count, now.from_card_count - before.from_card_count};
    before = now;
    return more;
  };
  constexpr int64_t kSegments = kChunkWords / 256;  // at most: they are longer
  ASSERT_TRUE(trainer->set_tables(tables).ok());
  ASSERT_TRUE(trainer->add(chunk, 0.1f, 1, 7).ok());
  const Copies first = copied();
  EXPECT_GE(first.to_card, 4 * kChunkWords);
  EXPECT_LE(first.to_card, 4 * kChunkWords + kSegments * kSegmentBytes);
  EXPECT_LE(first.to_card_count, 2);
  EXPECT_LE(first.from_card, kTotalsBytes);
  ASSERT_TRUE(trainer->add_known(7, 0.1f, 2).ok());
  const Copies again = copied();
  EXPECT_LE(again.to_card, kSegments * kSegmentBytes);
  EXPECT_LE(again.from_card, kTotalsBytes);
}

TEST_F(SgnsCard, ShapesThatDoNotFitAreRefusedWithTheirFigures) {
  SgnsOptions options = options_for(64);
  options.window = 300;
  EXPECT_EQ(make_sgns_trainer(options).status().code(), Code::kInvalidArgument);
  options = options_for(4096);
  EXPECT_THAT(make_sgns_trainer(options).status().message(), ::testing::HasSubstr("4096"));
  options = options_for(512);
  options.rows_max = int64_t{100} << 20;
  EXPECT_EQ(make_sgns_trainer(options).status().code(), Code::kResourceExhausted);
  EXPECT_THAT(make_sgns_trainer(options).status().message(), ::testing::HasSubstr("MB are free"));
}

}  // namespace
}  // namespace streamvec::cuda
