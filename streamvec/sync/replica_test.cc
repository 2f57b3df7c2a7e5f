#include "streamvec/sync/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace streamvec {
namespace {

constexpr int64_t kReplicaDim = 4;
constexpr double kPull = 0.5;
constexpr float kLittle = 1e-12f;

// Ones in the first table; the second pulls along the first column by 4, across by 1.
void begin_row(RowKey key, std::span<float> row) {
  std::fill(row.begin(), row.end(), key % 2 == 0 ? 1.0f : 0.0f);
  if (key % 2 == 0) return;
  row[0] = 2;
  row[1] = key == 1 ? 1.0f : -1.0f;
}

// Two workers of one owner, two rows in two tables; `pull` of row 0 of the first table is kPull, that of the second row
// 0, and those of the second table next to it.
struct Pair {
  explicit Pair(CodecKind codec = CodecKind::kFp32, Admission admission = Admission::kBsp, int64_t staleness = 2,
                int32_t backups = 0) {
    for (NodeId id = 1; id <= 2; ++id) {
      SyncOptions options;
      options.self = id;
      options.scheme = {admission, Combine::kDamped, codec};
      options.scheme.staleness = staleness;
      options.scheme.backups = backups;
      options.dim = kReplicaDim;
      options.key_end = 4;
      options.pull = &pulls;
      options.initial = begin_row;
      for (Matrix& table : tables[id - 1]) table = std::move(Matrix::make(2, kReplicaDim)).value();
      for (RowKey key = 0; key < 4; ++key) begin_row(key, tables[id - 1][key % 2].view().row_span(key / 2));
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

  std::vector<float> pulls = {kPull, kLittle, 0, kLittle};
  Matrix tables[2][2];
  std::unique_ptr<Replica> replicas[2];
  std::unique_ptr<RowServer> server;
  Outbox answers;
};

TEST(Replica, KnowsManyRowsFromTheFirstAlsoWithACrew) {
  constexpr int64_t kRows = 5'003;
  Crew crew(2);
  Matrix table = std::move(Matrix::make(kRows, kReplicaDim)).value();
  for (int64_t i = 0; i < kRows; ++i) table.row(i)[1] = static_cast<float>(i + 1);
  SyncOptions options;
  options.dim = kReplicaDim;
  options.key_end = kRows;
  options.crew = &crew;
  const std::unique_ptr<Replica> replica = std::move(Replica::make(options, {&table})).value();
  std::vector<float> value(kReplicaDim);
  for (RowKey key = 0; key < kRows; ++key) {
    replica->known_value(key, value);
    ASSERT_EQ(value[1], static_cast<float>(key + 1));
  }
}

TEST(LateServer, AwaitsWhoIsHalfAsFarBehindAsWouldHoldOthersUp) {
  Pair pair(CodecKind::kFp32, Admission::kSsp, 4);
  for (int pushes = 0; pushes < 2; ++pushes) {
    EXPECT_FALSE(pair.server->awaits(2)) << pushes;
    Outbox out;
    pair.replicas[0]->begin({}, out);
    ASSERT_TRUE(pair.server->receive(1, out[0].message, pair.answers).ok());
    pair.answer();
  }
  EXPECT_TRUE(pair.server->awaits(2));
  EXPECT_FALSE(pair.server->awaits(1));
  EXPECT_FALSE(pair.server->awaits(7));  // nobody
}

TEST(LateServer, AwaitsNobodyWhileAllAreAsFar) {
  Pair pair(CodecKind::kFp32, Admission::kSsp, 0);
  EXPECT_FALSE(pair.server->awaits(1) || pair.server->awaits(2));
}

TEST(LateServer, WhatACodecHasLeftOutIsStillToldAfterAChangeOfMembership) {
  Pair pair(CodecKind::kOneBit, Admission::kAsync);
  constexpr RowKey kKey = 2;  // nothing pulls it
  for (int64_t k = 0; k < kReplicaDim; ++k) {
    pair.tables[0][0].row(1)[k] += k % 2 == 0 ? 0.5f : -0.25f;
    pair.tables[1][0].row(1)[k] += k < 2 ? 0.25f : -0.125f;
  }
  pair.push();  // the second is told the sum of two changes, by one bit a value
  pair.answer();
  std::vector<float> value(kReplicaDim);
  const auto difference = [&] {
    pair.replicas[1]->known_value(kKey, value);
    const Shard& rows = pair.server->rows();
    float most = 0;
    for (int64_t k = 0; k < kReplicaDim; ++k)
      most = std::max(most, std::abs(rows.row(rows.find(kKey))[k] - value[static_cast<size_t>(k)]));
    return most;
  };
  ASSERT_GT(difference(), 0.1f);
  const View view{2, {1, 2}, {1}};
  Outbox of_server;
  pair.server->set_view(view, of_server);
  pair.deliver(1, of_server);
  for (NodeId worker = 1; worker <= 2; ++worker) {
    Outbox out;
    pair.replicas[worker - 1]->set_view(view, out);
    pair.deliver(worker, out);
  }
  for (int pushes = 0; pushes < 8; ++pushes) {
    pair.push();
    pair.answer();
  }
  EXPECT_LT(difference(), 0.01f);
}

TEST(RoundServer, AwaitsNobodyWhereWorkersMayBeLeftBehind) {
  Pair pair(CodecKind::kFp32, Admission::kBackup);
  Outbox out;
  pair.replicas[0]->begin({}, out);
  ASSERT_TRUE(pair.server->receive(1, out[0].message, pair.answers).ok());
  ASSERT_TRUE(pair.answers.empty());
  EXPECT_FALSE(pair.server->awaits(2));
}

TEST(RoundServer, WhoIsLeftBehindIsToldSoInEveryCodec) {
  for (const CodecKind codec :
       {CodecKind::kFp32, CodecKind::kFp16, CodecKind::kOneBit, CodecKind::kFourBit, CodecKind::kStrom}) {
    Pair pair(codec, Admission::kBackup, 2, 1);
    pair.tables[1][0].row(1)[2] += 1;
    pair.push();  // the first makes a round alone, the second is too late for it
    ASSERT_TRUE(pair.answers.back().to == 2 && pair.answers.back().message.rows.empty()) << name_of(codec);
    pair.answer();
    EXPECT_TRUE(pair.replicas[1]->idle()) << name_of(codec);
  }
}

TEST(Scheme, OnlyABoundThatOwnersKnowMakesThemAwaitTheSlowest) {
  const auto awaits = [](Admission admission, bool adaptive = false) {
    Scheme scheme;
    scheme.admission = admission;
    scheme.adaptive = adaptive;
    return scheme.awaits_all();
  };
  EXPECT_TRUE(awaits(Admission::kBsp) && awaits(Admission::kSsp));
  EXPECT_FALSE(awaits(Admission::kSsp, true));
  EXPECT_FALSE(awaits(Admission::kBackup) || awaits(Admission::kSoftsync) || awaits(Admission::kAsync));
}

TEST(RoundServer, AwaitsWhoIsMissingInARoundThatOthersHaveBegun) {
  Pair pair;
  const std::vector<RowKey> all = {0, 1, 2, 3};
  Outbox out;
  pair.replicas[0]->begin(all, out);
  EXPECT_FALSE(pair.server->awaits(2));
  ASSERT_TRUE(pair.server->receive(1, out[0].message, pair.answers).ok());
  EXPECT_TRUE(pair.server->awaits(2));
  EXPECT_FALSE(pair.server->awaits(1));
  out.clear();
  pair.replicas[1]->begin(all, out);
  ASSERT_TRUE(pair.server->receive(2, out[0].message, pair.answers).ok());
  EXPECT_FALSE(pair.server->awaits(1) || pair.server->awaits(2));
}

TEST(Replica, DampsWhatIsPulledAndAddsWhatIsNot) {
  Pair pair;
  pair.trained(1);
  pair.push();
  pair.answer();
  for (auto& tables : pair.tables)
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t k = 0; k < 2; ++k) tables[0].row(row)[k] += 1;
  pair.trained(2);
  pair.push();
  pair.answer();
  for (auto& tables : pair.tables) {
    EXPECT_NEAR(tables[0].row(0)[0], 1 + 2 * damped_share(Replica::kAlong * kPull * 4, 2), 0.01);
    EXPECT_NEAR(tables[0].row(0)[1], 1 + 2 * damped_share(Replica::kAcross * kPull * 1, 2), 0.01);
    for (int64_t k = 0; k < 2; ++k) EXPECT_NEAR(tables[0].row(1)[k], 3, 1e-5);
  }
}

TEST(Replica, ALateAnswerMovesWhatWasTrainedMeanwhileLess) {
  Pair pair;
  pair.trained(1);
  pair.push();
  pair.answer();
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t k = 0; k < 2; ++k) pair.tables[0][0].row(row)[k] += 1;  // the first worker alone
  pair.push();
  pair.trained(11);
  pair.answer();
  EXPECT_NEAR(pair.tables[1][0].row(0)[0], 1 + std::exp(-Replica::kLate * Replica::kAlong * kPull * 4 * 10), 0.01);
  EXPECT_NEAR(pair.tables[1][0].row(0)[1], 1 + std::exp(-Replica::kLate * Replica::kAcross * kPull * 1 * 10), 0.01);
  for (int64_t k = 0; k < 2; ++k) EXPECT_NEAR(pair.tables[1][0].row(1)[k], 2, 1e-5);
  std::vector<float> known(kReplicaDim);
  pair.replicas[1]->known_value(0, known);  // what the owner has is known in full
  for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(known[k], 2, 0.01);
}

// What a push leaves over was trained before it: pushed again at once, it counts no more than it did.
TEST(Replica, WhatACoarseCodecLeavesForLaterCountsByWhenItWasTrained) {
  Pair pair(CodecKind::kOneBit);
  const auto shares_of_push = [&] {
    Outbox out;
    for (Matrix& table : pair.tables[0])
      for (int64_t k = 0; k < kReplicaDim; ++k) table.row(0)[k] += 1;
    pair.replicas[0]->begin(std::vector<RowKey>{0}, out);
    EXPECT_TRUE(pair.server->receive(1, out.at(0).message, pair.answers).ok());
    Outbox of_other;
    pair.replicas[1]->begin({}, of_other);
    EXPECT_TRUE(pair.server->receive(2, of_other.at(0).message, pair.answers).ok());
    pair.answer();
    return out.at(0).message.shares;
  };
  const auto expected = [](double steps) {
    return pack_share(damped_share(Replica::kAcross * kPull * (1 - Replica::kKept) * steps, 2));
  };
  pair.trained(50);
  shares_of_push();
  pair.trained(100);
  EXPECT_EQ(shares_of_push().at(0), expected(50 + Replica::kKept * 50));
  EXPECT_EQ(shares_of_push().at(0), expected(Replica::kKept * (50 + Replica::kKept * 50)))
      << "nothing was trained since";
}

class EveryAdmission : public ::testing::TestWithParam<Admission> {};

TEST_P(EveryAdmission, AnOwnerAnswersInTheCodecThatItIsAskedIn) {
  Pair pair(CodecKind::kFourBit, GetParam());
  pair.push();
  EXPECT_EQ(pair.answers.back().message.codec, CodecKind::kFourBit);
  pair.replicas[1]->set_codec(CodecKind::kOneBit);  // while its push is under way in the other
  pair.answer();
  for (Matrix* table : {&pair.tables[0][0], &pair.tables[1][0]}) table->row(1)[2] += 1;
  pair.push();
  EXPECT_EQ(pair.answers.back().message.codec, CodecKind::kOneBit);
  pair.answer();
  pair.replicas[1]->set_codec(CodecKind::kFourBit);
  for (int i = 0; i < 12; ++i) {
    pair.push();
    pair.answer();
  }
  for (const auto& tables : pair.tables) EXPECT_NEAR(tables[0].row(1)[2], 3, 0.02);
  pair.push();
  EXPECT_EQ(pair.answers.back().message.codec, CodecKind::kFourBit);
}

// Each draws the row to where it rests, from where both began; one that makes the steps of both, one after the other,
// goes on from where it has come to.
TEST_P(EveryAdmission, WhatTwoHaveDrawnToItsRestEndsWhereOneEndsAfterTheStepsOfBoth) {
  constexpr double kRest = 3, kSteps = 4;
  constexpr double kAlone = Replica::kAcross * kPull * 1 * kSteps;  // its pull
  Pair pair(CodecKind::kFp32, GetParam());
  pair.push();
  pair.answer();
  for (auto& tables : pair.tables)
    tables[0].row(0)[1] += static_cast<float>((kRest - tables[0].row(0)[1]) * (1 - std::exp(-kAlone)));
  pair.trained(kSteps);
  pair.push();
  pair.answer();
  for (int i = 0; i < 2; ++i) {  // so that both have heard of both
    pair.push();
    pair.answer();
  }
  for (const auto& tables : pair.tables)
    EXPECT_NEAR(tables[0].row(0)[1], 1 + (kRest - 1) * (1 - std::exp(-2 * kAlone)), 0.01);
}

INSTANTIATE_TEST_SUITE_P(RowServer, EveryAdmission,
                         ::testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync));

TEST(RowServer, DirectionsThatAreNotAsLongAsRowsAreRefused) {
  Pair pair;
  pair.trained(1);
  Outbox out;
  pair.replicas[0]->begin(std::vector<RowKey>{0, 1, 2, 3}, out);
  for (const size_t length : {size_t{0}, size_t{kReplicaDim + 1}}) {
    Message push = out[0].message;
    push.shares.assign(2 * push.rows.size(), 255);
    push.directions.assign(length, 0.0f);
    EXPECT_EQ(pair.server->receive(1, push, pair.answers).code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(pair.answers.empty());
}

}  // namespace
}  // namespace streamvec
