#include "streamvec/cluster/virtual_cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "streamvec/core/bits.h"
#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

constexpr double kLookEvery = 0.002;   // between two looks of a node that waits for something
constexpr double kPushAtLeast = 0.25;  // a node that trains slowly looks then
constexpr int32_t kLastPushes = 2;     // what is left, then what others had left
constexpr double kLastTenth = 0.9;

}  // namespace

struct VirtualCluster::Node {
  NodeId id = 0;
  Parameters parameters;
  std::unique_ptr<ModelWorker> worker;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<RowServer> server;
  std::unique_ptr<PushPace> pace;
  size_t next = 0;  // its next chunk, of all chunks
  int32_t epoch = 0;
  int64_t words = 0, words_all = 0;
  double steps = 0;
  bool training = false, finished = false, stands_still = false;
  double stands_since_s = 0;
  double late_s = 0;  // what talking took of the piece under way
  int64_t begun_words = 0, pushes = 0;
  double begun_s = 0;
  double talking_s = 0, talking_until_s = 0, waiting_s = 0, refreshed_s = -1;
  double sending_until_s = 0, receiving_until_s = 0;  // its network, each way
  int32_t last_pushes = 0;
  double look_at_s = -1;  // an event that is on its way
  std::vector<RowKey> due;
};

VirtualCluster::VirtualCluster(const VirtualOptions& options, std::span<const Chunk> chunks,
                               const SamplingTables& tables)
    : options_(options), chunks_(chunks), tables_(tables) {}

VirtualCluster::~VirtualCluster() = default;

const Parameters& VirtualCluster::parameters() const {
  return nodes_.front()->parameters;
}

Result<std::unique_ptr<VirtualCluster>> VirtualCluster::make(const VirtualOptions& options,
                                                             std::span<const Chunk> chunks,
                                                             const SamplingTables& tables) {
  std::unique_ptr<VirtualCluster> cluster(new VirtualCluster(options, chunks, tables));
  STREAMVEC_RETURN_IF_ERROR(cluster->add_nodes());
  return cluster;
}

Status VirtualCluster::add_nodes() {
  // Live rows and what is known of them, of both tables; owners have each row once more, twice in rounds.
  const int64_t stride =
      (options_.parameters.dim + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple;
  const int64_t table = options_.parameters.rows * stride * static_cast<int64_t>(sizeof(float));
  STREAMVEC_RETURN_IF_ERROR(check_memory("the tables of " + std::to_string(options_.nodes) + " nodes",
                                         static_cast<double>(table * (4 * options_.nodes + 6)),
                                         "fewer --nodes, a smaller --dim or a larger --min-count"));
  View view{1, {}, {}};
  for (int32_t i = 0; i < options_.nodes; ++i) view.workers.push_back(static_cast<NodeId>(i));
  view.servers = view.workers;
  for (const NodeId id : view.workers) STREAMVEC_RETURN_IF_ERROR(add_node(id));
  for (auto& node : nodes_) {
    Outbox out;
    node->server->set_view(view, out);
    node->replica->set_view(view, out);
    for (Outgoing& each : out)
      post(0, Kind::kArrived, each.to, node->id, std::make_shared<Message>(std::move(each.message)));
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
  node->next = id;
  for (size_t i = id; i < chunks_.size(); i += static_cast<size_t>(options_.nodes))
    node->words_all += static_cast<int64_t>(chunks_[i].slots.size()) * options_.epochs;
  nodes_.push_back(std::move(node));
  return {};
}

void VirtualCluster::post(double at_s, Kind kind, NodeId node, NodeId from, std::shared_ptr<Message> message) {
  events_.push({at_s, posted_++, kind, node, from, std::move(message)});
}

Result<VirtualReport> VirtualCluster::run(const std::function<bool()>& stop) {
  while (!over_ && !events_.empty()) {
    if (stop && stop()) return error(Code::kCancelled, "stopped");
    const Event event = events_.top();
    events_.pop();
    now_s_ = event.at_s;
    STREAMVEC_RETURN_IF_ERROR(handle(event));
    end_if_over();
  }
  if (!over_) return error(Code::kInternal, "the virtual cluster stands still at ", now_s_, " s");
  report_.seconds = now_s_;
  report_.loss = last_pairs_ > 0 ? last_loss_ / static_cast<double>(last_pairs_) : 0;
  for (const auto& node : nodes_) {
    report_.talking_s += node->talking_s / options_.nodes;
    report_.waiting_s += node->waiting_s / options_.nodes;
    report_.pushes += node->pushes;
  }
  return report_;
}

Status VirtualCluster::handle(const Event& event) {
  Node& node = *nodes_[event.node];
  if (event.kind == Kind::kLook && node.look_at_s <= now_s_) node.look_at_s = -1;
  if (event.kind == Kind::kTrained) {
    // What the talking thread took meanwhile makes the piece end later.
    if (const double late_s = std::exchange(node.late_s, 0); late_s > 0) {
      post(now_s_ + late_s, Kind::kTrained, node.id);
      return {};
    }
    train(node);
  }
  if (event.kind == Kind::kArrived) STREAMVEC_RETURN_IF_ERROR(receive(node, event.from, *event.message));
  push_if_due(node);
  return {};
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
  const bool is_ahead = options_.scheme.admission == Admission::kSsp &&
                        node.replica->clock() - node.replica->slowest() > options_.scheme.staleness;
  if (is_ahead || node.words - node.begun_words > options_.words_max) {
    if (!std::exchange(node.stands_still, true)) node.stands_since_s = now_s_;
    return;
  }
  if (std::exchange(node.stands_still, false)) node.waiting_s += now_s_ - node.stands_since_s;
  node.training = true;
  post(now_s_ + static_cast<double>(chunks_[node.next].slots.size()) * options_.costs.word_s, Kind::kTrained, node.id);
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
  report_.words += words;
  report_.pairs += stats.pairs;
  if (static_cast<double>(node.words) > kLastTenth * static_cast<double>(node.words_all)) {
    last_loss_ += stats.loss;
    last_pairs_ += stats.pairs;
  }
  begin_training(node);
}

void VirtualCluster::talk(Node& node, size_t rows) {
  const double took_s = static_cast<double>(rows) * options_.costs.row_s;
  report_.rows_moved += static_cast<int64_t>(rows);
  node.talking_until_s = std::max(now_s_, node.talking_until_s) + took_s;
  node.talking_s += took_s;
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
      post(node.talking_until_s, Kind::kArrived, node.id, node.id, std::move(message));
      continue;
    }
    const auto bytes = static_cast<int64_t>(encode(*message).size());
    report_.bytes += bytes;
    const double on_wire_s = static_cast<double>(bytes) / options_.costs.bytes_per_s;
    Node& other = *nodes_[each.to];
    const double sent_s = std::max(node.talking_until_s, node.sending_until_s) + on_wire_s;
    node.sending_until_s = sent_s;
    const double came_s = std::max(sent_s, other.receiving_until_s + on_wire_s) + options_.costs.latency_s;
    other.receiving_until_s = came_s - options_.costs.latency_s;
    post(came_s + options_.costs.answer_s, Kind::kArrived, each.to, node.id, std::move(message));
  }
}

