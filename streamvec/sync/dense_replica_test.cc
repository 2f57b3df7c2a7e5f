#include "streamvec/sync/dense_replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kDenseRows = 5, kDenseCols = 7;

// Nodes that meet in rounds inside one process: what a ring does, without one.
class Rounds {
 public:
  Rounds(int nodes, DenseTable like, int threads = 1) : team(threads) {
    for (int i = 0; i < nodes; ++i) tables.push_back(std::move(Matrix::make(kDenseRows, kDenseCols)).value());
    for (Matrix& table : tables) {
      for (int64_t row = 0; row < kDenseRows; ++row) table.row(row)[row % kDenseCols] = 1;
      like.live = &table;
      replicas.push_back(std::move(DenseReplica::make({nodes, {like}, threads > 1 ? &team : nullptr})).value());
    }
  }

  void bring() {
    means = mean_of(replicas[0]->size(), [](DenseReplica& replica, std::span<float> values) { replica.bring(values); });
    second = mean_of(replicas[0]->second_size(),
                     [&](DenseReplica& replica, std::span<float> values) { replica.bring_second(means, values); });
  }
  void take() {
    for (auto& replica : replicas) replica->take(means, second);
  }
  std::vector<float> mean_of(int64_t size, const std::function<void(DenseReplica&, std::span<float>)>& bring) {
    std::vector<float> mean(static_cast<size_t>(size));
    for (auto& replica : replicas) {
      std::vector<float> values(mean.size());
      bring(*replica, values);
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / static_cast<float>(replicas.size());
    }
    return mean;
  }
  void round() {
    bring();
    take();
  }
  void set_trained(double steps) {
    for (auto& replica : replicas) replica->set_trained(steps);
  }

  ThreadTeam team;
  std::vector<Matrix> tables;
  std::vector<std::unique_ptr<DenseReplica>> replicas;
  std::vector<float> means, second;
};

float& at(Rounds& rounds, size_t node, int64_t row, int64_t col) {
  return rounds.tables[node].row(row)[col];
}

DenseTable combined_by(Combine combine, bool by_row = true) {
  DenseTable table;
  table.combine = combine;
  table.by_row = by_row;
  return table;
}

// Node i moves its rows by what this draws, in each round anew.
std::vector<float> drawn_changes(int round, size_t node) {
  Random random(mix(5, static_cast<uint64_t>(round), node));
  std::vector<float> changes(kDenseRows * kDenseCols);
  for (float& change : changes) change = random.uniform() - 0.5f;
  return changes;
}

// One process that is told all nodes' changes and does as the definition says.
class Definition : public ::testing::TestWithParam<std::tuple<Combine, int>> {};

TEST_P(Definition, EveryNodeEndsWhereOneProcessWouldThatKnowsAllChanges) {
  const auto [combine, nodes] = GetParam();
  Rounds rounds(nodes, combined_by(combine));
  std::vector<double> plain(kDenseRows * kDenseCols);
  for (int64_t row = 0; row < kDenseRows; ++row) plain[static_cast<size_t>(row * kDenseCols + row % kDenseCols)] = 1;
  for (int round = 0; round < 4; ++round) {
    std::vector<double> sums(plain.size()), squares(kDenseRows), of_sum(kDenseRows);
    for (size_t node = 0; node < static_cast<size_t>(nodes); ++node) {
      const auto changes = drawn_changes(round, node);
      for (size_t i = 0; i < changes.size(); ++i) {
        rounds.tables[node].row(static_cast<int64_t>(i) / kDenseCols)[i % kDenseCols] += changes[i];
        sums[i] += changes[i];
        squares[i / kDenseCols] += static_cast<double>(changes[i]) * changes[i];
      }
    }
    for (size_t i = 0; i < sums.size(); ++i) of_sum[i / kDenseCols] += sums[i] * sums[i];
    for (size_t i = 0; i < sums.size(); ++i) {
      // |sum|^2 / n^2 is the square of the mean, squares / n the mean of the squares.
      const double ratio = nodes * squares[i / kDenseCols] / of_sum[i / kDenseCols];
      // Of changes that are damped and of which no pull is known: the mean becomes as long as they are.
      const double lengthened = combine == Combine::kDamped ? std::sqrt(ratio) : ratio;
      const double gain = combine == Combine::kSum    ? nodes
                          : combine == Combine::kMean ? 1
                                                      : std::clamp<double>(lengthened, 1, nodes);
      plain[i] += gain * sums[i] / nodes;
    }
    rounds.round();
    for (size_t node = 0; node < static_cast<size_t>(nodes); ++node)
      for (size_t i = 0; i < plain.size(); ++i)
        ASSERT_NEAR(rounds.tables[node].row(static_cast<int64_t>(i) / kDenseCols)[i % kDenseCols], plain[i], 1e-4)
            << "round " << round << ", node " << node;
  }
}

