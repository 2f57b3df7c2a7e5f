#include "streamvec/sync/simulated_cluster.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace streamvec {
namespace {

constexpr int32_t kTables = 2;
constexpr int32_t kSettlingSteps = 3'000;  // a cluster that is not quiet by then hangs

}  // namespace

// Worker and server in one, with its links.
struct SimulatedCluster::Node {
  NodeId id = 0;
  Matrix tables[kTables];
  std::unique_ptr<Generations> generations;
  EarlyMessages early;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<RowServer> server;
  std::map<NodeId, ReliableLink> links;
  std::vector<int64_t> trained;  // by key: the whole of what this worker added
  // Its pushes in order, each with all that the worker had added by then; certain once a server that lives has
  // acknowledged it.
  struct Push {
    NodeId server = 0;
    int64_t clock = 0;
    uint64_t stamp = 0;
    bool acknowledged = false;
    std::map<RowKey, int64_t> totals;
  };
  std::vector<Push> pushes;
  std::vector<std::set<RowKey>> marks;  // by push: the rows that it left a 1 in (Options::marks)
  int32_t settling = 0;

  ReliableLink& link(NodeId other) {
    return links.try_emplace(other, ReliableLink::Options{.resend_after_s = 0.5}).first->second;
  }
};

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
  hear_of_changes(*node, changes_.size());
  return *(nodes_[node->id] = std::move(node));
}

void SimulatedCluster::change_view() {
  ++view_.epoch;
  view_.workers.clear();
  for (const auto& [id, node] : nodes_) view_.workers.push_back(id);
  view_.servers = view_.workers;
  for (const auto& [id, node] : nodes_) news_.push_back({now_ + random_.uniform(), {id, view_}});
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
    if (random_.uniform() < 0.5f) train(*node);
    if (random_.uniform() < 0.3f) begin_push(*node, false);
  }
  if (options_.turnover > 0 && random_.uniform() < options_.turnover)
    changes_.push_back(random_.below(static_cast<uint32_t>(options_.rows / kTables)));
  if (random_.uniform() < options_.crash) crash_one();
  if (random_.uniform() < options_.join) join_one();
  tick_all();
}

// The views, then the frames, whose time has come, in an order of chance.
void SimulatedCluster::tick_all() {
  now_ += 0.05;
  for (size_t i = 0; i < news_.size();) {
    if (news_[i].first > now_) {
      ++i;
      continue;
    }
    const auto [id, view] = news_[i].second;
    news_.erase(news_.begin() + static_cast<std::ptrdiff_t>(i));
    if (const auto found = nodes_.find(id); found != nodes_.end()) {
      Outbox out;
      found->second->server->set_view(view, out);
      found->second->replica->set_view(view, out);
      send_out(*found->second, out);
    }
  }
  for (auto& [id, node] : nodes_)
    if (node->generations->stamp() < changes_.size() && random_.uniform() < 0.2f) hear_of_changes(*node, 1);
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
      std::vector<std::string> frames;
      link.tick(now_, frames);
      post(id, other, frames);
    }
}

void SimulatedCluster::post(NodeId from, NodeId to, std::vector<std::string>& frames) {
  for (std::string& frame : frames) {
    const bool again = random_.uniform() < options_.repeat;
    if (again) network_.push_back({now_ + 2 * random_.uniform(), from, to, frame});
    if (random_.uniform() >= options_.loss)
      network_.push_back({now_ + 0.3 * random_.uniform(), from, to, std::move(frame)});
  }
}

void SimulatedCluster::deliver(const Frame& frame) {
  const auto found = nodes_.find(frame.to);
  if (found == nodes_.end()) return;
  Node& node = *found->second;
  std::vector<std::string> messages, frames;
  if (options_.skip_dedupe) {
    if (frame.bytes.size() > 16) messages.push_back(frame.bytes.substr(16));
  }
  std::vector<std::string> in_order;
  if (const Status status = node.link(frame.from).receive(frame.bytes, now_, in_order, frames); !status.ok())
    broken_ = status.message();
  post(node.id, frame.from, frames);
  for (const std::string& message : options_.skip_dedupe ? messages : in_order) receive(node, frame.from, message);
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

// Adds a whole number to some rows, in the worker's own column.
void SimulatedCluster::train(Node& node) {
  if (!node.replica->settled() || !node.replica->may_train()) return;
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
      staleness_most_ = std::max(staleness_most_, node.replica->clock() - stamped);
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
  if (!node.replica->may_train()) {
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
  for (const RowKey key : due)
    if (options_.drop_residual)
      node.replica->known_value(
          key, {node.tables[key % kTables].row(key / kTables), static_cast<size_t>(options_.nodes_ever)});
  for (const Outgoing& outgoing : out) {
    Node::Push push{outgoing.to, outgoing.message.clock, outgoing.message.stamp, false, {}};
    for (const RowKey key : outgoing.message.rows) push.totals[key] = node.trained[key];
    node.pushes.push_back(std::move(push));
  }
  ++node.settling;
  send_out(node, out);
}

void SimulatedCluster::crash_one() {
  if (nodes_.size() < 2) return;
  auto victim = nodes_.begin();
  std::advance(victim, random_.below(static_cast<uint32_t>(nodes_.size())));
  if (first_leads() && victim == nodes_.begin()) return;
  ++crashes_;
  dead_[victim->first] = std::move(victim->second);
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
        done = done && node->generations->stamp() == changes_.size();
        begin_push(*node, true);
        done = done && node->settling >= options_.settling;
      }
    }
  }
  return true;
}

