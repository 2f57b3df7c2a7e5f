#include "streamvec/sync/simulated_cluster.h"

#include <algorithm>

#include "streamvec/sync/row_stream.h"
#include "streamvec/sync/simulated_node.h"

namespace streamvec {
namespace {

constexpr int32_t kSettlingSteps = 3'000;  // a cluster that is not quiet by then hangs

}  // namespace

SimulatedCluster::SimulatedCluster(const Options& options) : options_(options), random_(options.seed) {
  for (int32_t i = 0; i < options.nodes; ++i) add_node();
  change_view();
}

SimulatedCluster::~SimulatedCluster() = default;

SimulatedCluster::Node& SimulatedCluster::add_node(float first_value) {
  auto node = std::make_unique<Node>();
  node->id = next_id_++;
  SyncOptions sync;
  sync.self = node->id;
  sync.scheme = options_.scheme;
  // Where rows change hands, the last column has the change with which the row began.
  const int64_t columns = int64_t{options_.nodes_ever} * std::max(options_.marks, 1) + (options_.turnover > 0 ? 1 : 0);
  sync.dim = columns;
  sync.key_end = static_cast<RowKey>(options_.rows);
  sync.message_rows_max = 3;
  node->generations = std::make_unique<Generations>(options_.rows / kTables, kTables);
  for (int64_t slot = 0; slot < options_.rows / kTables; ++slot) node->generations->begin(slot, 0);
  sync.generations = node->generations.get();
  sync.initial = [raw = node.get()](RowKey key, std::span<float> row) {
    const auto born = raw->generations->born(key);
    if (born == 0) return raw->replica->known_value(key, row);
    std::fill(row.begin(), row.end(), 0.0f);
    row.back() = static_cast<float>(born);
  };
  std::vector<Matrix*> live;
  for (Matrix& table : node->tables) {
    table = std::move(Matrix::make(options_.rows / kTables, columns)).value();
    for (int64_t i = 0; i < table.rows(); ++i) std::fill_n(table.row(i), columns, first_value);
    live.push_back(&table);
  }
  node->replica = std::move(Replica::make(sync, live)).value();
  node->server = std::move(make_row_server(sync)).value();
  node->trained.assign(static_cast<size_t>(options_.rows), 0);
  node->staleness = options_.scheme.staleness;
  hear_of_changes(*node, changes_.size());
  return *(nodes_[node->id] = std::move(node));
}

std::vector<NodeId> SimulatedCluster::members() const {
  std::vector<NodeId> members;
  for (const auto& [id, node] : nodes_)
    if (!node->left_out) members.push_back(id);
  return members;
}

void SimulatedCluster::change_view() {
  ++view_.epoch;
  view_.workers = members();
  view_.servers.clear();
  view_.retired.clear();
  const auto owns = [&](NodeId id) { return retired_.count(id) == 0; };
  if (std::none_of(view_.workers.begin(), view_.workers.end(), owns)) retired_.clear();
  for (const NodeId id : view_.workers) (owns(id) ? view_.servers : view_.retired).push_back(id);
  if (options_.forget_retired) view_.retired.clear();
  for (const NodeId id : view_.workers) news_.push_back({now_ + random_.uniform(), {id, view_}});
}

void SimulatedCluster::hear_of_view(NodeId id, const View& view) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Node& node = *found->second;
  if (is_among(view.workers, id)) {
    Outbox out;
    node.server->set_view(view, out);
    node.replica->set_view(view, out);
    return send_out(node, out);
  }
  if (options_.readmit) {
    node.left_out = false;
    return change_view();
  }
  dead_[id] = std::move(found->second);
  nodes_.erase(found);
}

std::string SimulatedCluster::run() {
  for (int32_t i = 0; i < options_.steps && broken_.empty(); ++i) step();
  if (broken_.empty() && !settle()) broken_ = "the cluster does not come to rest";
  if (!broken_.empty()) return broken_;
  for (auto& [id, node] : dead_)
    for (uint64_t stamp = node->generations->stamp() + 1; stamp <= changes_.size(); ++stamp)
      for (int32_t table = 0; table < kTables; ++table)
        forget_trained(*node, static_cast<RowKey>(changes_[stamp - 1] * kTables + table));
  return options_.marks > 0 ? check_marks() : check();
}

