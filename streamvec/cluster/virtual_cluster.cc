#include "streamvec/cluster/virtual_cluster.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "streamvec/cluster/codec_finder.h"
#include "streamvec/cluster/push_pace.h"
#include "streamvec/cluster/staleness_finder.h"
#include "streamvec/core/bits.h"
#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

constexpr double kLookEvery = 0.002;   // between two looks of a node that waits for something
constexpr double kPushAtLeast = 0.25;  // a node that trains slowly looks then
constexpr int32_t kLastPushes = 2;     // all that is left, then what brings back what others had left
constexpr double kLastTenth = 0.9;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

// On its way to another node.
struct VirtualCluster::Sent {
  double sent_s = 0;  // when its last byte has left
  double on_wire_s = 0;
  NodeId from = 0, to = 0;
  std::shared_ptr<Message> message;
};

struct VirtualCluster::Event {
  double at_s = 0;
  int64_t number = 0;  // of two at once the earlier made comes first
  Kind kind = Kind::kLook;
  NodeId from = 0;
  std::shared_ptr<Message> message;
  bool operator>(const Event& other) const { return at_s != other.at_s ? at_s > other.at_s : number > other.number; }
};

struct VirtualCluster::Node {
  NodeId id = 0;
  Parameters parameters;
  std::unique_ptr<ModelWorker> worker;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<RowServer> server;
  std::unique_ptr<PushPace> pace;
  StalenessFinder staleness;           // of an adaptive scheme
  std::unique_ptr<CodecFinder> codec;  // of a scheme that finds it
  int64_t ahead_max = 0;               // clocks that it may be ahead of the slowest and train (SSP)
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t posted = 0;
  double now_s = 0;
  std::vector<Sent> sent;  // in this window
  Status status;
  size_t next = 0;  // its next chunk, of all chunks
  int32_t epoch = 0;
  int64_t words = 0, words_all = 0;
  double steps = 0;
  bool training = false, finished = false, stands_still = false;
  double stands_since_s = 0;
  double held_since_s = -1;                  // a push that is due waits for the slowest; -1: none does
  double late_s = 0;                         // what talking took of the piece under way
  int64_t begun_words = 0, rows_to_one = 0;  // when the last push began, by it to the owner of most of them
  double begun_s = 0;
  double talking_until_s = 0, refreshed_s = -1;
  double sending_until_s = 0, receiving_until_s = 0;  // its network, each way
  int32_t last_pushes = 0;
  double look_at_s = -1;  // an event that is on its way
  std::vector<RowKey> due;
  VirtualReport done;  // its own
  double last_loss = 0;
  int64_t last_pairs = 0;

  void post(double at_s, Kind kind, NodeId from = 0, std::shared_ptr<Message> message = nullptr) {
    events.push({at_s, posted++, kind, from, std::move(message)});
  }
};

VirtualCluster::VirtualCluster(const VirtualOptions& options, std::span<const Chunk> chunks,
                               const SamplingTables& tables)
    : options_(options), chunks_(chunks), tables_(tables), team_(std::clamp(options.threads, 1, options.nodes)) {}

VirtualCluster::~VirtualCluster() = default;

const Parameters& VirtualCluster::parameters() const {
  return nodes_.front()->parameters;
}

