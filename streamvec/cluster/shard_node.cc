#include "streamvec/cluster/shard_node.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "streamvec/core/clock.h"
#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

constexpr double kShardInTouch = 1.0;
constexpr auto kShardTalkWait = std::chrono::milliseconds(20);
constexpr auto kShardLook = std::chrono::milliseconds(50);

}  // namespace

Result<std::unique_ptr<ShardNode>> ShardNode::start(const ShardNodeOptions& options,
                                                    std::unique_ptr<Transport> transport) {
  std::unique_ptr<ShardNode> node(new ShardNode(options));
  node->self_ = transport->self();
  node->leader_ = options.workers.front();
  node->all_.insert(options.workers.begin(), options.workers.end());
  node->all_.insert(options.owners.begin(), options.owners.end());
  node->transport_ = std::make_unique<ReliableTransport>(std::move(transport));
  node->shard_ = std::make_unique<VectorShard>(options.dim, nullptr, "more nodes, or a smaller --dim");
  std::vector<RowKey> own;
  for (RowKey row = 0; row < options.row_end; ++row)
    if (owner_of(row, options.owners) == node->self_) own.push_back(row);
  STREAMVEC_RETURN_IF_ERROR(node->shard_->take(own, [&](RowKey row, std::span<float> values) -> Status {
    options.initial(row, values);
    return {};
  }));
  node->bytes_owned_ = node->shard_->bytes();
  node->begin_text();
  node->started_s_ = clock_seconds();
  for (const NodeId each : node->all_) node->heard_s_[each] = node->started_s_;
  node->post(node->leader_,
             {.kind = SandblasterKind::kHello, .number = options.fingerprint, .text = options.fingerprint_of});
  node->thread_ = std::thread([raw = node.get()] { raw->run(); });
  return node;
}

ShardNode::~ShardNode() {
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    const bool all_finished = finished_.size() == options_.workers.size();
    if (leads() && all_finished && status_.ok()) {
      ended_ = true;
      for (const NodeId node : all_)
        if (node != self_) post(node, {.kind = SandblasterKind::kEnd});
    }
    ended = ended_;
  }
  if (!ended) transport_->close();  // what was said last at an end still has to arrive
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void ShardNode::run() {
  while (!stopping_ && !failed_) {  // a node that has failed falls silent
    NodeId from = 0;
    std::string frame;
    const Status got = transport_->receive(Deadline::after(kShardTalkWait), from, frame);
    if (got.code() == Code::kUnavailable && !stopping_) fail(got);
    if (got.ok() && all_.count(from) > 0) {
      const Status read = is_control(frame) ? receive_text(from, frame) : receive_frame(from, frame);
      if (!read.ok())  // it came for good: nobody sends it again
        fail({read.code(), "node " + std::to_string(from) + " sent " + read.message()});
    }
    if (pieces_ != nullptr && begun_)  // which only this thread changes
      if (const auto report = pieces_->report(clock_seconds())) post(leader_, asking(*report));
    tell_halt();
    keep_in_touch(clock_seconds());
  }
}

Status ShardNode::receive_frame(NodeId from, std::string_view frame) {
  STREAMVEC_ASSIGN_OR_RETURN(const SandblasterMessage message, decode_sandblaster(frame));
  receive(from, message);
  return {};
}

void ShardNode::receive(NodeId from, const SandblasterMessage& message) {
  if (const Status served = serve_rows(from, message); !served.ok()) return fail(served);
  if (from == leader_ && message.kind == SandblasterKind::kRefusal)
    return fail({Code::kFailedPrecondition, message.text});
  const std::lock_guard lock(mutex_);
  heard_s_[from] = clock_seconds();
  if (leads()) receive_from_worker(from, message);
  receive_of_halt(from, message);
  if (from == leader_ && message.kind == SandblasterKind::kView) begun_ = true;
  if (from == leader_ && message.kind == SandblasterKind::kEnd) ended_ = true;
  if (from == leader_ && message.kind == SandblasterKind::kStop) {
    text_stopped_ = true;
    if (pieces_ != nullptr) pieces_->end(PieceQueue::Next::kStopped);
  }
  if (message.kind == SandblasterKind::kRows)
    if (const auto found = question_of_.find(message.number); found != question_of_.end()) {
      Part& part = open_[found->second.first][found->second.second];
      part.values = message.values;
      part.answered = true;
      question_of_.erase(found);
    }
  changed_.notify_all();
}

Status ShardNode::serve_rows(NodeId from, const SandblasterMessage& message) {
  if (message.kind == SandblasterKind::kGradient) return shard_->add(kPoint, message.rows, message.values);
  if (message.kind != SandblasterKind::kFetch) return {};
  SandblasterMessage answer{.kind = SandblasterKind::kRows, .number = message.number};
  STREAMVEC_RETURN_IF_ERROR(shard_->read(kPoint, message.rows, answer.values));
  post(from, answer);
  return {};
}