std::string SimulatedCluster::check() {
  std::ostringstream wrong;
  const auto value = [&](const Node& node, RowKey key, int64_t column) {
    return std::llround(node.tables[key % kTables].row(key / kTables)[column - 1]);
  };
  const Node& first = *nodes_.begin()->second;
  for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key) {
    for (const auto& [id, node] : nodes_) {
      const auto began = options_.turnover > 0 ? value(*node, key, node->tables[0].cols()) : 0;
      if (began != static_cast<long long>(first.generations->born(key)))
        wrong << "row " << key << " of node " << id << " began with change " << began << ", not "
              << first.generations->born(key) << "; ";
      for (NodeId column = 1; column < next_id_; ++column)
        if (value(*node, key, column) != value(first, key, column))
          wrong << "node " << id << " and node " << first.id << " differ in row " << key << ": "
                << value(*node, key, column) << ", " << value(first, key, column) << "; ";
      if (value(first, key, id) != node->trained[key])
        wrong << "node " << id << " added " << node->trained[key] << " to row " << key << ", which has "
              << value(first, key, id) << "; ";
    }
    // What a dead worker pushed last may be in or not, in its order; what a server that lives acknowledged must be.
    for (const auto& [id, node] : dead_) {
      std::vector<int64_t> possible = {0};
      for (const Node::Push& push : node->pushes) {
        const auto total = push.totals.find(key);
        if (total == push.totals.end() || !first.generations->counts(key, push.stamp)) continue;
        if (push.acknowledged && dead_.count(push.server) == 0) possible.clear();
        possible.push_back(total->second);
      }
      if (std::find(possible.begin(), possible.end(), value(first, key, id)) == possible.end())
        wrong << "dead node " << id << " pushed " << possible.back() << " to row " << key << ", which has "
              << value(first, key, id) << "; ";
    }
  }
  return wrong.str();
}

// A push counts once: by 1 / (its group's size times its staleness) under softsync, where one that counts twice mostly
// has none of these shares (1/2 + 1/3, 1 + 1/2); by 1 where late ones are dropped, or not at all. What a dead worker
// pushed last may be in or not.
std::string SimulatedCluster::check_marks() {
  constexpr float kTolerance = 1e-4f;
  const bool drops = options_.scheme.admission == Admission::kBackup;
  std::ostringstream wrong;
  const auto check_mark = [&](const Node& by, bool lives, size_t push, RowKey key) {
    const int64_t column = int64_t{by.id - 1} * options_.marks + static_cast<int64_t>(push);
    const auto value = [&](const Node& node) { return node.tables[key % kTables].row(key / kTables)[column]; };
    const float share = value(*nodes_.begin()->second);
    for (const auto& [id, node] : nodes_)
      if (std::abs(value(*node) - share) > kTolerance)
        wrong << "nodes differ in row " << key << ": " << value(*node) << ", " << share << "; ";
    const bool lost = std::abs(share) < kTolerance && by.marks[push].count(key) > 0;
    const bool none = std::abs(share) < kTolerance && (!lost || !lives || drops);
    (lost ? dropped_ : counted_) += by.marks[push].count(key) > 0 ? 1 : 0;
    if (none) return;
    const float whole = share * (drops ? 1 : std::round(1 / share));
    if (lost || share < 0 || by.marks[push].count(key) == 0 || std::abs(whole - 1) > kTolerance)
      wrong << "push " << push + 1 << " of node " << by.id << " counts " << share << " in row " << key << "; ";
  };
  const auto check_node = [&](const Node& by, bool lives) {
    for (size_t push = 0; push < by.marks.size(); ++push)
      for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key) check_mark(by, lives, push, key);
  };
  for (const auto& [id, node] : nodes_) check_node(*node, true);
  for (const auto& [id, node] : dead_) check_node(*node, false);
  return wrong.str();
}

}  // namespace streamvec
