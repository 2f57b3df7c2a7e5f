#include "streamvec/cluster/sandblaster_coordinator.h"

#include <algorithm>
#include <chrono>

#include "streamvec/core/clock.h"
#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

constexpr auto kSilenceLook = std::chrono::milliseconds(50);
constexpr double kStoodStill = 0.2;  // several looks

bool holds(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

SandblasterCoordinator::SandblasterCoordinator(const Options& options, SandblasterPost post)
    : options_(options), post_(std::move(post)), workers_(options.workers), owners_(options.owners) {
  for (const auto* nodes : {&workers_, &owners_})
    for (const NodeId node : *nodes) heard_s_[node] = clock_seconds();
}

void SandblasterCoordinator::receive(NodeId from, const SandblasterMessage& message) {
  const std::lock_guard lock(mutex_);
  if (heard_s_.count(from) == 0) {  // it was left out, or has never belonged here
    if (message.kind != SandblasterKind::kRefusal)
      post_(from, {.kind = SandblasterKind::kRefusal,
                   .text = "the others went on without this node, which was silent for more than " +
                           std::to_string(static_cast<int64_t>(options_.dead_after_s)) + " s"});
    return;
  }
  heard_s_[from] = clock_seconds();
  if (message.kind == SandblasterKind::kHello) receive_hello(from, message);
  if (message.kind == SandblasterKind::kStop) stop_asked_ = true;
  if (message.epoch != epoch_) return;
  if (message.kind == SandblasterKind::kFinished) finish_portion(from, message);
  if (message.kind == answer_ && message.number == question_) answers_[from] = message;
  changed_.notify_all();
}

void SandblasterCoordinator::receive_hello(NodeId from, const SandblasterMessage& hello) {
  if (hello.number == options_.fingerprint) {
    present_.insert(from);
    return;
  }
  post_(from, {.kind = SandblasterKind::kRefusal,
               .text = "this node has " + hello.text + ", the first one has " + options_.fingerprint_of +
                       "; give all nodes the same text and options"});
}

void SandblasterCoordinator::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  changed_.notify_all();
}

Result<bool> SandblasterCoordinator::await_start(const std::atomic<bool>* stop) {
  const double begun_s = clock_seconds();
  std::unique_lock lock(mutex_);
  while (present_.size() < heard_s_.size()) {
    if (!status_.ok()) return status_;
    if (stop != nullptr && stop->load()) return false;
    if (clock_seconds() - begun_s > options_.start_within_s)
      return error(Code::kUnavailable, present_.size(), " of ", heard_s_.size(), " nodes came within ",
                   options_.start_within_s, " s; are all nodes started, with the same addresses in the same order?");
    changed_.wait_for(lock, kSilenceLook);
  }
  for (auto& [node, heard_s] : heard_s_) heard_s = clock_seconds();
  return true;
}

Result<std::string> SandblasterCoordinator::run(const std::atomic<bool>* stop, const AfterStep& after_step) {
  stop_ = stop;
  while (true) {
    const Status begun = take_view();
    const Result<std::string> ended = begun.ok() ? minimise(after_step) : Result<std::string>(begun);
    if (ended.ok() || ended.status().code() == Code::kCancelled)
      return ended.ok() ? *ended : std::string("it was stopped");
    if (ended.status().code() != Code::kAborted) return ended;
    const std::lock_guard lock(mutex_);
    ++progress_.restarts;
  }
}

Result<std::string> SandblasterCoordinator::minimise(const AfterStep& after_step) {
  LbfgsOptions options = options_.lbfgs;
  const SandblasterProgress before = progress();
  options.iterations_max -= before.iterations;
  if (options.iterations_max <= 0) return std::string("all iterations are done");
  Lbfgs lbfgs(*this, options);
  return lbfgs.minimise([&](const LbfgsProgress& now) -> Result<bool> {
    {
      const std::lock_guard lock(mutex_);
      progress_.iterations = before.iterations + now.iterations;
      progress_.value = now.value;
    }
    STREAMVEC_RETURN_IF_ERROR(keep());
    STREAMVEC_ASSIGN_OR_RETURN(const bool go_on, after_step(progress()));
    return go_on && !wants_stop();
  });
}

Status SandblasterCoordinator::take_view() {
  STREAMVEC_RETURN_IF_ERROR(tell_view());
  return have_copies_ ? keep() : Status();
}