// Begins when all are there; knows who has finished.
void ShardNode::receive_from_worker(NodeId from, const SandblasterMessage& message) {
  if (message.kind == SandblasterKind::kHello && message.number != options_.fingerprint)
    return post(from, {.kind = SandblasterKind::kRefusal,
                       .text = "this node has " + message.text + ", the first one has " + options_.fingerprint_of +
                               "; give all nodes the same text and options"});
  if (message.kind == SandblasterKind::kHello && present_.insert(from).second && present_ == all_)
    for (const NodeId node : all_) post(node, {.kind = SandblasterKind::kView});
  // A text that is over cannot be stopped: what is saved then is the whole run.
  if (message.kind == SandblasterKind::kStop && from != self_ && !text_over_)
    for (const NodeId node : all_) post(node, {.kind = SandblasterKind::kStop});
  if (message.kind != SandblasterKind::kFinished || message.doubles.size() != 4 || !finished_.insert(from).second)
    return;
  all_trained_.tokens += static_cast<int64_t>(message.doubles[0]);
  all_trained_.pairs += static_cast<int64_t>(message.doubles[1]);
  all_trained_.loss += message.doubles[2];
  all_trained_.loss_pairs += static_cast<int64_t>(message.doubles[3]);
  leave_text(from);
}

// Everybody hears from everybody: a lost node has lost its rows.
void ShardNode::keep_in_touch(double now_s) {
  if (now_s - alive_sent_s_ <= std::min(kShardInTouch, options_.dead_after_s / 5)) return;
  const bool stood_still = alive_sent_s_ > 0 && now_s - alive_sent_s_ > options_.dead_after_s / 2;
  alive_sent_s_ = now_s;
  for (const NodeId node : all_)
    if (node != self_) post(node, {.kind = SandblasterKind::kAlive});
  const std::lock_guard lock(mutex_);
  if (stood_still)  // it was us who did not listen
    for (auto& [node, heard_s] : heard_s_) heard_s = now_s;
  look_for_silent(now_s);
}

void ShardNode::look_for_silent(double now_s) {
  if (ended_ || !status_.ok()) return;
  if (!begun_ && now_s - started_s_ > options_.start_within_s)
    status_ = error(Code::kUnavailable, "not all nodes came within ", options_.start_within_s,
                    " s; are all nodes started, with the same addresses in the same order?");
  for (const auto& [node, heard_s] : heard_s_)
    if (begun_ && node != self_ && now_s - heard_s > options_.dead_after_s)
      status_ = error(Code::kUnavailable, "node ", node, " was not heard for ", options_.dead_after_s,
                      " s, and its rows are lost; the newest checkpoint is what remains");
  if (!status_.ok()) give_up();
  changed_.notify_all();
}

// Whoever waits is to look at status_.
void ShardNode::give_up() {
  failed_ = true;
  if (pieces_ != nullptr) pieces_->end(PieceQueue::Next::kStopped);
}

void ShardNode::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  give_up();
  changed_.notify_all();
}

Result<bool> ShardNode::await_start(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  while (!begun_ && status_.ok()) {
    if (stop != nullptr && stop->load()) return false;
    changed_.wait_for(lock, kShardLook);
  }
  if (!status_.ok()) return status_;
  return true;
}

Status ShardNode::trained(int64_t /*words*/, double /*lr*/) {
  if (!failed_) return text_stopped_ ? error(Code::kCancelled, "the run is to end") : Status();
  const std::lock_guard lock(mutex_);
  return status_;
}

uint64_t ShardNode::ask(std::span<const uint32_t> rows) {
  std::map<NodeId, std::vector<size_t>> by_owner;
  for (size_t i = 0; i < rows.size(); ++i) by_owner[owner_of(rows[i], options_.owners)].push_back(i);
  const size_t at_once = rows_of_message(options_.dim);
  const std::lock_guard lock(mutex_);
  const uint64_t question = ++questions_;
  std::vector<Part>& parts = open_[question];
  for (const auto& [owner, places] : by_owner)
    for (size_t at = 0; at < places.size(); at += at_once) {
      const std::span<const size_t> of_part = std::span(places).subspan(at, std::min(at_once, places.size() - at));
      SandblasterMessage message{.kind = SandblasterKind::kFetch, .number = ++questions_};
      for (const size_t place : of_part) message.rows.push_back(rows[place]);
      question_of_[message.number] = {question, parts.size()};
      parts.emplace_back().places.assign(of_part.begin(), of_part.end());
      post(owner, message);
    }
  return question;
}

Status ShardNode::await(uint64_t question, std::vector<float>& values) {
  std::unique_lock lock(mutex_);
  const auto answered = [&] {
    const std::vector<Part>& parts = open_[question];
    return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.answered; });
  };
  if (!answered()) {
    const double begun_s = clock_seconds();
    changed_.wait(lock, [&] { return !status_.ok() || answered(); });
    stats_.waiting_s += clock_seconds() - begun_s;
  }
  const std::vector<Part> parts = std::move(open_[question]);
  open_.erase(question);
  if (!status_.ok()) return status_;
  lock.unlock();
  const auto dim = static_cast<size_t>(options_.dim);
  size_t rows = 0;
  for (const Part& part : parts) rows += part.places.size();
  values.resize(rows * dim);
  for (const Part& part : parts) {
    if (part.values.size() != part.places.size() * dim)
      return error(Code::kInternal, "an owner gave ", part.values.size(), " values for ", part.places.size(), " rows");
    for (size_t i = 0; i < part.places.size(); ++i)
      std::copy_n(part.values.data() + i * dim, dim, values.data() + part.places[i] * dim);
  }
  return {};
}