INSTANTIATE_TEST_SUITE_P(Combiners, Definition,
                         ::testing::Combine(::testing::Values(Combine::kSum, Combine::kMean, Combine::kAdasum,
                                                              Combine::kDamped),
                                            ::testing::Values(1, 2, 3, 8)));

TEST(DenseReplica, ThreadsThatShareRowsBringThemWhereOneDoes) {
  for (const Combine combine : {Combine::kMean, Combine::kAdasum, Combine::kDamped}) {
    for (const bool by_row : {true, false}) {
      Rounds alone(3, combined_by(combine, by_row)), shared(3, combined_by(combine, by_row), 4);
      for (int round = 0; round < 3; ++round) {
        for (Rounds* rounds : {&alone, &shared}) {
          for (size_t node = 0; node < 3; ++node) {
            const auto changes = drawn_changes(round, node);
            for (int64_t i = 0; i < std::ssize(changes); ++i)
              at(*rounds, node, i / kDenseCols, i % kDenseCols) += changes[static_cast<size_t>(i)];
          }
          rounds->round();
        }
      }
      for (int64_t i = 0; i < kDenseRows * kDenseCols; ++i)
        EXPECT_NEAR(at(shared, 1, i / kDenseCols, i % kDenseCols), at(alone, 1, i / kDenseCols, i % kDenseCols), 1e-6);
    }
  }
}

TEST(DenseReplica, AdasumIsTheMeanOfEqualChangesAndTheSumOfThoseAtRightAngles) {
  for (const bool by_row : {true, false}) {
    Rounds rounds(4, combined_by(Combine::kAdasum, by_row));
    for (size_t node = 0; node < 4; ++node) at(rounds, node, 2, 6) += 8;
    rounds.round();
    EXPECT_NEAR(at(rounds, 1, 2, 6), 8, 1e-5);
    for (size_t node = 0; node < 4; ++node) at(rounds, node, 0, 1 + static_cast<int64_t>(node)) += 8;
    rounds.round();
    for (int64_t col = 1; col <= 4; ++col) EXPECT_NEAR(at(rounds, 3, 0, col), 8, 1e-5);
  }
}

TEST(DenseReplica, WithoutAPullDampedMovesAsFarAsOneNodeWhereverChangesPoint) {
  for (const bool by_row : {true, false}) {
    Rounds rounds(4, combined_by(Combine::kDamped, by_row));
    for (size_t node = 0; node < 4; ++node) at(rounds, node, 2, 6) += 8;
    rounds.round();
    EXPECT_NEAR(at(rounds, 1, 2, 6), 8, 1e-5);
    for (size_t node = 0; node < 4; ++node) at(rounds, node, 0, 1 + static_cast<int64_t>(node)) += 8;
    rounds.round();
    for (int64_t col = 1; col <= 4; ++col) EXPECT_NEAR(at(rounds, 3, 0, col), 4, 1e-5);  // a length of 8
  }
}

TEST(DenseReplica, OppositeChangesMoveNothingAndStayFinite) {
  Rounds rounds(2, combined_by(Combine::kAdasum));
  at(rounds, 0, 1, 0) += 3;
  at(rounds, 1, 1, 0) -= 3;
  rounds.round();
  EXPECT_EQ(at(rounds, 0, 1, 0), 0);
  EXPECT_EQ(at(rounds, 1, 1, 0), 0);
}

TEST(DenseReplica, WhatIsTrainedWhileARoundIsUnderWayGoesWithTheNext) {
  Rounds rounds(2, combined_by(Combine::kSum));
  at(rounds, 0, 0, 3) += 1;
  rounds.bring();
  at(rounds, 0, 0, 3) += 10;
  at(rounds, 1, 0, 3) += 100;
  rounds.take();
  EXPECT_EQ(at(rounds, 0, 0, 3), 11);
  EXPECT_EQ(at(rounds, 1, 0, 3), 101);
  rounds.round();
  EXPECT_EQ(at(rounds, 0, 0, 3), 111);
  EXPECT_EQ(at(rounds, 1, 0, 3), 111);
}

