#include "streamvec/cluster/ring_node.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "streamvec/core/clock.h"
#include "streamvec/core/thread_time.h"
#include "streamvec/sync/shared_step.h"

namespace streamvec {
namespace {

constexpr double kRoundEvery = 0.25;  // at least, also by a node whose text comes slowly: the others wait for it
constexpr auto kDueLook = std::chrono::milliseconds(5), kNoTime = std::chrono::milliseconds(0);
constexpr double kStepLook = 0.02;                             // seconds: of a ring that takes turns
constexpr auto kRingStopLook = std::chrono::milliseconds(50);  // between two looks at a wish to stop
constexpr size_t kPart = size_t{1} << 20;                      // values of one broadcast
constexpr int64_t kTeamChunk = int64_t{1} << 20;               // bytes of values that a team packs at once

}  // namespace

Result<std::unique_ptr<RingNode>> RingNode::start(const RingOptions& options, std::unique_ptr<Transport> transport) {
  std::unique_ptr<RingNode> node(new RingNode(options));
  node->transport_ = std::make_unique<ReliableTransport>(std::move(transport));
  STREAMVEC_RETURN_IF_ERROR(node->begin());
  return node;
}

Status RingNode::begin() {
  if (options_.slopes != nullptr) {
    replica_ = std::make_unique<SharedStep>(*options_.slopes, *options_.team);
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(replica_, DenseReplica::make({.tables = options_.tables, .team = options_.team}));
  }
  second_.resize(static_cast<size_t>(replica_->second_size()));
  RingCollective::Options ring;
  ring.interrupted = [this] { return interrupted(); };
  ring.silent_max_s = options_.unheard_after_s;
  ring.in_bf16 = options_.form == RingOptions::Form::kBf16;
  if (options_.slopes != nullptr) {
    ring.team = options_.team;
    ring.chunk_bytes = kTeamChunk;
  }
  make_room();
  if (options_.joins) standing_.rounds = RingStanding::kNewcomer;
  standing_.rows_met = replica_->rows_met();
  collective_ = std::make_unique<RingCollective>(*transport_, std::vector{transport_->self()}, std::move(ring));
  thread_ = std::thread([this] { run(); });
  return {};
}

// For the values of the next round. Where they lie elsewhere than before, what was left out is, too.
void RingNode::make_room() {
  const auto size = static_cast<size_t>(replica_->size()) + 1;
  if (values_.size() == size) return;
  values_.resize(size);
  if (options_.form == RingOptions::Form::kFewBits) left_out_.assign(size, 0.0f);
}

RingNode::~RingNode() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (options_.turns) options_.turns->close();
  transport_->close();
  if (thread_.joinable()) thread_.join();
}

void RingNode::take_view(const View& view) {
  const std::lock_guard lock(mutex_);
  view_ = view;
  std::erase_if(view_.workers, [&](NodeId node) { return options_.outside.count(node) > 0; });
  told_ = view.epoch;
  changed_.notify_all();
}

void RingNode::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  status_ = status;
  failed_ = true;
  if (options_.turns) options_.turns->close();
  changed_.notify_all();
}

Result<bool> RingNode::over() const {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return status_;
  return phase_ == Phase::kEnded;
}

int64_t RingNode::clock() const {
  const std::lock_guard lock(mutex_);
  return rounds_begun_;
}

Result<bool> RingNode::await_start(const std::atomic<bool>* stop) {
  std::unique_lock lock(mutex_);
  while (phase_ == Phase::kStarting && status_.ok()) {
    if (stop != nullptr && stop->load()) return false;
    changed_.wait_for(lock, kRingStopLook);
  }
  if (!status_.ok()) return status_;
  return true;
}

Status RingNode::trained(int64_t words, double lr) {
  steps_ += static_cast<double>(words) * lr;
  const int64_t now = words_.fetch_add(words) + words;
  const auto may_go_on = [&] { return failed_ || (!wants_tables_ && now - begun_words_ <= options_.words_max); };
  if (may_go_on() && !failed_) return {};
  std::unique_lock lock(mutex_);
  if (!may_go_on()) {
    const double begun = clock_seconds();
    changed_.wait(lock, may_go_on);
    waiting_s_ += clock_seconds() - begun;
  }
  return status_;
}

void RingNode::finish() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kTraining) phase_ = Phase::kFinished;
  wants_round_ = true;
  changed_.notify_all();
}

void RingNode::add_to(ClusterStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.pushes += rounds_begun_;
  stats.waiting_s += waiting_s_ + (options_.turns ? options_.turns->waited_s() : 0);
  stats.talking_s += talking_s_;
}