void ShardNode::add(std::span<const uint32_t> rows, std::span<const float> changes) {
  const size_t dim = static_cast<size_t>(options_.dim), at_once = rows_of_message(options_.dim);
  std::map<NodeId, SandblasterMessage> by_owner;
  for (size_t i = 0; i < rows.size(); ++i) {
    const NodeId owner = owner_of(rows[i], options_.owners);
    SandblasterMessage& message = by_owner[owner];
    message.kind = SandblasterKind::kGradient;
    message.rows.push_back(rows[i]);
    const std::span<const float> change = changes.subspan(i * dim, dim);
    message.values.insert(message.values.end(), change.begin(), change.end());
    if (message.rows.size() == at_once) post(owner, std::exchange(message, {}));
  }
  for (const auto& [owner, message] : by_owner)
    if (!message.rows.empty()) post(owner, message);
  const std::lock_guard lock(mutex_);
  ++stats_.pushes;
  stats_.rows_pushed += static_cast<int64_t>(rows.size());
}

Status ShardNode::read_all(const std::function<void(RowKey, std::span<const float>)>& row) {
  const size_t dim = static_cast<size_t>(options_.dim), at_once = rows_of_message(options_.dim);
  std::vector<float> values;
  for (size_t begin = 0; begin < options_.row_end; begin += at_once) {
    std::vector<RowKey> keys(std::min(at_once, options_.row_end - begin));
    std::iota(keys.begin(), keys.end(), static_cast<RowKey>(begin));
    STREAMVEC_RETURN_IF_ERROR(await(ask(keys), values));
    for (size_t i = 0; i < keys.size(); ++i) row(keys[i], std::span(values).subspan(i * dim, dim));
  }
  return {};
}

// Owners answer in the order in which they are told: an answer says that all changes before it are in.
Status ShardNode::await_owners() {
  std::map<NodeId, RowKey> one_of;
  for (RowKey row = 0; row < options_.row_end && one_of.size() < options_.owners.size(); ++row)
    one_of.emplace(owner_of(row, options_.owners), row);
  std::vector<RowKey> rows;
  for (const auto& [owner, row] : one_of) rows.push_back(row);
  std::vector<float> values;
  return await(ask(rows), values);
}

void ShardNode::stop_text() {
  if (text_stopped_.exchange(true)) return;
  for (const NodeId node : all_)
    if (leads() || node == leader_) post(node, {.kind = SandblasterKind::kStop});
}

Result<TrainedTotals> ShardNode::finish(const TrainedTotals& own) {
  const bool works = std::find(options_.workers.begin(), options_.workers.end(), self_) != options_.workers.end();
  // From here on only this thread reports, or a report might come after the leader has let go of this node.
  if (pieces_ != nullptr) pieces_->end(PieceQueue::Next::kStopped);
  if (works) {
    STREAMVEC_RETURN_IF_ERROR(await_owners());
    if (pieces_ != nullptr) post(leader_, asking(pieces_->last_report()));
    post(leader_, {.kind = SandblasterKind::kFinished,
                   .doubles = {static_cast<double>(own.tokens), static_cast<double>(own.pairs), own.loss,
                               static_cast<double>(own.loss_pairs)}});
  }
  std::unique_lock lock(mutex_);
  const double begun_s = clock_seconds();
  changed_.wait(lock,
                [&] { return !status_.ok() || (leads() ? finished_.size() == options_.workers.size() : ended_); });
  stats_.finishing_s = clock_seconds() - begun_s;
  if (!status_.ok()) return status_;
  if (!leads()) return own;
  TrainedTotals all = all_trained_;
  add_text(all);
  return all;
}

Status ShardNode::serve(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  while (status_.ok() && !ended_) {
    if (stop != nullptr && stop->load()) stop_text();
    changed_.wait_for(lock, kShardLook);
  }
  return status_;
}

ClusterStats ShardNode::stats() const {
  const std::lock_guard lock(mutex_);
  ClusterStats stats = stats_;
  const TransportTotals totals = transport_->totals();
  stats.bytes_sent = totals.bytes_sent;
  stats.bytes_received = totals.bytes_received;
  stats.epoch = 1;
  stats.nodes = static_cast<int32_t>(all_.size());
  for (const NodeId node : all_) {
    ClusterMember member{.node = node, .leader = node == leader_, .taking_part = true};
    member.worker = std::find(options_.workers.begin(), options_.workers.end(), node) != options_.workers.end();
    member.server = std::find(options_.owners.begin(), options_.owners.end(), node) != options_.owners.end();
    member.silent_s = node == self_ ? 0 : clock_seconds() - heard_s_.at(node);
    stats.members.push_back(member);
  }
  stats.notes.push_back("this node keeps " + std::to_string(bytes_owned_ >> 10) + " KB of rows");
  return stats;
}

}  // namespace streamvec
