#include "streamvec/cluster/ring_node.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "streamvec/cluster/fixed_nodes.h"
#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr double kRoundEvery = 0.25;  // at least, also by a node whose text comes slowly: the others wait for it
constexpr auto kDueLook = std::chrono::milliseconds(5);
constexpr auto kRingStopLook = std::chrono::milliseconds(50);  // between two looks at a wish to stop
// Values that travel under one deadline: a slow network is told from a dead node by whether such a part arrives.
constexpr size_t kPart = size_t{1} << 20;

double thread_seconds_now() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

Deadline within(double seconds) {
  return Deadline::after(std::chrono::duration_cast<Deadline::Clock::duration>(std::chrono::duration<double>(seconds)));
}

template <typename Value>
std::string bytes_of(const Value& value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<RingNode>> RingNode::start(const RingOptions& options, std::unique_ptr<Transport> transport) {
  std::unique_ptr<RingNode> node(new RingNode(options));
  node->transport_ = std::make_unique<ReliableTransport>(std::move(transport));
  node->collective_ = std::make_unique<RingCollective>(*node->transport_, options.nodes);
  STREAMVEC_RETURN_IF_ERROR(node->begin());
  return node;
}

Status RingNode::begin() {
  STREAMVEC_ASSIGN_OR_RETURN(replica_,
                             DenseReplica::make({static_cast<int64_t>(options_.nodes.size()), options_.tables}));
  values_.resize(static_cast<size_t>(replica_->size()) + 1);
  second_.resize(static_cast<size_t>(replica_->second_size()));
  thread_ = std::thread([this] { run(); });
  return {};
}

RingNode::~RingNode() {
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ended = phase_ == Phase::kEnded;
  }
  changed_.notify_all();
  if (!ended) transport_->close();  // what was said last at an end still has to arrive
  if (thread_.joinable()) thread_.join();
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
    stats_.waiting_s += clock_seconds() - begun;
  }
  return status_;
}

Result<TrainedTotals> RingNode::finish(const TrainedTotals& own) {
  std::unique_lock lock(mutex_);
  own_ = own;
  if (phase_ == Phase::kTraining) phase_ = Phase::kFinished;
  changed_.notify_all();
  const double begun = clock_seconds();
  changed_.wait(lock, [&] { return phase_ == Phase::kEnded || !status_.ok(); });
  stats_.finishing_s = clock_seconds() - begun;
  if (!status_.ok()) return status_;
  return collective_->rank() == 0 ? all_ : own;
}

ClusterStats RingNode::stats() const {
  const std::lock_guard lock(mutex_);
  ClusterStats stats = stats_of_fixed_nodes(stats_, *transport_, options_.nodes.size());
  for (size_t rank = 0; rank < options_.nodes.size(); ++rank)
    stats.members.push_back({options_.nodes[rank], true, false, rank == 0, true, 0, {.clock = stats.pushes}, 0});
  return stats;
}

void RingNode::run() {
  Status status = meet();
  for (bool over = false; status.ok() && !over && await_due();) {
    const Result<bool> last = round();
    status = last.status();
    over = last.ok() && *last;
    if (over) status = take_rest();
    if (over && status.ok()) status = gather_totals();
  }
  if (!status.ok()) fail(std::move(status));
}

// All tell what they have; a node that has something else is named by everybody.
Status RingNode::meet() {
  std::vector<std::string> all;
  const std::string own = bytes_of(options_.fingerprint) + options_.fingerprint_of;
  STREAMVEC_RETURN_IF_ERROR(collective_->all_gather(own, all, within(options_.start_within_s)));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].substr(0, sizeof options_.fingerprint) != all[0].substr(0, sizeof options_.fingerprint))
      return error(Code::kFailedPrecondition, "node ", options_.nodes[rank], " has ",
                   all[rank].substr(std::min(all[rank].size(), sizeof options_.fingerprint)), ", node ",
                   options_.nodes[0], " has ", all[0].substr(sizeof options_.fingerprint),
                   "; give all nodes the same text and options");
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kTraining;
  begun_s_ = clock_seconds();
  changed_.notify_all();
  return {};
}