void VirtualCluster::push_if_due(Node& node) {
  if (!node.replica->idle() || (flushing_ && has_pushed_last(node))) return;
  const auto look_in = [&](double wait_s) {
    const double at_s = now_s_ + wait_s;
    if (node.look_at_s >= 0 && node.look_at_s <= at_s) return;
    node.look_at_s = at_s;
    post(at_s, Kind::kLook, node.id);
  };
  const PushPace::Done done{node.words,   node.steps, now_s_, node.talking_s, node.server->awaits(node.id),
                            node.finished};
  if (!node.replica->may_train()) {
    if (now_s_ - node.refreshed_s < kLookEvery) return look_in(kLookEvery);
    node.refreshed_s = now_s_;
    Outbox out;
    node.replica->refresh(out);
    return send_out(node, out);
  }
  // A node without text pushes on: when others wait for it, or where it does not see that whenever it can, which takes
  // a moment each time.
  const bool follows = !flushing_ && options_.scheme.awaits_all();
  if ((!node.finished || follows) && !node.pace->is_time(done)) return look_in(kPushAtLeast);
  if (node.finished && !flushing_ && now_s_ - node.begun_s < kLookEvery) return look_in(kLookEvery);
  if (!node.finished && !node.pace->can_afford(done)) return look_in(kLookEvery);
  begin_push(node);
}

void VirtualCluster::begin_push(Node& node) {
  node.due.clear();
  node.pace->begin({node.words, node.steps, now_s_, node.talking_s});
  if (flushing_) {
    if (++node.last_pushes <= kLastPushes) node.due.resize(static_cast<size_t>(2 * options_.parameters.rows));
    std::iota(node.due.begin(), node.due.end(), RowKey{0});
  } else {
    for_each_bit(node.pace->rows(node.replica->clock() + 1, node.replica->mean_square()),
                 [&](size_t key) { node.due.push_back(static_cast<RowKey>(key)); });
  }
  report_.staleness_most = std::max(report_.staleness_most, node.replica->clock() - node.replica->slowest());
  node.begun_s = now_s_;
  node.begun_words = node.words;
  ++node.pushes;
  Outbox out;
  node.replica->set_trained(node.steps);
  node.replica->begin(node.due, out);
  send_out(node, out);
  begin_training(node);  // it may have waited for this
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
    for (auto& node : nodes_) post(now_s_, Kind::kLook, node->id);
  }
  over_ = flushing_ && all([this](const Node& node) { return has_pushed_last(node) && node.replica->idle(); });
}

}  // namespace streamvec
