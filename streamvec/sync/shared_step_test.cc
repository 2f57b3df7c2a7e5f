#include "streamvec/sync/shared_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr float kAdamShare = 0.25f;
constexpr double kBatch = 6'000;

// Values of one node: matrices wider than high and higher than wide, cut into bands; biases; characters.
struct Stepped {
  struct Shape {
    int64_t rows, cols;
    bool evened_out;
  };
  static constexpr Shape kShapes[] = {{150, 170, true}, {140, 24, true}, {1, 33, false}, {3, 5, false}};
  struct Table {
    Matrix values, slopes, mean, variance;
  };

  Stepped() : steps(std::move(Matrix::make(1, 1)).value()) {
    shared.adam_share = kAdamShare;
    shared.batch = kBatch;
    shared.products = std::move(make_packed_gemm("simd")).value();
    shared.steps = &steps;
    tables.reserve(std::size(kShapes));
    for (const Shape& shape : kShapes) {
      const auto made = [&] { return std::move(Matrix::make(shape.rows, shape.cols)).value(); };
      Table& table = tables.emplace_back(Table{made(), made(), made(), made()});
      Random random(mix(3, tables.size()));
      for (int64_t row = 0; row < table.values.rows(); ++row)
        for (int64_t col = 0; col < shape.cols; ++col) table.values.row(row)[col] = random.uniform() - 0.5f;
      shared.tables.push_back({&table.values, &table.slopes, &table.mean, &table.variance, shape.evened_out});
    }
  }
  // A batch of that many pairs; none: there was no batch.
  void train(int round, uint64_t node, double pairs) {
    if (pairs == 0) return;
    for (size_t t = 0; t < tables.size(); ++t) {
      Random random(mix(mix(5, static_cast<uint64_t>(round), node), t));
      Matrix& slopes = tables[t].slopes;
      for (int64_t row = 0; row < slopes.rows(); ++row)
        for (int64_t col = 0; col < slopes.cols(); ++col)
          slopes.row(row)[col] +=
              static_cast<float>(pairs / SharedSlopes::kUnit) * 1e-3f * (random.uniform() * 2 - 0.9f);
    }
    shared.pairs += pairs;
    shared.rate = 0.01f;
  }
  double slopes_left() const {
    double sum = 0;
    for (const Table& table : tables)
      for (int64_t row = 0; row < table.slopes.rows(); ++row)
        for (int64_t col = 0; col < table.slopes.cols(); ++col) sum += std::abs(double{table.slopes.row(row)[col]});
    return sum;
  }

  std::vector<Table> tables;
  Matrix steps;
  SharedSlopes shared;
};

std::vector<float> values_of(const Stepped& node) {
  std::vector<float> all;
  for (const Stepped::Table& table : node.tables)
    for (int64_t row = 0; row < table.values.rows(); ++row)
      all.insert(all.end(), table.values.row(row), table.values.row(row) + table.values.cols());
  return all;
}

