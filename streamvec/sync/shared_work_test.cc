#include "streamvec/sync/shared_work.h"

#include <gtest/gtest.h>

#include <utility>

#include "streamvec/core/random.h"
#include "streamvec/sync/replica.h"

namespace streamvec {
namespace {

constexpr int64_t kSharedRows = 4'000, kSharedDim = 8;

// Two nodes, both workers and owners, in step for a few rounds of made-up training.
class TwoNodes {
 public:
  TwoNodes(CodecKind codec, Combine combine, Crew* crew) {
    for (NodeId id = 1; id <= 2; ++id) {
      SyncOptions options;
      options.self = id;
      options.scheme = {Admission::kBsp, combine, codec};
      options.dim = kSharedDim;
      options.key_end = 2 * kSharedRows;
      options.crew = crew;
      options.initial = [](RowKey, std::span<float> row) { std::fill(row.begin(), row.end(), 0.0f); };
      for (Matrix& table : tables[id - 1]) table = std::move(Matrix::make(kSharedRows, kSharedDim)).value();
      replicas_[id - 1] = std::move(Replica::make(options, {&tables[id - 1][0], &tables[id - 1][1]})).value();
      servers_[id - 1] = std::move(make_row_server(options)).value();
    }
    for (NodeId id = 1; id <= 2; ++id) {
      Outbox out;
      servers_[id - 1]->set_view({1, {1, 2}, {1, 2}}, out);
      replicas_[id - 1]->set_view({1, {1, 2}, {1, 2}}, out);
      deliver(id, out);
    }
  }

  void round(Random& random) {
    for (NodeId id = 1; id <= 2; ++id) {
      std::vector<RowKey> due;
      for (RowKey key = 0; key < 2 * kSharedRows; ++key)
        if (random.uniform() < 0.8f) due.push_back(key);
      for (const RowKey key : due)
        for (float& value : tables[id - 1][key % 2].view().row_span(key / 2)) value += random.uniform() - 0.5f;
      Outbox out;
      replicas_[id - 1]->begin(due, out);
      deliver(id, out);
    }
    ASSERT_TRUE(replicas_[0]->idle() && replicas_[1]->idle());
  }

  Matrix tables[2][2];

 private:
  void deliver(NodeId from, const Outbox& out) {
    for (const auto& [to, message] : out) {
      const bool to_owner = message.kind == MessageKind::kPush || message.kind == MessageKind::kKnown ||
                            message.kind == MessageKind::kGiven || message.kind == MessageKind::kTaken;
      Outbox more;
      ASSERT_TRUE(
          (to_owner ? servers_[to - 1]->receive(from, message, more) : replicas_[to - 1]->receive(from, message, more))
              .ok());
      deliver(to, more);
    }
  }

  std::unique_ptr<Replica> replicas_[2];
  std::unique_ptr<RowServer> servers_[2];
};

TEST(SharedWork, IsDividedOnlyWhenThereIsEnoughAndSomebodyHelps) {
  EXPECT_EQ(parts_of(nullptr, 1'000'000), 1);
  Crew crew(3);
  EXPECT_EQ(parts_of(&crew, 0), 1);
  EXPECT_EQ(parts_of(&crew, 1'100), 2);
  EXPECT_EQ(parts_of(&crew, 1'000'000), 8);
}

class SharedWorkOf : public testing::TestWithParam<std::pair<CodecKind, Combine>> {};

TEST_P(SharedWorkOf, IsWhatOneThreadWouldDoToTheLastBit) {
  const auto [codec, combine] = GetParam();
  Crew crew(3);
  TwoNodes alone(codec, combine, nullptr), helped(codec, combine, &crew);
  Random one(7), other(7);
  for (int i = 0; i < 4; ++i) {
    alone.round(one);
    helped.round(other);
  }
  for (int node = 0; node < 2; ++node)
    for (int table = 0; table < 2; ++table)
      for (int64_t row = 0; row < kSharedRows; ++row) {
        const float* a = alone.tables[node][table].row(row);
        ASSERT_TRUE(std::equal(a, a + kSharedDim, helped.tables[node][table].row(row))) << node << table << " " << row;
      }
}

INSTANTIATE_TEST_SUITE_P(Codecs, SharedWorkOf,
                         testing::Values(std::pair{CodecKind::kOneBit, Combine::kSum},
                                         std::pair{CodecKind::kFp32, Combine::kAdasum},
                                         std::pair{CodecKind::kStrom, Combine::kMean}));

}  // namespace
}  // namespace streamvec