void SimulatedCluster::step() {
  for (auto& [id, node] : nodes_) {
    if (is_stopped(*node)) continue;
    if (options_.change_bound > 0 && random_.uniform() < options_.change_bound) change_bound(*node);
    if (random_.uniform() < 0.5f) train(*node);
    if (random_.uniform() < 0.3f) begin_push(*node, false);
  }
  if (options_.turnover > 0 && random_.uniform() < options_.turnover)
    changes_.push_back(random_.below(static_cast<uint32_t>(options_.rows / kTables)));
  if (random_.uniform() < options_.crash) crash_one();
  if (random_.uniform() < options_.join) join_one();
  if (options_.retire > 0 && random_.uniform() < options_.retire) retire_one();
  if (options_.cut > 0 && random_.uniform() < options_.cut) cut_some();
  if (options_.stop > 0 && random_.uniform() < options_.stop) stop_one();
  tick_all();
}

// The views, then the frames, whose time has come, in an order of chance.
void SimulatedCluster::tick_all() {
  now_ += 0.05;
  leave_out_lost();
  for (size_t i = 0; i < news_.size();) {
    const auto [due, news] = news_[i];
    if (due > now_ || is_away(news.first)) {
      ++i;
      continue;
    }
    news_.erase(news_.begin() + static_cast<std::ptrdiff_t>(i));
    hear_of_view(news.first, news.second);
  }
  for (auto& [id, node] : nodes_)
    if (!is_stopped(*node) && node->generations->stamp() < changes_.size() && random_.uniform() < 0.2f)
      hear_of_changes(*node, 1);
  std::vector<Frame> due;
  for (size_t i = 0; i < network_.size();) {
    if (network_[i].due > now_) {
      ++i;
      continue;
    }
    due.push_back(std::move(network_[i]));
    network_[i] = std::move(network_.back());
    network_.pop_back();
  }
  for (const Frame& frame : due) deliver(frame);
  for (auto& [id, node] : nodes_)
    for (auto& [other, link] : node->links) {
      if (is_stopped(*node)) break;
      std::vector<std::string> frames;
      link.tick(now_, frames);
      post(id, other, frames);
    }
}

void SimulatedCluster::receive(Node& node, NodeId from, const std::string& bytes) {
  Result<Message> message = decode_message(bytes, {.key_end = static_cast<RowKey>(options_.rows)});
  if (!message.ok()) {
    broken_ = message.status().message();
    return;
  }
  plant(node, *message);
  if (!node.early.keep(from, *message, *node.generations)) take(node, from, *message);
}

void SimulatedCluster::take(Node& node, NodeId from, const Message& message) {
  const bool to_server = message.kind == MessageKind::kPush || message.kind == MessageKind::kKnown ||
                         message.kind == MessageKind::kGiven || message.kind == MessageKind::kTaken;
  if (message.kind == MessageKind::kUpdate)
    for (const WorkerClock& known : message.clocks)
      for (Node::Push& push : node.pushes)
        if (known.server == from && known.worker == node.id && push.server == from && push.clock <= known.clock)
          push.acknowledged = true;
  if (message.kind == MessageKind::kRefused)
    std::erase_if(node.pushes, [&](const Node::Push& push) {
      return push.server == from && push.clock == message.clock && !push.acknowledged;
    });
  if (is_left_out(from) && !node.left_out) ++said_late_;
  Outbox out;
  const Status status =
      to_server ? node.server->receive(from, message, out) : node.replica->receive(from, message, out);
  if (!status.ok()) broken_ = status.message();
  send_out(node, out);
}

