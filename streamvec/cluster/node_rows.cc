// A node's rows: what others send of them, when its own are pushed and which, and the end in two stages.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "streamvec/cluster/node.h"
#include "streamvec/core/bits.h"
#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr double kRefreshEvery = 0.002;
// By one that has nothing to train on, at least: rounds without a slow worker would otherwise follow each other faster
// than it can hear of them.
constexpr double kIdleEvery = 0.005;
constexpr double kDryAfter = 0.05;    // longer than a batch takes
constexpr int32_t kFlushPushes = 1;   // what a codec leaves out of it is little: rates have come down
constexpr int32_t kSettlePushes = 1;  // brings back what others have pushed before it

}  // namespace

Status ClusterNode::receive_rows(NodeId from, const std::string& bytes) {
  if (phase_ == Phase::kEnded) return {};  // the tables are the caller's again
  STREAMVEC_ASSIGN_OR_RETURN(Message message, decode_message(bytes, {.key_end = options_.sync.key_end}));
  if (options_.stream != nullptr && early_.keep(from, message, options_.stream->generations())) return {};
  return take_rows(from, message);
}

Status ClusterNode::take_rows(NodeId from, const Message& message) {
  const bool for_worker = message.kind == MessageKind::kUpdate || message.kind == MessageKind::kRefused ||
                          message.kind == MessageKind::kValues;
  Outbox out;
  if (options_.joins && phase_ == Phase::kStarting && message.kind == MessageKind::kValues)
    return from == leader_ && replica_ != nullptr ? replica_->take_base(message) : Status();
  if (replica_ != nullptr) replica_->set_trained(steps_);
  const bool had_begun = has_begun();
  stats_.rows_moved += std::ssize(message.rows);
  const bool awaited = replica_ != nullptr && replica_->awaits(from);
  if (for_worker && replica_ != nullptr) STREAMVEC_RETURN_IF_ERROR(replica_->receive(from, message, out));
  if (awaited && from != self_ && !replica_->awaits(from)) slow_owners_.answered(from, clock_seconds());
  if (!for_worker && server_ != nullptr) STREAMVEC_RETURN_IF_ERROR(server_->receive(from, message, out));
  if (!had_begun && has_begun()) changed_.notify_all();
  send_out(out);
  return {};
}

void ClusterNode::push_if_due(double now_s) {
  if (replica_ == nullptr || !replica_->idle() || phase_ == Phase::kStarting || phase_ == Phase::kEnded) return;
  PushPace::Done done = done_by(now_s);
  Outbox out;
  if (!replica_->may_train()) {
    if (held_since_s_ < 0) held_since_s_ = now_s;
    if (now_s - refreshed_s_ < kRefreshEvery) return;
    refreshed_s_ = now_s;
    replica_->refresh(out);
    return send_out(out);
  }
  // One that has nothing to train on at the moment holds nobody up, nor does it hurry them: it follows, or pushes
  // whenever it can where it does not see others wait.
  const bool trains = phase_ == Phase::kTraining && (pieces_ == nullptr || !pieces_->dry(now_s)) && !is_dry(done);
  const bool follows = phase_ <= Phase::kFinished && server_ != nullptr && options_.sync.scheme.awaits_all();
  done.dry = !trains;
  if ((trains || follows) && !pace_.is_time(done)) return;
  if (stage_is_over()) end_stage();
  if (trains && !pace_.can_afford(done)) return;
  if (!trains && !follows && now_s - pushed_s_ < kIdleEvery) return;
  begin_push(done, out);
  send_out(out);
}

// Seconds, as far as this node alone decides; what others send wakes it anyway.
double ClusterNode::push_due_in(double now_s) const {
  constexpr double kUnknown = 1;
  if (replica_ == nullptr || !replica_->idle() || phase_ != Phase::kTraining) return kUnknown;
  if (!replica_->may_train()) return refreshed_s_ + kRefreshEvery - now_s;
  return pace_.due_in(done_by(now_s));
}

PushPace::Done ClusterNode::done_by(double now_s) const {
  return {words_, steps_, now_s, stats_.talking_s, server_ != nullptr && server_->awaits(self_)};
}