void RingNode::run() {
  while (await_due()) {
    Status status = has_to_regroup()                                  ? regroup()
                    : standing_.stage == RingStanding::Stage::kRounds ? round()
                                                                      : rest_round();
    {
      const std::lock_guard lock(mutex_);
      talking_s_ = thread_seconds();
    }
    // A round that a later membership has cut short is not this ring's failure.
    if (status.ok() || has_to_regroup() || stopping_ || failed_) continue;
    fail(Status(status.code(), "the ring broke: " + status.message() + "; this node takes no further part"));
  }
}

// False when this node is to part.
bool RingNode::await_due() {
  std::unique_lock lock(mutex_);
  while (!interrupted() && !is_due(clock_seconds())) {
    const bool finished = phase_ == Phase::kFinished;
    if (!follows_steps() || (phase_ != Phase::kTraining && !finished)) {
      changed_.wait_for(lock, kDueLook);
      continue;
    }
    lock.unlock();
    collective_->tell_alive();
    if (collective_->ranks() > 1 && (finished || is_idle())) {
      (void)collective_->is_called(Deadline::after(kDueLook));
    } else {
      options_.turns->await_step(std::min(kStepLook, options_.idle_max_s));
    }
    lock.lock();
  }
  return !stopping_ && !failed_;
}

// What the last round has cost is to be no more than its share of the time since it began, unless threads wait for the
// next, or others for this node. One that has no pieces at the moment is in no hurry: most likely all the text is about
// to be over, and a round that begins before that is known is not the last. Nor is one whose text is over and who has
// said so: where rounds follow steps, it follows those of the others.
bool RingNode::is_due(double now_s) {
  if (phase_ == Phase::kStarting || phase_ == Phase::kEnded) return false;
  const bool finished = phase_ == Phase::kFinished;
  if (finished && (wants_round_ || !follows_steps() || standing_.stage == RingStanding::Stage::kRest)) return true;
  const int64_t words = words_ - begun_words_;
  const double since_s = now_s - begun_s_;
  if (words > options_.words_max || since_s > options_.dead_after_s / 4) return true;
  if (follows_steps())
    return options_.turns->stepped() || ((finished || is_idle()) && collective_->is_called(Deadline::after(kNoTime)));
  if (options_.turns) return since_s > kRoundEvery || (options_.turns->stepped() && words >= options_.words_min);
  if (talking_s_ - begun_talking_s_ > options_.talking_share * options_.threads * since_s) return false;
  return words >= options_.words_min || since_s > kRoundEvery;
}

Status RingNode::regroup() {
  View view;
  {
    const std::lock_guard lock(mutex_);
    view = view_;
  }
  for (const NodeId node : collective_->ring())
    if (!is_among(view.workers, node)) transport_->forget(node);
  collective_->form(view.workers, view.epoch);
  std::fill(left_out_.begin(), left_out_.end(), 0.0f);
  formed_ = view.epoch;
  std::string own(sizeof standing_, '\0');
  std::memcpy(own.data(), &standing_, sizeof standing_);
  std::vector<std::string> told;
  STREAMVEC_RETURN_IF_ERROR(collective_->all_gather(own, told, Deadline::never()));
  std::vector<RingStanding> all(told.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (told[rank].size() != sizeof all[rank])
      return error(Code::kInvalidArgument, "node ", view.workers[rank], " says nothing of its rounds");
    std::memcpy(&all[rank], told[rank].data(), sizeof all[rank]);
  }
  const RingAgreement agreement = agree(all);
  const RingStanding& furthest = all[agreement.furthest];
  if (furthest.is_new())
    return error(Code::kUnavailable, "nobody is left who could tell this node, which joins, what was learnt");
  if (standing_.rounds == furthest.rounds) {
    use_tables([&] { replica_->undo(); });
    if (options_.turns) options_.turns->drop_exchange();
  }
  if (agreement.differ) STREAMVEC_RETURN_IF_ERROR(bring_up(agreement, furthest));
  replica_->set_nodes(static_cast<int64_t>(view.workers.size()));
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kStarting) phase_ = Phase::kTraining;
  wants_round_ = true;  // what was told may have been in one that came to nothing
  begun_s_ = clock_seconds();
  changed_.notify_all();
  return {};
}

// All parts have to be there before any of them counts.
Status RingNode::bring_up(const RingAgreement& agreement, const RingStanding& furthest) {
  const int teller = static_cast<int>(agreement.furthest);
  std::vector<float> agreed(static_cast<size_t>(replica_->agreed_size()));
  if (collective_->rank() == teller) use_tables([&] { replica_->copy_agreed(agreed); });
  for (size_t at = 0; at < agreed.size(); at += kPart) {
    const std::span<float> part(agreed.data() + at, std::min(kPart, agreed.size() - at));
    std::string bytes;
    if (collective_->rank() == teller) bytes.assign(reinterpret_cast<const char*>(part.data()), part.size_bytes());
    STREAMVEC_RETURN_IF_ERROR(collective_->broadcast(bytes, teller, Deadline::never()));
    if (bytes.size() != part.size_bytes()) return error(Code::kInvalidArgument, "what a node agreed to is cut short");
    std::memcpy(part.data(), bytes.data(), bytes.size());
  }
  if (standing_.rounds == furthest.rounds) return {};
  replica_->set_trained(steps_);
  const auto adopt = [&] { replica_->adopt(agreed); };
  standing_.is_new() ? use_tables(adopt) : end_exchange(adopt);
  stand_at(furthest);
  return {};
}

