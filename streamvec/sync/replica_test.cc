#include "streamvec/sync/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace streamvec {
namespace {

constexpr int64_t kDim = 4;
constexpr double kPull = 0.5;

// Two workers of one owner, two rows in two tables; `pull` of row 0 of the first table is kPull, that of the others 0.
struct Pair {
  Pair() {
    for (NodeId id = 1; id <= 2; ++id) {
      SyncOptions options;
      options.self = id;
      options.scheme = {Admission::kBsp, Combine::kDamped, CodecKind::kFp32};
      options.dim = kDim;
      options.key_end = 4;
      options.pull = &pulls;
      options.initial = [](RowKey, std::span<float> row) { std::fill(row.begin(), row.end(), 1.0f); };
      for (Matrix& table : tables[id - 1]) {
        table = std::move(Matrix::make(2, kDim)).value();
        for (int64_t i = 0; i < 2; ++i) std::fill_n(table.row(i), kDim, 1.0f);
      }
      replicas[id - 1] = std::move(Replica::make(options, {&tables[id - 1][0], &tables[id - 1][1]})).value();
      if (id == 1) server = std::move(make_row_server(options)).value();
    }
    const View view{1, {1, 2}, {1}};
    Outbox of_server;
    server->set_view(view, of_server);
    deliver(1, of_server);
    for (NodeId worker = 1; worker <= 2; ++worker) {
      Outbox out;
      replicas[worker - 1]->set_view(view, out);
      deliver(worker, out);
    }
    EXPECT_TRUE(server->ready());
  }

  void deliver(NodeId from, const Outbox& out) {
    for (const auto& [to, message] : out) {
      const bool to_owner = message.kind == MessageKind::kKnown || message.kind == MessageKind::kGiven ||
                            message.kind == MessageKind::kTaken;
      Outbox more;
      EXPECT_TRUE(
          (to_owner ? server->receive(from, message, more) : replicas[to - 1]->receive(from, message, more)).ok());
      deliver(to, more);
    }
  }

  // Every worker pushes everything; the answers wait in `answers`.
  void push() {
    const std::vector<RowKey> all = {0, 1, 2, 3};
    for (NodeId worker = 1; worker <= 2; ++worker) {
      Outbox out;
      replicas[worker - 1]->begin(all, out);
      for (const Outgoing& outgoing : out) EXPECT_TRUE(server->receive(worker, outgoing.message, answers).ok());
    }
  }
  void answer() { deliver(1, std::exchange(answers, {})); }
  void trained(double steps) {
    for (auto& replica : replicas) replica->set_trained(steps);
  }

  std::vector<float> pulls = {kPull, 0, 0, 0};
  Matrix tables[2][2];
  std::unique_ptr<Replica> replicas[2];
  std::unique_ptr<RowServer> server;
  Outbox answers;
};

TEST(Replica, DampsWhatIsPulledAndAddsWhatIsNot) {
  Pair pair;
  pair.trained(1);
  pair.push();  // tells how long rows are: squared, kDim
  pair.answer();
  for (auto& tables : pair.tables)
    for (int64_t row = 0; row < 2; ++row) tables[0].row(row)[0] += 1;
  pair.trained(2);
  pair.push();
  pair.answer();
  const double share = damped_share(kPull * kDim, 2);
  for (auto& tables : pair.tables) {
    EXPECT_NEAR(tables[0].row(0)[0], 1 + 2 * share, 0.01);
    EXPECT_NEAR(tables[0].row(1)[0], 3, 1e-5);
  }
}

TEST(Replica, ALateAnswerMovesWhatWasTrainedMeanwhileLess) {
  Pair pair;
  pair.trained(1);
  pair.push();
  pair.answer();
  for (int64_t row = 0; row < 2; ++row) pair.tables[0][0].row(row)[0] += 1;  // the first worker alone
  pair.push();
  pair.trained(3);
  pair.answer();
  EXPECT_NEAR(pair.tables[1][0].row(0)[0], 1 + std::exp(-kPull * kDim * 2), 0.01);
  EXPECT_NEAR(pair.tables[1][0].row(1)[0], 2, 1e-5);
  std::vector<float> known(kDim);
  pair.replicas[1]->known_value(0, known);  // what the owner has is known in full
  EXPECT_NEAR(known[0], 2, 0.01);
}

}  // namespace
}  // namespace streamvec