// Live rows and what is known of them, of both tables; owners have each row once more, twice in rounds.
double virtual_cluster_bytes(const VirtualOptions& options) {
  const int64_t stride =
      (options.parameters.dim + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple;
  const int64_t table = options.parameters.rows * stride * static_cast<int64_t>(sizeof(float));
  return static_cast<double>(table * (4 * options.nodes + 6));
}

Result<std::unique_ptr<VirtualCluster>> VirtualCluster::make(const VirtualOptions& options,
                                                             std::span<const Chunk> chunks,
                                                             const SamplingTables& tables) {
  std::unique_ptr<VirtualCluster> cluster(new VirtualCluster(options, chunks, tables));
  STREAMVEC_RETURN_IF_ERROR(cluster->add_nodes());
  return cluster;
}

Status VirtualCluster::add_nodes() {
  STREAMVEC_RETURN_IF_ERROR(check_memory("the tables of " + std::to_string(options_.nodes) + " nodes",
                                         virtual_cluster_bytes(options_),
                                         "fewer --nodes, a smaller --dim or a larger --min-count"));
  View view{1, {}, {}};
  for (int32_t i = 0; i < options_.nodes; ++i) view.workers.push_back(static_cast<NodeId>(i));
  view.servers = view.workers;
  nodes_.resize(view.workers.size());
  std::vector<Status> added(nodes_.size());
  std::atomic<size_t> next = 0;
  team_.run([&](int32_t) {
    for (size_t i = next++; i < nodes_.size(); i = next++) added[i] = add_node(view.workers[i]);
  });
  for (const Status& status : added) STREAMVEC_RETURN_IF_ERROR(status);
  for (auto& node : nodes_) {
    Outbox out;
    node->server->set_view(view, out);
    node->replica->set_view(view, out);
    for (Outgoing& each : out)
      nodes_[each.to]->post(0, Kind::kArrived, node->id, std::make_shared<Message>(std::move(each.message)));
  }
  for (auto& node : nodes_) begin_training(*node);
  return {};
}

Status VirtualCluster::add_node(NodeId id) {
  auto node = std::make_unique<Node>();
  node->id = id;
  STREAMVEC_ASSIGN_OR_RETURN(node->parameters, Parameters::make(options_.parameters));
  STREAMVEC_ASSIGN_OR_RETURN(node->worker, make_model_worker(options_.model, node->parameters));
  SyncOptions sync;
  sync.self = id;
  sync.scheme = options_.scheme;
  sync.dim = options_.parameters.dim;
  sync.change_min = SyncOptions::kTrainedChangeMin;
  sync.key_end = static_cast<RowKey>(2 * options_.parameters.rows);
  sync.pull = &options_.pull;
  std::vector<Matrix*> tables = {&node->parameters.input.rows, &node->parameters.output.rows};
  sync.initial = [raw = node.get()](RowKey key, std::span<float> row) { raw->replica->known_value(key, row); };
  STREAMVEC_ASSIGN_OR_RETURN(node->replica, Replica::make(sync, tables));
  STREAMVEC_ASSIGN_OR_RETURN(node->server, make_row_server(sync));
  node->pace = std::make_unique<PushPace>(
      PushPace::Options{options_.words_min, options_.words_max, 1, talking_share_of(options_.nodes), options_.nodes},
      options_.pull);
  node->ahead_max = options_.scheme.adaptive ? node->staleness.staleness() : options_.scheme.staleness;
  if (options_.scheme.adaptive) node->replica->set_staleness(node->ahead_max);
  if (options_.scheme.finds_codec) node->codec = std::make_unique<CodecFinder>(options_.parameters.dim);
  node->next = id;
  for (size_t i = id; i < chunks_.size(); i += static_cast<size_t>(options_.nodes))
    node->words_all += static_cast<int64_t>(chunks_[i].slots.size()) * options_.epochs;
  nodes_[id] = std::move(node);
  return {};
}

Result<VirtualReport> VirtualCluster::run(const std::function<bool()>& stop) {
  while (!over_) {
    if (stop && stop()) return error(Code::kCancelled, "stopped");
    const double begin_s = next_event_s();
    if (begin_s == kNever) return error(Code::kInternal, "the virtual cluster stands still at ", now_s_, " s");
    STREAMVEC_RETURN_IF_ERROR(run_window(begin_s));
    give_out();
    end_if_over();
  }
  return sum_up();
}

VirtualReport VirtualCluster::sum_up() const {
  VirtualReport report;
  report.seconds = now_s_;
  double loss = 0;
  int64_t pairs = 0;
  for (const auto& node : nodes_) {
    const VirtualReport& own = node->done;
    report.words += own.words;
    report.pairs += own.pairs;
    report.pushes += own.pushes;
    report.rows_moved += own.rows_moved;
    report.bytes += own.bytes;
    report.talking_s += own.talking_s / options_.nodes;
    report.waiting_s += own.waiting_s / options_.nodes;
    report.staleness_most = std::max(report.staleness_most, own.staleness_most);
    loss += node->last_loss;
    pairs += node->last_pairs;
  }
  report.loss = pairs > 0 ? loss / static_cast<double>(pairs) : 0;
  return report;
}

double VirtualCluster::next_event_s() const {
  double next_s = kNever;
  for (const auto& node : nodes_)
    if (!node->events.empty()) next_s = std::min(next_s, node->events.top().at_s);
  return next_s;
}

// What is sent in the window arrives after it. Where messages take no time it is a moment.
Status VirtualCluster::run_window(double begin_s) {
  const double end_s = begin_s + options_.costs.latency_s + options_.costs.answer_s;
  const auto is_due = [&](const Node& node) {
    return !node.events.empty() && (node.events.top().at_s < end_s || node.events.top().at_s <= begin_s);
  };
  busy_.clear();
  for (const auto& node : nodes_)
    if (is_due(*node)) busy_.push_back(node.get());
  std::atomic<size_t> next = 0;
  const auto work = [&](int32_t) {
    for (size_t i = next++; i < busy_.size(); i = next++) {
      Node& node = *busy_[i];
      while (node.status.ok() && is_due(node)) {
        Event event = node.events.top();
        node.events.pop();
        node.status = handle(node, std::move(event));
      }
    }
  };
  if (busy_.size() == 1)
    work(0);
  else
    team_.run(work);
  for (const Node* node : busy_) {
    STREAMVEC_RETURN_IF_ERROR(node->status);
    now_s_ = std::max(now_s_, node->now_s);
  }
  return {};
}

Status VirtualCluster::handle(Node& node, Event event) {
  node.now_s = event.at_s;
  if (event.kind == Kind::kLook && node.look_at_s <= node.now_s) node.look_at_s = -1;
  if (event.kind == Kind::kTrained) {
    // What the talking thread took meanwhile makes the piece end later.
    if (const double late_s = std::exchange(node.late_s, 0); late_s > 0) {
      node.post(node.now_s + late_s, Kind::kTrained);
      return {};
    }
    train(node);
  }
  if (event.kind == Kind::kArrived) STREAMVEC_RETURN_IF_ERROR(receive(node, event.from, *event.message));
  push_if_due(node);
  return {};
}

// To those that what was sent is for, in the order in which it was: a network takes in one message after the other.
void VirtualCluster::give_out() {
  std::vector<Sent> all;
  for (Node* node : busy_) {
    std::move(node->sent.begin(), node->sent.end(), std::back_inserter(all));
    node->sent.clear();
  }
  std::stable_sort(all.begin(), all.end(), [](const Sent& a, const Sent& b) {
    return std::tie(a.sent_s, a.from, a.to) < std::tie(b.sent_s, b.from, b.to);
  });
  for (Sent& each : all) {
    Node& to = *nodes_[each.to];
    to.receiving_until_s = std::max(each.sent_s, to.receiving_until_s + each.on_wire_s);
    to.post(to.receiving_until_s + options_.costs.latency_s + options_.costs.answer_s, Kind::kArrived, each.from,
            std::move(each.message));
  }
}

void VirtualCluster::begin_training(Node& node) {
  if (node.training || node.finished) return;
  if (node.next >= chunks_.size()) {
    node.next = node.id;
    if (++node.epoch >= options_.epochs || node.next >= chunks_.size()) {
      node.finished = true;
      return;
    }
  }
  const bool is_ahead =
      options_.scheme.admission == Admission::kSsp && node.replica->clock() - node.replica->slowest() > node.ahead_max;
  if (is_ahead || node.words - node.begun_words > options_.words_max) {
    if (!std::exchange(node.stands_still, true)) node.stands_since_s = node.now_s;
    return;
  }
  if (std::exchange(node.stands_still, false)) node.done.waiting_s += node.now_s - node.stands_since_s;
  node.training = true;
  node.post(node.now_s + static_cast<double>(chunks_[node.next].slots.size()) * options_.costs.word_s, Kind::kTrained);
}

void VirtualCluster::train(Node& node) {
  const Chunk& chunk = chunks_[node.next];
  const double fraction = static_cast<double>(node.words) / static_cast<double>(std::max<int64_t>(node.words_all, 1));
  const auto lr = static_cast<float>(options_.lr * std::max(1e-4, 1 - fraction));
  Random random(mix(options_.seed, static_cast<uint64_t>(node.epoch), node.next));
  const StepStats stats = node.worker->step(chunk, tables_, lr, random);
  const auto words = static_cast<int64_t>(chunk.slots.size());
  node.words += words;
  node.steps += static_cast<double>(words) * lr;
  node.next += static_cast<size_t>(options_.nodes);
  node.training = false;
  node.done.words += words;
  node.done.pairs += stats.pairs;
  if (static_cast<double>(node.words) > kLastTenth * static_cast<double>(node.words_all)) {
    node.last_loss += stats.loss;
    node.last_pairs += stats.pairs;
  }
  begin_training(node);
}

void VirtualCluster::talk(Node& node, size_t rows) {
  const double took_s = static_cast<double>(rows) * options_.costs.row_s;
  node.done.rows_moved += static_cast<int64_t>(rows);
  node.talking_until_s = std::max(node.now_s, node.talking_until_s) + took_s;
  node.done.talking_s += took_s;
  if (node.training) node.late_s += took_s;
}

Status VirtualCluster::receive(Node& node, NodeId from, const Message& message) {
  const bool for_worker = message.kind == MessageKind::kUpdate || message.kind == MessageKind::kRefused ||
                          message.kind == MessageKind::kValues;
  Outbox out;
  node.replica->set_trained(node.steps);
  STREAMVEC_RETURN_IF_ERROR(for_worker ? node.replica->receive(from, message, out)
                                       : node.server->receive(from, message, out));
  talk(node, message.rows.size());
  send_out(node, out);
  if (node.stands_still) begin_training(node);
  return {};
}

void VirtualCluster::send_out(Node& node, Outbox& out) {
  for (Outgoing& each : out) talk(node, each.message.rows.size());
  for (Outgoing& each : out) {
    auto message = std::make_shared<Message>(std::move(each.message));
    if (each.to == node.id) {
      node.post(node.talking_until_s, Kind::kArrived, node.id, std::move(message));
      continue;
    }
    const auto bytes = static_cast<int64_t>(encode(*message).size());
    node.done.bytes += bytes;
    const double on_wire_s = static_cast<double>(bytes) / options_.costs.bytes_per_s;
    node.sending_until_s = std::max(node.talking_until_s, node.sending_until_s) + on_wire_s;
    node.sent.push_back({node.sending_until_s, on_wire_s, node.id, each.to, std::move(message)});
  }
}

void VirtualCluster::push_if_due(Node& node) {
  if (!node.replica->idle() || (flushing_ && has_pushed_last(node))) return;
  const auto look_in = [&](double wait_s) {
    const double at_s = node.now_s + wait_s;
    if (node.look_at_s >= 0 && node.look_at_s <= at_s) return;
    node.look_at_s = at_s;
    node.post(at_s, Kind::kLook);
  };
  const PushPace::Done done{node.words,   node.steps, node.now_s, node.done.talking_s, node.server->awaits(node.id),
                            node.finished};
  if (!node.replica->may_train()) {
    if (node.held_since_s < 0) node.held_since_s = node.now_s;
    if (node.now_s - node.refreshed_s < kLookEvery) return look_in(kLookEvery);
    node.refreshed_s = node.now_s;
    Outbox out;
    node.replica->refresh(out);
    return send_out(node, out);
  }
  // A node without text pushes on: when others wait for it, or where it does not see that whenever it can, which takes
  // a moment each time.
  const bool follows = !flushing_ && options_.scheme.awaits_all();
  if ((!node.finished || follows) && !node.pace->is_time(done)) return look_in(kPushAtLeast);
  if (node.finished && !flushing_ && node.now_s - node.begun_s < kLookEvery) return look_in(kLookEvery);
  if (!node.finished && !node.pace->can_afford(done)) return look_in(kLookEvery);
  begin_push(node);
}

void VirtualCluster::begin_push(Node& node) {
  if (!flushing_) find_bounds(node);
  node.due.clear();
  node.pace->begin({node.words, node.steps, node.now_s, node.done.talking_s});
  if (flushing_ && ++node.last_pushes == 1) {
    node.due.resize(static_cast<size_t>(2 * options_.parameters.rows));
    std::iota(node.due.begin(), node.due.end(), RowKey{0});
  } else {
    for_each_bit(node.pace->rows(node.replica->clock() + 1, node.replica->mean_square()),
                 [&](size_t key) { node.due.push_back(static_cast<RowKey>(key)); });
  }
  node.done.staleness_most = std::max(node.done.staleness_most, node.replica->clock() - node.replica->slowest());
  node.begun_s = node.now_s;
  node.begun_words = node.words;
  ++node.done.pushes;
  Outbox out;
  node.replica->set_trained(node.steps);
  node.replica->begin(node.due, out);
  node.rows_to_one = 0;
  for (const auto& [to, message] : out)
    if (to != node.id) node.rows_to_one = std::max(node.rows_to_one, std::ssize(message.rows));
  send_out(node, out);
  begin_training(node);  // it may have waited for this
}

// As ClusterNode does before a push. What a link is seen to carry: its part of what goes to all owners at once.
void VirtualCluster::find_bounds(Node& node) {
  if (options_.scheme.adaptive) {
    node.staleness.pushed(node.now_s, node.held_since_s < 0 ? 0 : node.now_s - node.held_since_s,
                          node.replica->clocks());
    node.held_since_s = -1;
    node.ahead_max = node.staleness.staleness();
    node.replica->set_staleness(node.ahead_max);
  }
  if (node.codec == nullptr) return;
  node.codec->pushed(node.now_s, node.rows_to_one, options_.costs.bytes_per_s / std::max(options_.nodes - 1, 1));
  node.replica->set_codec(node.codec->codec());
}

bool VirtualCluster::all(const std::function<bool(const Node&)>& is) const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return is(*node); });
}

// Where nodes wait for each other all have to come to the same clock.
bool VirtualCluster::has_pushed_last(const Node& node) const {
  const Admission admission = options_.scheme.admission;
  if (admission == Admission::kAsync || admission == Admission::kSoftsync) return node.last_pushes >= kLastPushes;
  return node.replica->clock() >= last_clock_;
}

// When all text is over, everybody pushes what is left, and once more to hear what the others had left.
void VirtualCluster::end_if_over() {
  if (!flushing_ && all([](const Node& node) { return node.finished; })) {
    flushing_ = true;
    for (const auto& node : nodes_) last_clock_ = std::max(last_clock_, node->replica->clock() + kLastPushes);
    for (auto& node : nodes_) node->post(now_s_, Kind::kLook);
  }
  over_ = flushing_ && all([this](const Node& node) { return has_pushed_last(node) && node.replica->idle(); });
}

}  // namespace streamvec