Status SandblasterCoordinator::tell_view() {
  SandblasterMessage view{.kind = SandblasterKind::kView};
  {
    const std::lock_guard lock(mutex_);
    if (owners_.empty())
      return error(Code::kUnavailable, "no owner of rows is left: none was heard for ", options_.dead_after_s, " s");
    ++epoch_;
    owner_lost_ = false;
    board_.reset();
    view.epoch = epoch_;
    view.number = have_copies_ ? 1 : 0;
    view.rows.assign(owners_.begin(), owners_.end());
    question_ = 0;  // of kReady
    answer_ = SandblasterKind::kReady;
    answers_.clear();
    for (const auto& [node, heard_s] : heard_s_) post_(node, view);
  }
  std::unique_lock lock(mutex_);
  STREAMVEC_RETURN_IF_ERROR(await(lock, [&] { return answers_.size() == owners_.size(); }));
  for (const auto& [node, answer] : answers_)
    if (!answer.text.empty())
      return error(Code::kDataLoss, answer.text, "; the newest checkpoint is what remains (--checkpoint-every)");
  return {};
}

Status SandblasterCoordinator::ask_owners(SandblasterMessage question, SandblasterKind answer) {
  std::unique_lock lock(mutex_);
  question.epoch = epoch_;
  question_ = question.number;
  answer_ = answer;
  answers_.clear();
  for (const NodeId owner : owners_) post_(owner, question);
  return await(lock, [&] { return answers_.size() == owners_.size(); });
}

Status SandblasterCoordinator::apply(std::span<const VectorOp> ops, std::vector<double>& told) {
  SandblasterMessage question{.kind = SandblasterKind::kApply, .number = ++questions_};
  question.ops.assign(ops.begin(), ops.end());
  STREAMVEC_RETURN_IF_ERROR(ask_owners(std::move(question), SandblasterKind::kTold));
  const std::lock_guard lock(mutex_);
  told.assign(static_cast<size_t>(std::count_if(ops.begin(), ops.end(), [](const VectorOp& op) { return op.tells(); })),
              0.0);
  for (const auto& [node, answer] : answers_) {
    if (answer.doubles.size() != told.size())
      return error(Code::kInternal, "node ", node, " told ", answer.doubles.size(), " sums of ", told.size());
    for (size_t i = 0; i < told.size(); ++i) told[i] += answer.doubles[i];
  }
  return {};
}

Status SandblasterCoordinator::begin_evaluation() {
  evaluation_ = ++questions_;
  STREAMVEC_RETURN_IF_ERROR(
      ask_owners({.kind = SandblasterKind::kBegin, .number = evaluation_}, SandblasterKind::kTold));
  const std::lock_guard lock(mutex_);
  board_.emplace(options_.portions);
  parts_.assign(static_cast<size_t>(options_.portions), {});
  hand_out();
  return {};
}

Result<double> SandblasterCoordinator::evaluate() {
  STREAMVEC_RETURN_IF_ERROR(begin_evaluation());
  PortionValue all;
  {
    std::unique_lock lock(mutex_);
    Status stopped;
    STREAMVEC_RETURN_IF_ERROR(await(lock, [&] {
      if (wants_stop()) stopped = error(Code::kCancelled, "stopped");
      return !stopped.ok() || board_->over();
    }));
    STREAMVEC_RETURN_IF_ERROR(stopped);
    for (const PortionValue& part : parts_) {  // always in this order, so that the sum is always the same
      all.value += part.value;
      all.weight += part.weight;
    }
    ++progress_.evaluations;
    progress_.weight = all.weight;
    progress_.copies += board_->copies();
    board_.reset();
  }
  if (!(all.weight > 0)) return error(Code::kInvalidArgument, "the text has no pair of words to learn from");
  std::vector<double> told;
  const VectorOp mean{VectorOp::Kind::kScale, kTrialGradient, 0, 1 / all.weight};
  STREAMVEC_RETURN_IF_ERROR(apply({&mean, 1}, told));
  return all.value / all.weight;
}

// Round after round, so that nobody gets a second portion before everybody has a first.
void SandblasterCoordinator::hand_out() {
  for (int32_t most = 1; most <= options_.portions_at_once; ++most)
    for (const NodeId worker : workers_)
      if (board_->in_work(worker) < most)
        if (const std::optional<int64_t> portion = board_->next(worker))
          post_(worker, {.kind = SandblasterKind::kPortion,
                         .epoch = epoch_,
                         .number = evaluation_,
                         .portion = static_cast<uint32_t>(*portion)});
}

void SandblasterCoordinator::finish_portion(NodeId from, const SandblasterMessage& message) {
  if (!board_ || message.number != evaluation_ || message.portion >= parts_.size() || message.doubles.size() != 2)
    return;
  if (board_->finish(from, message.portion)) parts_[message.portion] = {message.doubles[0], message.doubles[1]};
  if (!board_->over()) hand_out();
}