// Of a stream: nothing has come to be trained on for a while.
bool ClusterNode::is_dry(const PushPace::Done& done) {
  if (done.words != seen_words_) seen_words_ = done.words, seen_s_ = done.now_s;
  return options_.stream != nullptr && done.now_s - seen_s_ >= kDryAfter;
}

void ClusterNode::find_staleness(double now_s) {
  finder_.pushed(now_s, held_since_s_ < 0 ? 0 : now_s - held_since_s_, replica_->clocks());
  held_since_s_ = -1;
  replica_->set_staleness(finder_.staleness());
  ahead_max_ = finder_.staleness();
  changed_.notify_all();
}

void ClusterNode::find_codec(double now_s) {
  std::optional<double> slowest;
  for (const NodeId server : view_.servers) {
    const auto link = links_.find(server);
    if (server == self_ || link == links_.end()) continue;
    slowest = std::min(slowest.value_or(INFINITY), link->second.bytes_per_s());
  }
  codec_finder_.pushed(now_s, pushed_rows_, slowest.value_or(0));
  replica_->set_codec(codec_finder_.codec());
}

void ClusterNode::begin_push(const PushPace::Done& done, Outbox& out) {
  ++stage_pushes_;
  pushed_s_ = done.now_s;
  if (options_.sync.scheme.adaptive && phase_ == Phase::kTraining) find_staleness(done.now_s);
  if (options_.sync.scheme.finds_codec && phase_ == Phase::kTraining) find_codec(done.now_s);
  if (options_.sync.scheme.retires_slow_owners()) slow_owners_.pushed(done.now_s, owners_beside_this());
  pace_.begin(done);
  begun_words_ = done.words;  // first: threads go on training while the push is made
  changed_.notify_all();
  take_due();
  replica_->set_trained(done.steps);
  replica_->begin(due_, out);
  pushed_rows_ = 0;
  for (const auto& [to, message] : out)
    if (to != self_) pushed_rows_ = std::max(pushed_rows_, std::ssize(message.rows));
  ++stats_.pushes;
  stats_.rows_pushed += static_cast<int64_t>(due_.size());
}

// The rows that it is time for: of a text that was counted all of those have been trained on since they were last
// pushed, of a stream those that are marked. At the end all: what codecs have left out.
void ClusterNode::take_due() {
  due_.clear();
  const bool all = phase_ == Phase::kFlushing && stage_pushes_ <= kFlushPushes;
  const auto end = static_cast<size_t>(options_.stream != nullptr ? options_.stream->generations().key_end()
                                                                  : options_.sync.key_end);
  if (all) {
    due_.resize(end);
    std::iota(due_.begin(), due_.end(), RowKey{0});
    return;
  }
  std::span<const uint64_t> wanted = pace_.rows(replica_->clock() + 1, replica_->mean_square());
  wanted = wanted.first(std::min((end + 63) / 64, wanted.size()));
  if (options_.changed != nullptr) return options_.changed->take(wanted, due_);
  for_each_bit(wanted, [&](size_t key) {
    if (key < end) due_.push_back(static_cast<RowKey>(key));
  });
}

// The end in two stages, so that everybody ends with everything: all push what is left until the owners have it; then
// all push until they have heard of that. Nobody stops pushing before all have, since rounds need everybody.
void ClusterNode::begin_stage(Phase phase) {
  if (phase_ < Phase::kFinished || phase_ == Phase::kEnded || !is_worker_) return;
  phase_ = phase;
  stage_pushes_ = 0;
}

// REQUIRES: every push is answered.
bool ClusterNode::stage_is_over() const {
  if (!companion_over_) return false;
  if (!has_rows()) return phase_ == Phase::kFlushing || phase_ == Phase::kSettling;
  if (phase_ == Phase::kFlushing) return stage_pushes_ >= kFlushPushes;
  if (phase_ != Phase::kSettling || stage_pushes_ < kSettlePushes) return false;
  return !options_.sync.scheme.in_rounds() || replica_->clock() >= settle_clock_;
}

void ClusterNode::end_stage() {
  const bool flushed = phase_ == Phase::kFlushing;
  phase_ = flushed ? Phase::kFlushed : Phase::kSettled;
  Control over{flushed ? ControlKind::kFlushed : ControlKind::kSettled};
  over.view.epoch = view_.epoch;
  if (replica_ != nullptr) over.clock = replica_->clock();
  tell_leader(over);
}

}  // namespace streamvec
