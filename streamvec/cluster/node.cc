#include "streamvec/cluster/node.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "streamvec/core/clock.h"
#include "streamvec/core/thread_time.h"

namespace streamvec {
namespace {

// For frames, when nothing else is due sooner. Each time the talking thread wakes a training thread has to make room.
constexpr double kWaitMost = 0.005, kWaitLeast = 0.0002;
constexpr auto kFarewell = std::chrono::milliseconds(1'000), kHearingLook = std::chrono::milliseconds(1);
constexpr auto kStopLook = std::chrono::milliseconds(50);  // between two looks at a wish to stop
constexpr ReliableLink::Options kLink{.resend_after_s = 2.0, .ahead_max = 4'096};

// None given: all alike.
std::vector<float> pulls_of(const ClusterOptions& options) {
  return options.sync.pull != nullptr ? *options.sync.pull : std::vector<float>(options.sync.key_end, 0.0f);
}

}  // namespace

ClusterNode::ClusterNode(const ClusterOptions& options, std::unique_ptr<Transport> transport)
    : options_(options),
      transport_(std::move(transport)),
      self_(transport_->self()),
      ahead_max_(options.sync.scheme.admission == Admission::kSsp ? options.sync.scheme.staleness : INT64_MAX),
      pace_({options.words_min, options.words_max, options.threads, options.talking_share,
             static_cast<int64_t>(options.workers.size())},
            pulls_of(options)),
      codec_finder_(options.sync.dim),
      slow_owners_(options.slow_owners) {
  const View all_nodes{0, options.workers, options.servers};
  const std::set<NodeId> all = all_of(all_nodes);
  leader_ = options.leader != 0 ? options.leader : *all.begin();
  is_worker_ = is_among(options.workers, self_);
  for (const NodeId node : all) links_.emplace(node, kLink);
  known_ = all_nodes;
  addresses_ = options.addresses;
  const double now = clock_seconds();
  for (const NodeId node : all) heard_s_[node] = now;
  stepped_s_ = now;
  if (self_ == leader_)
    leading_.emplace(Leader::Options{self_, all_nodes, options.start_within_s, options.dead_after_s}, now);
  if (options.text == PieceRange()) return;
  if (is_worker_) pieces_ = std::make_unique<PieceQueue>(std::max(options.threads, 1), options.ahead);
  if (self_ == leader_) board_.emplace(options.text, options.trained_before, options.finished);
}

Result<std::unique_ptr<ClusterNode>> ClusterNode::start(const ClusterOptions& options,
                                                        std::unique_ptr<Transport> transport,
                                                        std::vector<Matrix*> tables) {
  std::unique_ptr<ClusterNode> node(new ClusterNode(options, std::move(transport)));
  STREAMVEC_RETURN_IF_ERROR(node->make_parts(tables));
  node->thread_ = std::thread([raw = node.get()] { raw->run(); });
  return node;
}

Status ClusterNode::make_parts(const std::vector<Matrix*>& tables) {
  if (tables.empty()) return {};
  SyncOptions sync = options_.sync;
  sync.self = self_;
  sync.crew = options_.crew;
  sync.initial = [this, tables](RowKey key, std::span<float> row) {
    if (replica_ != nullptr) return replica_->known_value(key, row);
    std::copy_n(tables[key % tables.size()]->row(static_cast<int64_t>(key / tables.size())), row.size(), row.begin());
  };
  if (is_worker_) {
    STREAMVEC_ASSIGN_OR_RETURN(replica_, Replica::make(sync, tables));
  }
  if (is_among(options_.servers, self_)) {
    STREAMVEC_ASSIGN_OR_RETURN(server_, make_row_server(sync));
  }
  return {};
}

ClusterNode::~ClusterNode() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

Result<bool> ClusterNode::await_start(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  while (!has_begun() && status_.ok()) {
    if (stop != nullptr && stop->load()) return false;
    changed_.wait_for(lock, kStopLook);
  }
  if (!status_.ok()) return status_;
  return true;
}

// Rows have owners: who trained before that would train alone, and at the very beginning, when rows grow by each other.
bool ClusterNode::has_begun() const {
  return phase_ != Phase::kStarting && (phase_ != Phase::kTraining || replica_ == nullptr || replica_->settled());
}

Status ClusterNode::trained(int64_t words, double lr) {
  steps_ += static_cast<double>(words) * lr;
  const int64_t now = words_.fetch_add(words) + words;
  const auto may_go_on = [&] {
    if (failed_ || replica_ == nullptr) return true;
    return now - begun_words_ <= options_.words_max && ahead_ <= ahead_max_;
  };
  // Without the lock, which the talking thread holds while it works.
  if (!may_go_on() || failed_) {
    std::unique_lock lock(mutex_);
    const double begun = clock_seconds();
    changed_.wait(lock, may_go_on);
    stats_.waiting_s += clock_seconds() - begun;
    if (!status_.ok()) return status_;
  }
  if (const int64_t ahead = ahead_; ahead > staleness_most_ && ahead <= ahead_max_) staleness_most_ = ahead;
  return {};
}

Result<TrainedTotals> ClusterNode::finish(const TrainedTotals& own, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kTraining && is_worker_) {
    phase_ = Phase::kFinished;
    if (pieces_ != nullptr) tell_leader(asking(pieces_->last_report()));
    if (const Status told = exchange_words(clock_seconds()); !told.ok()) fail(told);
    own_totals_ = own;
    Control finished{ControlKind::kFinished};
    finished.trained = own;
    tell_leader(finished);
  }
  const double begun = clock_seconds();
  const auto is_over = [&] { return phase_ == Phase::kEnded || !status_.ok(); };
  while (!is_over() && !deadline.passed())
    changed_.wait_until(lock, std::min(deadline.when(), Deadline::Clock::now() + std::chrono::hours(1)), is_over);
  stats_.finishing_s += clock_seconds() - begun;
  if (!status_.ok()) return status_;
  if (phase_ != Phase::kEnded) return error(Code::kDeadlineExceeded, "the other nodes have not finished yet");
  if (!is_leader()) return own;
  await_hearing(lock);
  if (leading_->gathers()) {  // it came to lead when all had ended, and nobody told it what each has trained
    TrainedTotals known = own;
    if (pieces_ == nullptr) return known;
    const TextStanding standing = pieces_->standing();
    known.tokens = standing.tokens;
    known.pairs = standing.pairs;
    return known;
  }
  TrainedTotals all = leading_->trained();
  if (!board_) return all;
  pieces_->give({}, board_->standing(), workers_now());
  all.tokens += board_->before().tokens;
  all.pairs += board_->before().pairs;
  for (const auto& [node, trained] : board_->trained())
    if (!leading_->has_finished(node)) all.tokens += trained.tokens, all.pairs += trained.pairs;
  return all;
}

// The others end when they hear that all have: a transport that is closed drops what has not left it.
void ClusterNode::await_hearing(std::unique_lock<std::mutex>& lock) {
  const std::set<NodeId> members = all_of(view_);
  const auto waits = [&](const auto& link) { return members.count(link.first) > 0 && !link.second.idle(); };
  const Deadline deadline = Deadline::after(kFarewell);
  while (!deadline.passed() && std::any_of(links_.begin(), links_.end(), waits)) changed_.wait_for(lock, kHearingLook);
}

ClusterStats ClusterNode::stats() const {
  const std::lock_guard lock(mutex_);
  ClusterStats stats = stats_;
  const TransportTotals totals = transport_->totals();
  stats.bytes_sent = totals.bytes_sent;
  stats.bytes_received = totals.bytes_received;
  stats.epoch = view_.epoch;
  stats.settled = view_.epoch > 0 && (replica_ == nullptr || replica_->settled());
  stats.notes = finder_.reasons();
  stats.notes.insert(stats.notes.end(), codec_finder_.reasons().begin(), codec_finder_.reasons().end());
  stats.notes.insert(stats.notes.end(), lost_.begin(), lost_.end());
  if (!unwritten_.empty()) stats.notes.push_back(unwritten_);
  stats.staleness_most = staleness_most_;
  const std::set<NodeId> present = all_of(view_);
  stats.nodes = static_cast<int32_t>(present.size());
  for (const NodeId node : all_of(known_)) {
    const auto heard = heard_s_.find(node);
    const bool own = node == self_;
    ClusterMember member{.node = node,
                         .worker = is_among(known_.workers, node),
                         .server = has_rows() && is_among(known_.servers, node) && !is_among(view_.retired, node),
                         .leader = node == leader_,
                         .taking_part = present.count(node) > 0,
                         .silent_s = own || heard == heard_s_.end() ? 0 : clock_seconds() - heard->second};
    if (own) member.figures = own_figures(), member.staleness = staleness_at(member.figures.clock);
    if (const auto told = told_.find(node); told != told_.end())
      std::tie(member.figures, member.staleness) = told->second;
    stats.members.push_back(member);
  }
  return stats;
}

NodeFigures ClusterNode::own_figures() const {
  const TransportTotals totals = transport_->totals();
  const int64_t clock = replica_ != nullptr             ? replica_->clock()
                        : options_.companion != nullptr ? options_.companion->clock()
                                                        : -1;
  return {clock, totals.bytes_sent, totals.bytes_received};
}

int64_t ClusterNode::staleness_at(int64_t clock) const {
  if (clock < 0) return -1;
  int64_t furthest = std::max(clock, replica_ != nullptr ? replica_->clock() : -1);
  for (const auto& [node, told] : told_) furthest = std::max(furthest, told.first.clock);
  return furthest - clock;
}

void ClusterNode::run() {
  {
    const std::lock_guard lock(mutex_);
    tell_leader(hello());
  }
  double wait_s = 0;
  for (bool failed = false; !stopping_ && !failed;) {  // a node that has failed falls silent: the others go on
    NodeId from = 0;
    std::string frame;
    const Status got = transport_->receive(Deadline::after_s(wait_s), from, frame);
    const std::lock_guard lock(mutex_);
    const double now = clock_seconds();
    forgive_pause(now);
    if (got.ok()) {
      // One may have heard of us before we have of it.
      if (options_.joinable && forgotten_.count(from) == 0) links_.try_emplace(from, kLink);
      const auto link = links_.find(from);
      std::vector<std::string> messages, frames;
      if (link != links_.end() && link->second.receive(frame, now, messages, frames).ok()) heard_s_[from] = now;
      for (std::string& answer : frames) transport_->send(from, std::move(answer));
      for (const std::string& message : messages) receive_message(from, message);
    } else if (got.code() == Code::kUnavailable) {
      fail(got);
    }
    step(now);
    note_clocks();
    stats_.talking_s = thread_seconds();
    if (options_.crew != nullptr) stats_.talking_s += options_.crew->helped_s();
    failed = !status_.ok();
    wait_s = std::clamp(push_due_in(clock_seconds()), kWaitLeast, kWaitMost);
  }
}

// A node that was stopped itself has not heard the others for just as long: that is not their silence.
void ClusterNode::forgive_pause(double now_s) {
  const double paused_s = now_s - std::exchange(stepped_s_, now_s);
  if (paused_s > options_.dead_after_s / 2)
    for (auto& [node, heard_s] : heard_s_) heard_s = std::min(heard_s + paused_s, now_s);
}

void ClusterNode::step(double now_s) {
  deliver_own();
  if (!status_.ok()) return;
  keep_in_touch(now_s);
  if (pieces_ != nullptr && phase_ == Phase::kTraining)
    if (const auto report = pieces_->report(now_s)) tell_leader(asking(*report));
  if (is_leader()) lead(now_s);
  if (const Status told = exchange_words(now_s); !told.ok()) return fail(told);
  if (const Status seen = look_at_companion(); !seen.ok()) return fail(seen);
  push_if_due(now_s);
  deliver_own();
}

Status ClusterNode::look_at_companion() {
  if (phase_ == Phase::kEnded) return {};
  if (options_.companion != nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(companion_over_, options_.companion->over());
  }
  if (!has_rows() && stage_is_over()) end_stage();
  return {};
}

// How far this node is ahead of the slowest, for the threads that train: under SSP they wait when it is too far.
void ClusterNode::note_clocks() {
  if (replica_ == nullptr) return;
  const int64_t before = ahead_.exchange(replica_->clock() - replica_->slowest());
  if (before > ahead_max_ && ahead_ <= ahead_max_) changed_.notify_all();
}

void ClusterNode::deliver_own() {
  while (!own_.empty())
    for (const std::string& message : std::exchange(own_, {})) receive_message(self_, message);
}

// Of a stream: while anybody reads, and of those who do not lead, what they are told until the end.
Status ClusterNode::exchange_words(double now_s) {
  if (options_.stream == nullptr || (phase_ != Phase::kTraining && phase_ != Phase::kFinished)) return {};
  StreamExchange::Outbox out;
  std::vector<Slot> restarted;
  STREAMVEC_RETURN_IF_ERROR(
      options_.stream->step(now_s, self_, leader_, view_, phase_ == Phase::kFinished, out, restarted));
  STREAMVEC_RETURN_IF_ERROR(restart_rows(restarted));
  for (auto& [to, bytes] : out) send(to, std::move(bytes));
  return {};
}

// The slots have other words: their rows are new to everybody, and what came early may be taken.
Status ClusterNode::restart_rows(const std::vector<Slot>& slots) {
  if (!has_rows()) return {};
  std::vector<float> value(static_cast<size_t>(options_.sync.dim));
  for (const Slot slot : slots)
    for (RowKey key = 2 * static_cast<RowKey>(slot); key < 2 * static_cast<RowKey>(slot) + 2; ++key) {
      options_.stream->first_row(key, value);
      if (replica_ != nullptr) replica_->restart(key, value);
      if (server_ != nullptr) server_->restart(key, value);
    }
  if (options_.stream->take_counted()) pace_.set_pull(pulls_of(options_));
  Status status;
  early_.release(options_.stream->generations(), [&](NodeId from, const Message& message) {
    if (status.ok()) status = take_rows(from, message);
  });
  return status;
}

void ClusterNode::receive_message(NodeId from, const std::string& bytes) {
  if (options_.stream != nullptr && is_of_stream(bytes)) {
    std::vector<Slot> restarted;
    Status status = options_.stream->receive(from, leader_, bytes, restarted);
    if (status.ok()) status = restart_rows(restarted);
    if (!status.ok()) misread(from, status);
    return;
  }
  if (!is_control(bytes)) {
    if (const Status status = receive_rows(from, bytes); !status.ok()) misread(from, status);
    return;
  }
  const Result<Control> control = decode_control(bytes);
  if (!control.ok()) return misread(from, control.status());
  receive_control(from, *control);
}

// Before the beginning one of the nodes may be of another kind; then it does not come to be one of these.
void ClusterNode::misread(NodeId from, const Status& why) {
  if (view_.epoch > 0 || options_.joins || from == self_) return fail(why);
  if (is_leader())
    refuse(from, "node " + std::to_string(from) + " sent " + why.message() +
                     "; have all nodes the same --model, --sync and --shard?");
}

void ClusterNode::send_out(Outbox& out) {
  for (Outgoing& outgoing : out) {
    stats_.rows_moved += std::ssize(outgoing.message.rows);
    send(outgoing.to, encode(outgoing.message));
  }
}

// Where a node is reached, of which we may not have heard before.
void ClusterNode::know(NodeId node, const std::string& address) {
  if (node == self_ || addresses_.count(node) > 0) return;
  addresses_[node] = address;
  transport_->add_peer(node, address);
  links_.try_emplace(node, kLink);
  heard_s_.try_emplace(node, clock_seconds());
}

void ClusterNode::send(NodeId to, std::string bytes) {
  if (to == self_) {
    own_.push_back(std::move(bytes));
    return;
  }
  const auto link = links_.find(to);
  if (link == links_.end()) return;
  std::vector<std::string> frames;
  link->second.send(std::move(bytes), clock_seconds(), frames);
  for (std::string& frame : frames) transport_->send(to, std::move(frame));
}

void ClusterNode::fail(Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  failed_ = true;
  if (options_.companion != nullptr) options_.companion->fail(status_);
  if (pieces_ != nullptr) pieces_->end(PieceQueue::Next::kStopped);
  if (options_.stream != nullptr) options_.stream->close();
  changed_.notify_all();
}

}  // namespace streamvec