// Who is dead is said by the membership, not by a deadline.
Status RingNode::round() {
  const std::span<float> changes(values_.data(), values_.size() - 1);
  {
    const std::lock_guard lock(mutex_);
    begun_s_ = clock_seconds();
    begun_talking_s_ = talking_s_;
    ++rounds_begun_;
    values_.back() = phase_ == Phase::kFinished ? 0 : 1;  // before the changes are read: then they are the last
    wants_round_ = false;
    begun_words_ = words_.load();
    changed_.notify_all();
  }
  replica_->set_trained(steps_);
  if (!begin_exchange([&] { replica_->bring(changes); })) return error(Code::kAborted, "another ring is formed");
  STREAMVEC_RETURN_IF_ERROR(reduce());
  if (!second_.empty()) {
    replica_->bring_second(changes, second_);
    STREAMVEC_RETURN_IF_ERROR(collective_->all_reduce_mean(second_, Deadline::never()));
  }
  replica_->set_trained(steps_);
  end_exchange([&] { replica_->take(changes, second_); });
  // Rows that nobody knew of when it began have a round of their own.
  const bool all_finished = values_.back() == 0;
  const bool last = all_finished && replica_->rows_met() == standing_.rows_met;
  const RingStanding::Stage stage = !last                       ? RingStanding::Stage::kRounds
                                    : replica_->rest_size() > 0 ? RingStanding::Stage::kRest
                                                                : RingStanding::Stage::kOver;
  stand_at({standing_.rounds + 1, stage, replica_->rows_met()});
  if (all_finished && !last) {
    const std::lock_guard lock(mutex_);
    wants_round_ = true;
  }
  return {};
}

Status RingNode::reduce() {
  const auto whole = values_.size() - static_cast<size_t>(replica_->changes());
  const bool few_bits = !left_out_.empty();
  if (replica_->parts().empty())
    return few_bits ? collective_->all_reduce_mean_in_four_bits(values_, whole, left_out_, Deadline::never())
                    : collective_->all_reduce_mean(values_, Deadline::never());
  std::vector<size_t> begins(replica_->parts().begin(), replica_->parts().end());
  begins.back() = values_.size();  // with what this node adds
  const RingCollective::Parts parts{
      begins, [this](size_t part, std::span<float> means) { use_tables([&] { replica_->make_part(part, means); }); }};
  Status status;
  options_.turns->go_on([&] {  // the next batch waits, and the team works for the ring meanwhile
    status = few_bits ? collective_->all_reduce_made_in_few_bits(values_, whole, left_out_, parts, Deadline::never())
                      : collective_->all_reduce_made(values_, parts, Deadline::never());
  });
  return status;
}

// Nobody trains any more.
Status RingNode::rest_round() {
  std::vector<float> rest(static_cast<size_t>(replica_->rest_size()));
  use_tables([&] { replica_->bring_rest(rest); });
  STREAMVEC_RETURN_IF_ERROR(collective_->all_reduce_mean(rest, Deadline::never()));
  use_tables([&] { replica_->take_rest(rest); });
  stand_at({standing_.rounds + 1, RingStanding::Stage::kOver, replica_->rows_met()});
  return {};
}

void RingNode::stand_at(const RingStanding& standing) {
  standing_ = standing;
  replica_->take_rows_met(standing.rows_met);
  make_room();
  if (standing.stage != RingStanding::Stage::kOver) return;
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kEnded;
  if (options_.turns) options_.turns->close();
  changed_.notify_all();
}

// False: something else has to be done first.
bool RingNode::begin_exchange(const std::function<void()>& use) {
  const auto use_now = [&] { use_tables(use); };
  const auto waits_no_longer = [this] {
    collective_->tell_alive();  // a step may take long
    return interrupted();
  };
  if (options_.turns) return options_.turns->begin_exchange(waits_no_longer, use_now);
  use_now();
  return true;
}

void RingNode::end_exchange(const std::function<void()>& use) {
  const auto use_now = [&] { use_tables(use); };
  options_.turns ? options_.turns->end_exchange(use_now) : use_now();
}

void RingNode::use_tables(const std::function<void()>& use) {
  if (!options_.with_tables) return use();
  wants_tables_ = true;
  options_.with_tables(use);
  const std::lock_guard lock(mutex_);
  wants_tables_ = false;
  changed_.notify_all();
}

}  // namespace streamvec