// The next so many changes of hands.
void SimulatedCluster::hear_of_changes(Node& node, size_t count) {
  for (; count > 0; --count) {
    const uint64_t stamp = node.generations->stamp() + 1;
    const int64_t slot = changes_[stamp - 1];
    node.generations->begin(slot, stamp);
    node.generations->go_to(stamp);
    for (int32_t table = 0; table < kTables; ++table) begin_anew(node, static_cast<RowKey>(slot * kTables + table));
  }
  node.early.release(*node.generations, [&](NodeId from, const Message& message) { take(node, from, message); });
}

void SimulatedCluster::begin_anew(Node& node, RowKey key) {
  const std::span<float> live = node.tables[key % kTables].view().row_span(key / kTables);
  std::fill(live.begin(), live.end(), 0.0f);
  live.back() = static_cast<float>(node.generations->born(key));
  node.replica->restart(key, live);
  node.server->restart(key, live);
  forget_trained(node, key);
}

void SimulatedCluster::forget_trained(Node& node, RowKey key) const {
  node.trained[key] = 0;
  for (std::set<RowKey>& rows : node.marks) rows.erase(key);
}

// Puts the wanted faults into a message that has come.
void SimulatedCluster::plant(const Node& node, Message& message) const {
  if (options_.ignore_epoch) message.epoch = node.replica->epoch();
  if (options_.ignore_generation) message.stamp = node.generations->stamp();
  if (options_.skip_broadcast && message.kind == MessageKind::kValues && node.pushes.empty()) {
    message.rows.clear();
    message.payload.clear();
  }
}

void SimulatedCluster::send_out(Node& node, Outbox& out) {
  for (Outgoing& outgoing : out) {
    if (outgoing.message.kind == MessageKind::kPush) ++pushes_;
    std::vector<std::string> frames;
    node.link(outgoing.to).send(encode(outgoing.message), now_, frames);
    post(node.id, outgoing.to, frames);
  }
}

bool SimulatedCluster::may_train(const Node& node) const {
  return options_.ignore_bound || node.replica->may_train();
}

// To any of those that StalenessFinder has, or to the tightest.
void SimulatedCluster::change_bound(Node& node) {
  constexpr int64_t kBounds[] = {0, 1, 2, 4, 8, INT64_MAX};
  node.staleness = kBounds[random_.below(std::size(kBounds))];
  node.replica->set_staleness(node.staleness);
}

// Adds a whole number to some rows, in the worker's own column.
void SimulatedCluster::train(Node& node) {
  if (!node.replica->settled() || !may_train(node)) return;
  if (options_.marks > 0) return;  // a push brings its own
  if (options_.stamp_clocks) return read_stamps(node);
  for (int32_t i = 0; i < 3; ++i) {
    const RowKey key = random_.below(static_cast<uint32_t>(options_.rows - options_.untrained));
    const auto amount = static_cast<int64_t>(1 + random_.below(5));
    node.tables[key % kTables].row(key / kTables)[node.id - 1] += static_cast<float>(amount);
    node.trained[key] += amount;
  }
}

void SimulatedCluster::read_stamps(const Node& node) {
  for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key)
    for (const auto& [id, other] : nodes_) {
      const auto stamped = static_cast<int64_t>(node.tables[key % kTables].row(key / kTables)[id - 1]);
      const int64_t staleness = node.replica->clock() - stamped;
      staleness_most_ = std::max(staleness_most_, staleness);
      too_stale_ += staleness > node.staleness ? 1 : 0;
      ++reads_;
    }
}

// The push that begins will have everything of this clock in it.
void SimulatedCluster::stamp(Node& node) {
  const int64_t clock = node.replica->clock() + 1;
  for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key) {
    node.tables[key % kTables].row(key / kTables)[node.id - 1] = static_cast<float>(clock);
    node.trained[key] = clock;
  }
}

void SimulatedCluster::mark(Node& node, std::span<const RowKey> due) {
  if (std::ssize(node.marks) >= options_.marks) return;
  const int64_t column = int64_t{node.id - 1} * options_.marks + std::ssize(node.marks);
  for (const RowKey key : due) node.tables[key % kTables].row(key / kTables)[column] += 1;
  node.marks.emplace_back(due.begin(), due.end());
}