// What a round leaves out is in the next ones, as far as nodes agree on it; the rest goes at the end.
// Node 0 has a row in use long before the others, node 1 two blocks of them; a table that stays as it is lies behind.
TEST(DenseReplica, RowsThatComeIntoUseAnywhereGoWithTheNextRounds) {
  constexpr int64_t kRowsMax = 300, kNodes = 3;
  std::vector<Matrix> growing, fixed;
  std::vector<std::unique_ptr<DenseReplica>> replicas;
  for (int64_t node = 0; node < kNodes; ++node) {
    growing.push_back(std::move(Matrix::make(kDenseRows, kDenseCols, kRowsMax)).value());
    fixed.push_back(std::move(Matrix::make(kDenseRows, kDenseCols)).value());
    for (int64_t row = 0; row < kRowsMax; ++row) growing.back().row(row)[1] = static_cast<float>(row);
  }
  for (size_t node = 0; node < kNodes; ++node) {
    DenseTable first = combined_by(Combine::kSum), second = first;
    first.live = &growing[node];
    first.grows = true;
    second.live = &fixed[node];
    replicas.push_back(std::move(DenseReplica::make({kNodes, {first, second}})).value());
  }
  const int64_t small = replicas[0]->size();
  const auto round = [&] {
    std::vector<float> mean(static_cast<size_t>(replicas[0]->size())), values(mean.size());
    for (auto& replica : replicas) {
      ASSERT_EQ(replica->size(), std::ssize(mean));
      replica->bring(values);
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / kNodes;
    }
    for (auto& replica : replicas) {
      replica->take(mean);
      replica->take_rows_met(replica->rows_met());
    }
  };
  const auto train = [&](size_t node, int64_t row) {
    if (row >= growing[node].rows()) growing[node].grow(row + 1);
    growing[node].row(row)[0] += 1;
    fixed[node].row(row % kDenseRows)[0] += 1;
  };
  train(0, 3);
  train(2, 63);  // still of the first block
  round();
  EXPECT_EQ(replicas[0]->size(), small);
  EXPECT_EQ(growing[0].row(63)[0], 1) << "though it is not in use there";
  train(0, 70);
  train(1, 299);
  round();
  EXPECT_GT(replicas[0]->size(), small);
  EXPECT_EQ(growing[2].row(70)[0], 0) << "nobody knew of it when the round began";
  train(1, 299);
  train(2, 70);
  round();
  for (size_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(growing[node].row(70)[0], 2);
    EXPECT_EQ(growing[node].row(299)[0], 2);
    EXPECT_EQ(growing[node].row(299)[1], 299);
    EXPECT_EQ(growing[node].row(200)[1], 200);
    float trained = 0;
    for (int64_t row = 0; row < kDenseRows; ++row) trained += fixed[node].row(row)[0];
    EXPECT_EQ(trained, 6);
  }
  const int64_t rows_of_all = replicas[0]->rows_met();
  EXPECT_GE(rows_of_all, kRowsMax);
  EXPECT_EQ(replicas[0]->size(), replicas[2]->size());
}

TEST(DenseReplica, OfARankEveryNodeEndsWithTheSumAllTheSame) {
  DenseTable thin = combined_by(Combine::kSum, false);
  thin.rank = 1;
  Rounds rounds(3, thin);
  EXPECT_LT(rounds.replicas[0]->size() + rounds.replicas[0]->second_size(), kDenseRows * kDenseCols);
  std::vector<float> sums(kDenseRows * kDenseCols);
  for (int64_t row = 0; row < kDenseRows; ++row) sums[static_cast<size_t>(row * kDenseCols + row % kDenseCols)] = 1;
  for (size_t node = 0; node < 3; ++node) {
    const auto changes = drawn_changes(0, node);
    for (size_t i = 0; i < changes.size(); ++i) {
      rounds.tables[node].row(static_cast<int64_t>(i) / kDenseCols)[i % kDenseCols] += changes[i];
      sums[i] += changes[i];
    }
  }
  const auto value = [&](size_t node, size_t i) {
    return double{at(rounds, node, static_cast<int64_t>(i) / kDenseCols, static_cast<int64_t>(i) % kDenseCols)};
  };
  const auto furthest_mean = [&] {
    double most = 0;
    for (size_t i = 0; i < sums.size(); ++i)
      most = std::max(most, std::abs((value(0, i) + value(1, i) + value(2, i)) / 3 - sums[i]));
    return most;
  };
  rounds.round();
  EXPECT_GT(furthest_mean(), 0.1);  // one round cannot say all
  for (int round = 0; round < 60; ++round) rounds.round();
  EXPECT_LT(furthest_mean(), 1e-3);
  const auto rest = rounds.mean_of(rounds.replicas[0]->rest_size(),
                                   [](DenseReplica& replica, std::span<float> values) { replica.bring_rest(values); });
  for (auto& replica : rounds.replicas) replica->take_rest(rest);
  for (size_t node = 0; node < 3; ++node)
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(value(node, i), sums[i], 1e-3);
}