// False when this node is to part.
bool RingNode::await_due() {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !is_due(clock_seconds())) changed_.wait_for(lock, kDueLook);
  return !stopping_;
}

// What the last round has cost is to be no more than its share of the time since it began, unless threads wait for the
// next, or others may think this node dead.
bool RingNode::is_due(double now_s) const {
  if (phase_ == Phase::kFinished) return true;
  const int64_t words = words_ - begun_words_;
  const double since_s = now_s - begun_s_;
  if (words > options_.words_max || since_s > options_.dead_after_s / 4) return true;
  if (stats_.talking_s - begun_talking_s_ > options_.talking_share * options_.threads * since_s) return false;
  return words >= options_.words_min || since_s > kRoundEvery;
}

Result<bool> RingNode::round() {
  const std::span<float> changes(values_.data(), values_.size() - 1);
  {
    const std::lock_guard lock(mutex_);
    begun_s_ = clock_seconds();
    begun_talking_s_ = stats_.talking_s;
    ++stats_.pushes;
    values_.back() = phase_ == Phase::kFinished ? 1 : 0;  // before the changes are read: then they are the last
    begun_words_ = words_.load();
    changed_.notify_all();
  }
  replica_->set_trained(steps_);
  use_tables([&] { replica_->bring(changes); });
  STREAMVEC_RETURN_IF_ERROR(reduce(values_));
  if (!second_.empty()) {
    replica_->bring_second(changes, second_);
    STREAMVEC_RETURN_IF_ERROR(reduce(second_));
  }
  replica_->set_trained(steps_);
  use_tables([&] { replica_->take(changes, second_); });
  const std::lock_guard lock(mutex_);
  stats_.talking_s = thread_seconds_now();
  return values_.back() == 1;
}

void RingNode::use_tables(const std::function<void()>& use) {
  if (!options_.with_tables) return use();
  wants_tables_ = true;
  options_.with_tables(use);
  const std::lock_guard lock(mutex_);
  wants_tables_ = false;
  changed_.notify_all();
}

Status RingNode::reduce(std::span<float> values) {
  for (size_t at = 0; at < values.size(); at += kPart)
    STREAMVEC_RETURN_IF_ERROR(collective_->all_reduce_mean(values.subspan(at, std::min(kPart, values.size() - at)),
                                                           within(options_.dead_after_s)));
  return {};
}

// Nobody trains any more.
Status RingNode::take_rest() {
  std::vector<float> rest(static_cast<size_t>(replica_->rest_size()));
  if (rest.empty()) return {};
  use_tables([&] { replica_->bring_rest(rest); });
  STREAMVEC_RETURN_IF_ERROR(reduce(rest));
  use_tables([&] { replica_->take_rest(rest); });
  return {};
}

Status RingNode::gather_totals() {
  TrainedTotals own;
  {
    const std::lock_guard lock(mutex_);
    own = own_;
  }
  std::vector<std::string> all;
  STREAMVEC_RETURN_IF_ERROR(collective_->all_gather(bytes_of(own), all, within(options_.dead_after_s)));
  const std::lock_guard lock(mutex_);
  for (const std::string& bytes : all) {
    TrainedTotals one;
    if (bytes.size() != sizeof one) return error(Code::kInvalidArgument, "a node's totals are cut short");
    std::memcpy(&one, bytes.data(), sizeof one);
    all_.tokens += one.tokens;
    all_.pairs += one.pairs;
    all_.loss += one.loss;
    all_.loss_pairs += one.loss_pairs;
  }
  phase_ = Phase::kEnded;
  changed_.notify_all();
  return {};
}

void RingNode::fail(Status status) {
  const std::lock_guard lock(mutex_);
  status_ = Status(status.code(), "the ring broke: " + status.message() +
                                      "; what was learnt here is saved, start all nodes again to go on");
  failed_ = true;
  changed_.notify_all();
}

}  // namespace streamvec