void SimulatedCluster::begin_push(Node& node, bool all) {
  if (!node.replica->idle()) return;
  Outbox out;
  if (!may_train(node)) {
    node.replica->refresh(out);
    return send_out(node, out);
  }
  std::vector<RowKey> due;
  for (RowKey key = 0; key < static_cast<RowKey>(all ? options_.rows : options_.rows - options_.untrained); ++key)
    if (all || options_.stamp_clocks || random_.uniform() < 0.5f) due.push_back(key);
  if (options_.stamp_clocks && !all) stamp(node);
  if (!all) mark(node, due);
  if (options_.other_codec > 0)
    node.replica->set_codec(random_.uniform() < options_.other_codec ? CodecKind::kFp16 : options_.scheme.codec);
  node.replica->begin(due, out);
  if (options_.drop_residual)
    for (const Outgoing& outgoing : out) drop_residual(node, outgoing.message);
  for (const Outgoing& outgoing : out) {
    Node::Push push{outgoing.to, outgoing.message.clock, outgoing.message.stamp, false, {}};
    for (const RowKey key : outgoing.message.rows) push.totals[key] = node.trained[key];
    node.pushes.push_back(std::move(push));
  }
  ++node.settling;
  send_out(node, out);
}

// Leaves of the rows of a push what the worker knows and what the push says.
void SimulatedCluster::drop_residual(Node& node, const Message& push) {
  RowReader said(node.tables[0].cols());
  STREAMVEC_CHECK(said.begin(push.codec, push.payload, std::ssize(push.rows)).ok());
  for (size_t i = 0; i < push.rows.size(); ++i) {
    const MatrixView<float> table = node.tables[push.rows[i] % kTables].view();
    const auto slot = static_cast<int64_t>(push.rows[i] / kTables);
    node.replica->known_value(push.rows[i], table.row_span(slot));
    said.add(static_cast<int64_t>(i), 1, table.row(slot));
  }
}

void SimulatedCluster::crash_one() {
  const std::vector<NodeId> all = members();
  if (all.size() < 2) return;
  const NodeId victim = all[random_.below(static_cast<uint32_t>(all.size()))];
  if (first_leads() && victim == all.front()) return;
  ++crashes_;
  dead_[victim] = std::move(nodes_.at(victim));
  nodes_.erase(victim);
  change_view();
}

void SimulatedCluster::join_one() {
  if (next_id_ > static_cast<NodeId>(options_.nodes_ever)) return;
  if (!first_leads()) {
    add_node();
    return change_view();
  }
  const Replica& first = *nodes_.begin()->second->replica;
  if (!first.idle()) return;  // until it can tell
  constexpr float kStray = 5;
  Node& newcomer = add_node(kStray);
  Outbox out;
  if (!options_.skip_base) first.tell_base(newcomer.id, out);
  for (const Outgoing& outgoing : out) STREAMVEC_CHECK(newcomer.replica->take_base(outgoing.message).ok());
  change_view();
}

// Of those that own rows, or have, any one; where the only one would, nobody does.
void SimulatedCluster::retire_one() {
  const NodeId id = view_.workers[random_.below(static_cast<uint32_t>(view_.workers.size()))];
  if (retired_.erase(id) == 0) {
    if (view_.servers.size() == 1) return;
    retired_.insert(id);
    ++retirements_;
  }
  change_view();
}

// No crash and no training from here on: all workers push everything until every one has done so a few times, and
// again, so that every one has heard of all.
bool SimulatedCluster::settle() {
  for (int32_t pass = 0; pass < 2; ++pass) {
    for (auto& [id, node] : nodes_) node->settling = 0;
    bool done = false;
    for (int32_t i = 0; !done; ++i) {
      if (i == kSettlingSteps || !broken_.empty()) return false;
      tick_all();
      done = news_.empty();
      for (auto& [id, node] : nodes_) {
        done = done && node->generations->stamp() == changes_.size() && !node->left_out;
        if (!node->left_out && !is_stopped(*node)) begin_push(*node, true);
        done = done && node->settling >= options_.settling;
      }
    }
  }
  return true;
}

}  // namespace streamvec