// After it each row is with two owners, if there are two.
Status SandblasterCoordinator::keep() {
  STREAMVEC_RETURN_IF_ERROR(
      ask_owners({.kind = SandblasterKind::kKeep, .number = ++questions_}, SandblasterKind::kKept));
  const std::lock_guard lock(mutex_);
  have_copies_ = true;
  return {};
}

Status SandblasterCoordinator::read_point(const std::function<void(RowKey, std::span<const float>)>& row) {
  std::map<NodeId, std::vector<RowKey>> by_owner;
  std::vector<NodeId> owners;
  {
    const std::lock_guard lock(mutex_);
    owners = owners_;
  }
  for (RowKey key = 0; key < options_.row_end; ++key) by_owner[owner_of(key, owners)].push_back(key);
  const size_t dim = static_cast<size_t>(options_.dim), at_once = rows_of_message(options_.dim);
  std::vector<float> values;
  for (const auto& [owner, keys] : by_owner)
    for (size_t at = 0; at < keys.size(); at += at_once) {
      const std::span<const RowKey> part = std::span(keys).subspan(at, std::min(at_once, keys.size() - at));
      STREAMVEC_RETURN_IF_ERROR(fetch_part(part, owner, values));
      for (size_t i = 0; i < part.size(); ++i) row(part[i], std::span(values).subspan(i * dim, dim));
    }
  return {};
}

Status SandblasterCoordinator::read_last_point(const std::function<void(RowKey, std::span<const float>)>& row) {
  Status read = read_point(row);
  while (read.code() == Code::kAborted) {
    read = take_view();
    if (read.ok()) read = read_point(row);
  }
  return read;
}

Status SandblasterCoordinator::fetch_part(std::span<const RowKey> rows, NodeId owner, std::vector<float>& values) {
  SandblasterMessage question{
      .kind = SandblasterKind::kFetch, .number = kCoordinatorQuestions | ++questions_, .vector = kPoint};
  question.rows.assign(rows.begin(), rows.end());
  std::unique_lock lock(mutex_);
  question.epoch = epoch_;
  question_ = question.number;
  answer_ = SandblasterKind::kRows;
  answers_.clear();
  post_(owner, question);
  STREAMVEC_RETURN_IF_ERROR(await(lock, [&] { return answers_.count(owner) > 0; }));
  values = std::move(answers_[owner].values);
  if (values.size() != rows.size() * static_cast<size_t>(options_.dim))
    return error(Code::kInternal, "node ", owner, " gave ", values.size(), " values for ", rows.size(), " rows");
  return {};
}

void SandblasterCoordinator::end() {
  const std::lock_guard lock(mutex_);
  for (const auto& [node, heard_s] : heard_s_) post_(node, {.kind = SandblasterKind::kEnd, .epoch = epoch_});
}

Status SandblasterCoordinator::await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  while (!done()) {
    if (!status_.ok()) return status_;
    STREAMVEC_RETURN_IF_ERROR(leave_out_silent());
    changed_.wait_for(lock, kSilenceLook);
  }
  return {};
}

Status SandblasterCoordinator::leave_out_silent() {
  std::vector<NodeId> silent;
  const double now_s = clock_seconds(), stood_still_s = now_s - looked_s_;
  if (stood_still_s > std::max(options_.dead_after_s / 2, kStoodStill))  // it was us who did not listen
    for (auto& [node, heard_s] : heard_s_) heard_s = now_s;
  looked_s_ = now_s;
  for (const auto& [node, heard_s] : heard_s_)
    if (node != options_.self && now_s - heard_s > options_.dead_after_s) silent.push_back(node);
  for (const NodeId node : silent) {
    owner_lost_ = owner_lost_ || holds(owners_, node);
    notes_.push_back("node " + std::to_string(node) + " fell silent and was left out" +
                     (holds(owners_, node) ? "; its rows went to others, and L-BFGS began anew" : ""));
    heard_s_.erase(node);
    std::erase(workers_, node);
    std::erase(owners_, node);
    if (board_) board_->leave(node);
  }
  if (owner_lost_) return error(Code::kAborted, "an owner of rows is gone");
  if (!silent.empty() && board_) hand_out();
  return {};
}

SandblasterProgress SandblasterCoordinator::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

std::vector<NodeId> SandblasterCoordinator::members() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeId> members;
  for (const auto& [node, heard_s] : heard_s_) members.push_back(node);
  return members;
}

std::vector<std::string> SandblasterCoordinator::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

}  // namespace streamvec