// Of three nodes the last dies in the middle of a round, with and without what it brought; another trains on meanwhile.
TEST(DenseReplica, ARoundThatIsCutShortIsTakenBackOrAdopted) {
  for (const bool first_has_means : {false, true}) {
    Rounds rounds(3, combined_by(Combine::kSum));
    for (size_t node = 0; node < 3; ++node) at(rounds, node, 2, 0) += static_cast<float>(1 + node);
    rounds.bring();
    at(rounds, 1, 2, 0) += 10;
    DenseReplica &first = *rounds.replicas[0], &second = *rounds.replicas[1];
    if (first_has_means) {
      first.take(rounds.means);
      std::vector<float> agreed(static_cast<size_t>(first.agreed_size()));
      first.copy_agreed(agreed);
      second.adopt(agreed);
      EXPECT_EQ(at(rounds, 0, 2, 0), 6);
      EXPECT_EQ(at(rounds, 1, 2, 0), 16);
    } else {
      first.undo();
      second.undo();
      second.undo();  // there is nothing to be taken back any more
      EXPECT_EQ(at(rounds, 0, 2, 0), 1);
      EXPECT_EQ(at(rounds, 1, 2, 0), 12);
    }
    rounds.replicas.pop_back();
    first.set_nodes(2);
    second.set_nodes(2);
    rounds.round();
    for (size_t node = 0; node < 2; ++node) EXPECT_EQ(at(rounds, node, 2, 0), first_has_means ? 16 : 13);
  }
}

TEST(DenseReplica, DampsRowsThatEveryNodeAloneHasBroughtToRest) {
  DenseTable damped = combined_by(Combine::kDamped);
  damped.pull = {0, 1e6f, 0, 0, 0};
  Rounds rounds(4, damped);
  rounds.set_trained(1);
  for (size_t node = 0; node < 4; ++node)
    for (int64_t row = 0; row < 2; ++row) at(rounds, node, row, 3) += 1;
  rounds.round();
  EXPECT_NEAR(at(rounds, 2, 0, 3), 4, 1e-5);  // never at rest: all that was done
  EXPECT_NEAR(at(rounds, 2, 1, 3), 1, 1e-2);  // each alone was there
}

TEST(DenseReplica, AlreadyTheFirstRoundIsDampedByHowLongTheOtherTablesRowsAre) {
  constexpr int64_t kNodes = 4;
  constexpr float kPull = 0.1f, kLong = 3;
  Matrix tables[2];
  std::vector<DenseTable> both;
  for (Matrix& table : tables) {
    table = std::move(Matrix::make(kDenseRows, kDenseCols)).value();
    DenseTable damped = combined_by(Combine::kDamped);
    damped.pull.assign(kDenseRows, kPull);
    damped.live = &table;
    damped.against = 1 - std::ssize(both);
    both.push_back(damped);
  }
  for (int64_t row = 0; row < kDenseRows; ++row) tables[1].row(row)[0] = kLong;
  const auto replica = std::move(DenseReplica::make({kNodes, both})).value();
  tables[0].row(2)[1] += 1;
  replica->set_trained(1);
  std::vector<float> values(static_cast<size_t>(replica->size()));
  replica->bring(values);
  EXPECT_NEAR(values[2 * kDenseCols + 1], damped_share(kPull * kLong * kLong, kNodes), 1e-3);
}

// It begins elsewhere: what it adds counts as it would by a node that was there from the beginning.
TEST(DenseReplica, OneThatJoinsGoesOnFromWhatTheOthersAgreedTo) {
  DenseTable damped = combined_by(Combine::kDamped);
  damped.pull.assign(kDenseRows, 0.1f);
  Rounds rounds(2, damped);
  for (int64_t node = 0; node < 2; ++node) at(rounds, static_cast<size_t>(node), 2, node) += 3;
  Matrix elsewhere = std::move(Matrix::make(kDenseRows, kDenseCols)).value();
  elsewhere.row(1)[1] = 7;
  damped.live = &elsewhere;
  const auto newcomer = std::move(DenseReplica::make({3, {damped}})).value();
  for (int round = 0; round < 2; ++round) rounds.round();  // the second measures what the first has made
  std::vector<float> agreed(static_cast<size_t>(newcomer->agreed_size()));
  rounds.replicas[0]->copy_agreed(agreed);
  newcomer->adopt(agreed);
  for (int64_t i = 0; i < kDenseRows * kDenseCols; ++i)
    EXPECT_NEAR(elsewhere.row(i / kDenseCols)[i % kDenseCols], at(rounds, 0, i / kDenseCols, i % kDenseCols), 1e-6);

  DenseReplica& old = *rounds.replicas[0];
  std::vector<float> by_old(static_cast<size_t>(old.size())), by_new(by_old.size());
  old.set_nodes(3);
  for (Matrix* table : {&rounds.tables[0], &elsewhere}) table->row(2)[0] += 1;
  for (DenseReplica* replica : {&old, newcomer.get()}) {
    replica->set_trained(1);
    replica->bring(replica == &old ? by_old : by_new);
  }
  for (size_t i = 0; i < by_old.size(); ++i) EXPECT_NEAR(by_new[i], by_old[i], 1e-5);
}

}  // namespace
}  // namespace streamvec