double furthest(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

// Nodes that meet in rounds inside one process: what a ring does, without one. Node i finishes part i.
class SteppingNodes {
 public:
  explicit SteppingNodes(size_t count, int32_t threads = 1) : team_(threads), nodes(count) {
    for (Stepped& node : nodes) {
      steps.push_back(std::make_unique<SharedStep>(node.shared, team_));
      steps.back()->set_nodes(static_cast<int64_t>(count));
    }
  }
  // The means, with what has become of each part.
  std::vector<float> finished(bool finish = true) {
    std::vector<double> sums(static_cast<size_t>(steps[0]->size()));
    for (auto& step : steps) {
      std::vector<float> values(sums.size());
      step->bring(values);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += double{values[i]};
    }
    std::vector<float> means(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) means[i] = static_cast<float>(sums[i] / static_cast<double>(steps.size()));
    for (size_t i = 0; finish && i < steps.size(); ++i) {
      const auto parts = steps[i]->parts();
      steps[i]->make_part(i, std::span(means).subspan(parts[i], parts[i + 1] - parts[i]));
    }
    return means;
  }
  void take(const std::vector<float>& means) {
    for (auto& step : steps) step->take(means);
  }
  void round() { take(finished()); }

 private:
  ThreadTeam team_;

 public:
  std::vector<Stepped> nodes;
  std::vector<std::unique_ptr<SharedStep>> steps;
};

// One node that has all batches as one: Muon's step and Adam's, by themselves.
void step_alone(Stepped& node, Muon& muon) {
  const auto rate = static_cast<float>(0.01 * std::sqrt(node.shared.pairs / kBatch));
  const auto pairs = static_cast<float>(SharedSlopes::kUnit / node.shared.pairs);
  std::vector<Muon::Part> parts;
  *node.steps.row(0) += 1;
  for (size_t t = 0; t < node.tables.size(); ++t) {
    Stepped::Table& table = node.tables[t];
    if (Stepped::kShapes[t].evened_out) parts.push_back({&table.values, &table.mean, &table.slopes});
    for (int64_t row = 0; row < table.values.rows() && !Stepped::kShapes[t].evened_out; ++row) {
      float* slopes = table.slopes.row(row);
      for (int64_t col = 0; col < table.slopes.cols(); ++col) slopes[col] *= pairs;
      adam_step(slopes, kAdamShare * rate, static_cast<int64_t>(*node.steps.row(0)), AdamRates{},
                static_cast<int32_t>(table.slopes.cols()), table.mean.row(row), table.variance.row(row),
                table.values.row(row));
      std::fill_n(slopes, table.slopes.cols(), 0.0f);
    }
  }
  muon.step(parts, rate);
  node.shared.pairs = 0;
}

TEST(SharedStep, NodesStepAsOneThatHasAllTheirBatchesAsOne) {
  for (const auto& [count, threads] : {std::pair<size_t, int32_t>{1, 1}, {2, 1}, {3, 2}, {5, 3}}) {
    SteppingNodes cluster(count, threads);
    Stepped alone;
    ThreadTeam team(1);
    Muon muon(std::move(make_packed_gemm("simd")).value(), team);
    for (int round = 0; round < 4; ++round) {
      for (uint64_t node = 0; node < count; ++node) {
        // In each round another one has no batch, and the rest have some of unequal size.
        const bool idle = count > 1 && node == static_cast<uint64_t>(round) % count;
        const double pairs = idle ? 0 : 3'000.0 + 2'000.0 * static_cast<double>(node);
        cluster.nodes[node].train(round, node, pairs);
        alone.train(round, node, pairs);
      }
      cluster.round();
      step_alone(alone, muon);
      for (const Stepped& node : cluster.nodes) {
        ASSERT_LT(furthest(values_of(node), values_of(alone)), 2e-5) << count << " nodes, round " << round;
        ASSERT_EQ(values_of(node), values_of(cluster.nodes[0])) << "to the bit";
        ASSERT_EQ(node.slopes_left() + node.shared.pairs, 0);
        ASSERT_EQ(*node.steps.row(0), static_cast<float>(round + 1));
      }
    }
  }
}

TEST(SharedStep, ARoundInWhichNobodyHadABatchChangesNothing) {
  SteppingNodes cluster(2);
  for (uint64_t node = 0; node < 2; ++node) cluster.nodes[node].train(0, node, 5'000);
  cluster.round();
  const std::vector<float> before = values_of(cluster.nodes[0]);
  const Matrix mean = std::move(cluster.nodes[0].tables[0].mean.copy()).value();
  // Four bits may still owe something of an earlier round.
  std::vector<float> means = cluster.finished(false);
  for (size_t i = 0; i < means.size() - 2; ++i) means[i] += 1e-3f;
  for (size_t i = 0; i < 2; ++i) {
    const auto parts = cluster.steps[i]->parts();
    cluster.steps[i]->make_part(i, std::span(means).subspan(parts[i], parts[i + 1] - parts[i]));
  }
  cluster.take(means);
  EXPECT_EQ(values_of(cluster.nodes[0]), before);
  EXPECT_EQ(*cluster.nodes[0].steps.row(0), 1);
  for (int64_t row = 0; row < mean.rows(); ++row)
    ASSERT_EQ(
        std::vector(mean.row(row), mean.row(row) + mean.cols()),
        std::vector(cluster.nodes[0].tables[0].mean.row(row), cluster.nodes[0].tables[0].mean.row(row) + mean.cols()))
        << "momentum";
}

// Two rounds, of which the second is begun twice.
TEST(SharedStep, ARoundThatCameToNothingIsTakenBackWhole) {
  SteppingNodes cluster(3), plain(3);
  for (int round = 0; round < 2; ++round) {
    for (SteppingNodes* each : {&cluster, &plain})
      for (uint64_t node = 0; node < 3; ++node) each->nodes[node].train(round, node, 4'000);
    if (round == 1) {
      cluster.finished();
      for (auto& step : cluster.steps) step->undo();
    }
    for (SteppingNodes* each : {&cluster, &plain}) each->round();
  }
  EXPECT_EQ(values_of(cluster.nodes[1]), values_of(plain.nodes[1]));
}

// One has the means, another does not and gets what that one agreed to; a third is dead.
TEST(SharedStep, WhoMissedTheEndOfARoundGoesOnFromWhatAnotherAgreedTo) {
  SteppingNodes cluster(3);
  for (uint64_t node = 0; node < 3; ++node) cluster.nodes[node].train(0, node, 4'000);
  const std::vector<float> means = cluster.finished();
  cluster.steps[0]->take(means);
  std::vector<float> agreed(static_cast<size_t>(cluster.steps[0]->agreed_size()));
  cluster.steps[0]->copy_agreed(agreed);
  cluster.steps[1]->adopt(agreed);
  EXPECT_EQ(values_of(cluster.nodes[1]), values_of(cluster.nodes[0]));
  EXPECT_EQ(cluster.nodes[1].slopes_left() + cluster.nodes[1].shared.pairs, 0) << "they are in what was agreed to";
  cluster.nodes.pop_back();
  cluster.steps.pop_back();
  for (auto& step : cluster.steps) step->set_nodes(2);
  for (int round = 1; round < 4; ++round) {
    for (uint64_t node = 0; node < 2; ++node) cluster.nodes[node].train(round, node, 4'000);
    cluster.round();
    EXPECT_EQ(values_of(cluster.nodes[1]), values_of(cluster.nodes[0])) << "Adam's moments, too";
  }
  EXPECT_EQ(*cluster.nodes[1].steps.row(0), 4);
}

// The one that joins has neither values nor moments of the others.
TEST(SharedStep, OneThatJoinsGoesOnFromWhatTheOthersAgreedTo) {
  SteppingNodes cluster(3);
  auto newcomer = std::move(cluster.steps.back());
  cluster.steps.pop_back();
  for (Stepped::Table& table : cluster.nodes.back().tables) table.values.row(0)[0] = 7;
  for (auto& step : cluster.steps) step->set_nodes(2);
  for (int round = 0; round < 4; ++round) {
    if (round == 2) {
      std::vector<float> agreed(static_cast<size_t>(newcomer->agreed_size()));
      cluster.steps[1]->copy_agreed(agreed);
      newcomer->adopt(agreed);
      cluster.steps.push_back(std::move(newcomer));
      for (auto& step : cluster.steps) step->set_nodes(3);
    }
    for (uint64_t node = 0; node < cluster.steps.size(); ++node) cluster.nodes[node].train(round, node, 4'000);
    cluster.round();
  }
  for (const Stepped& node : cluster.nodes) {
    EXPECT_EQ(values_of(node), values_of(cluster.nodes[0]));
    EXPECT_EQ(*node.steps.row(0), 4);
  }
}

// The bands of a matrix of 150 rows are two of 75; biases are one row.
TEST(SharedStep, SlopesThatAreNotFiniteStepNothingOfTheirRowsOrBands) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    SteppingNodes cluster(2);
    const Stepped before;
    for (uint64_t node = 0; node < 2; ++node) cluster.nodes[node].train(0, node, 4'000);
    for (Stepped::Table& table : cluster.nodes[1].tables) table.slopes.row(0)[2] = wrong;
    cluster.round();
    for (const Stepped& node : cluster.nodes) {
      const auto moved = [&](size_t table, int64_t row) {
        return node.tables[table].values.row(row)[1] - before.tables[table].values.row(row)[1];
      };
      EXPECT_EQ(moved(0, 0), 0);
      EXPECT_EQ(moved(0, 74), 0);
      EXPECT_NE(moved(0, 75), 0) << "of the other band";
      EXPECT_EQ(moved(2, 0), 0);
      EXPECT_EQ(moved(3, 0), 0);
      EXPECT_NE(moved(3, 1), 0);
      EXPECT_EQ(node.slopes_left(), 0);
    }
  }
}

// Of the others' parts nothing is known here, and what an earlier run knew is old by the time that they are its own.
TEST(SharedStep, ANodeKeepsTheMomentumOfItsOwnPartAlone) {
  SteppingNodes cluster(2);
  const auto momenta = [&](size_t node) {
    std::vector<int> rows;  // of the matrix, those with a momentum
    const Matrix& mean = cluster.nodes[node].tables[0].mean;
    for (int64_t row = 0; row < mean.rows(); ++row)
      if (mean_square(mean.row(row), static_cast<int32_t>(mean.cols())) > 0) rows.push_back(static_cast<int>(row));
    return rows;
  };
  for (Stepped& node : cluster.nodes)
    for (int64_t row = 0; row < node.tables[0].mean.rows(); ++row) node.tables[0].mean.row(row)[3] = 1;
  for (uint64_t node = 0; node < 2; ++node) cluster.nodes[node].train(0, node, 4'000);
  cluster.round();
  EXPECT_EQ(momenta(0).size() + momenta(1).size(), 150u);
  EXPECT_EQ(momenta(0).front(), 0);
  EXPECT_EQ(momenta(1).back(), 149);
}

// Its products are what a step costs: of the character model's matrices, at the sizes that it has unless told.
TEST(SharedStep, PartsTakeAboutAsManyProductsAsEachOther) {
  ThreadTeam team(1);
  for (const int64_t nodes : {2, 4, 8}) {
    std::vector<Matrix> matrices;
    for (int side = 0; side < 2; ++side)
      for (const auto& [rows, cols] : {std::pair{128, 2'048}, {512, 2'048}, {512, 200}})
        matrices.push_back(std::move(Matrix::make(rows, cols)).value());
    Matrix steps = std::move(Matrix::make(1, 1)).value();
    SharedSlopes slopes;
    slopes.steps = &steps;
    for (Matrix& matrix : matrices) slopes.tables.push_back({&matrix, &matrix, &matrix, &matrix, true});
    slopes.products = std::move(make_packed_gemm("simd")).value();
    SharedStep step(slopes, team);
    step.set_nodes(nodes);
    double most = 0, all = 0;
    for (size_t part = 0; part < static_cast<size_t>(nodes); ++part) {
      most = std::max(most, step.flops_of(part));
      all += step.flops_of(part);
    }
    EXPECT_LT(most * static_cast<double>(nodes), (nodes == 8 ? 1.5 : 1.15) * all) << nodes;
  }
}

}  // namespace
}  // namespace streamvec
