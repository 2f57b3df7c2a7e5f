#include "streamvec/sync/handover.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "streamvec/sync/replica.h"

namespace streamvec {
namespace {

constexpr NodeId kDead = 1, kWorker = 2, kSelf = 4, kOther = 9;
constexpr RowKey kKeys = 12;

SyncOptions options_of(NodeId self) {
  SyncOptions options;
  options.self = self;
  options.scheme.admission = Admission::kAsync;
  options.dim = 1;
  options.key_end = kKeys;
  options.initial = [](RowKey, std::span<float> row) { row[0] = 0; };
  return options;
}

// By row that a message tells: up to where the worker's pushes to `kDead` are in it.
std::map<RowKey, int64_t> clocks_told(const Outbox& out) {
  std::map<RowKey, int64_t> clocks;
  for (const Outgoing& told : out)
    for (const RowKey key : told.message.rows) clocks[key] = clock_of(told.message.clocks, kDead, kWorker);
  return clocks;
}

// What the worker knows of a row that `kDead` had, with the worker's pushes up to `clock` in it, and no more rows.
void tell_row(RowServer& server, uint32_t epoch, RowKey key, int64_t clock, Outbox& out) {
  Message known;
  known.kind = MessageKind::kKnown;
  known.epoch = epoch;
  known.version = clock;
  known.clocks = {{kDead, kWorker, clock}};
  known.rows = {key};
  known.payload.resize(sizeof(float));
  ASSERT_TRUE(server.receive(kWorker, known, out).ok());
}

void give_nothing(RowServer& server, uint32_t epoch, NodeId from, Outbox& out) {
  Message given;
  given.kind = MessageKind::kGiven;
  given.epoch = epoch;
  ASSERT_TRUE(server.receive(from, given, out).ok());
}

// The first row whose owner among both is that one.
RowKey row_of(NodeId owner) {
  const std::vector<NodeId> both = {kSelf, kOther};
  RowKey key = 0;
  while (owner_of(key, both) != owner) ++key;
  return key;
}

TEST(Handover, EachRowKeepsTheClocksOfTheStateThatItCameFrom) {
  const std::unique_ptr<RowServer> server = std::move(make_row_server(options_of(kSelf))).value();
  const RowKey early = row_of(kSelf), late = row_of(kOther);
  Outbox out;
  // One that had heard more of the dead owner has told us one row of it; whoever had the other is lost before it tells.
  server->set_view({1, {kWorker}, {kSelf, kOther}}, out);
  give_nothing(*server, 1, kSelf, out);
  give_nothing(*server, 1, kOther, out);
  tell_row(*server, 1, early, 5, out);
  server->set_view({2, {kWorker}, {kSelf}}, out);
  give_nothing(*server, 2, kSelf, out);
  tell_row(*server, 2, late, 3, out);
  ASSERT_TRUE(server->ready());
  out.clear();
  server->set_view({3, {kWorker}, {kOther}}, out);
  EXPECT_EQ(clocks_told(out), (std::map<RowKey, int64_t>{{early, 5}, {late, 3}}));
}

// A worker that was told two rows of a dead owner's states by the owner after it, which is then lost, too.
std::map<RowKey, int64_t> clocks_that_a_worker_tells(bool confirmed) {
  Matrix table = std::move(Matrix::make(kKeys, 1)).value();
  const std::unique_ptr<Replica> replica = std::move(Replica::make(options_of(kWorker), {&table})).value();
  Outbox out;
  replica->set_view({1, {kWorker}, {kSelf}}, out);
  for (const int64_t clock : {5, 3, 0}) {
    Message values;
    values.kind = MessageKind::kValues;
    values.epoch = 1;
    values.last = clock == 0;
    values.clocks = {{kSelf, kWorker, 0}};
    if (!values.last) {
      values.clocks.push_back({kDead, kWorker, clock});
      values.rows = {static_cast<RowKey>(clock)};
      values.payload.resize(sizeof(float));
    }
    EXPECT_TRUE(replica->receive(kSelf, values, out).ok());
  }
  Message update;
  update.kind = MessageKind::kUpdate;
  update.epoch = 1;
  update.confirmed = confirmed;
  EXPECT_TRUE(replica->receive(kSelf, update, out).ok());
  out.clear();
  replica->set_view({2, {kWorker}, {kOther}}, out);
  return clocks_told(out);
}

TEST(Handover, WorkersTellEachRowsClocksUntilNobodyAsksAnyMore) {
  EXPECT_EQ(clocks_that_a_worker_tells(false), (std::map<RowKey, int64_t>{{5, 5}, {3, 3}}));
  EXPECT_EQ(clocks_that_a_worker_tells(true), (std::map<RowKey, int64_t>{{5, 0}, {3, 0}}));
}

}  // namespace
}  // namespace streamvec
