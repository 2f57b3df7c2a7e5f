#include "streamvec/cluster/sandblaster_node.h"

#include <algorithm>
#include <chrono>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr double kInTouchEvery = 1.0;
constexpr auto kTalkWait = std::chrono::milliseconds(20);
constexpr auto kServeLook = std::chrono::milliseconds(50);  // between two looks at a wish to stop

bool is_member(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

Result<std::unique_ptr<SandblasterNode>> SandblasterNode::start(const SandblasterOptions& options,
                                                                const PortionedObjective& objective,
                                                                std::unique_ptr<Transport> transport) {
  std::unique_ptr<SandblasterNode> node(new SandblasterNode(options));
  node->self_ = transport->self();
  node->first_ = options.workers.front();
  node->transport_ = std::make_unique<ReliableTransport>(std::move(transport));
  STREAMVEC_RETURN_IF_ERROR(node->make_parts(objective));
  node->started_s_ = node->heard_s_ = clock_seconds();
  node->thread_ = std::thread([raw = node.get()] { raw->run_talking(); });
  return node;
}

Status SandblasterNode::make_parts(const PortionedObjective& objective) {
  const SandblasterPost post = [this](NodeId to, const SandblasterMessage& message) {
    transport_->send(to, encode(message));
  };
  if (is_member(options_.owners, self_)) {
    STREAMVEC_ASSIGN_OR_RETURN(
        owner_, SandblasterOwner::make(
                    {self_, first_, options_.row_end, options_.dim, options_.initial, options_.scale}, post));
  }
  if (is_member(options_.workers, self_)) {
    STREAMVEC_ASSIGN_OR_RETURN(
        worker_, SandblasterWorker::make({first_, options_.row_end, options_.dim, options_.threads}, objective, post));
  }
  if (self_ == first_) {
    SandblasterCoordinator::Options made;
    made.self = self_;
    made.workers = options_.workers;
    made.owners = options_.owners;
    made.row_end = options_.row_end;
    made.dim = options_.dim;
    made.portions = objective.portions();
    made.portions_at_once = options_.threads + 1;
    made.dead_after_s = options_.dead_after_s;
    made.start_within_s = options_.start_within_s;
    made.fingerprint = options_.fingerprint;
    made.fingerprint_of = options_.fingerprint_of;
    made.lbfgs = options_.lbfgs;
    coordinator_ = std::make_unique<SandblasterCoordinator>(made, post);
  }
  post(first_, {.kind = SandblasterKind::kHello, .number = options_.fingerprint, .text = options_.fingerprint_of});
  return {};
}

SandblasterNode::~SandblasterNode() {
  if (!is_over()) transport_->close();  // what was said last at an end still has to arrive
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  worker_.reset();
}

bool SandblasterNode::is_over() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

Result<bool> SandblasterNode::await_start(const std::atomic<bool>* stop) {
  if (coordinates()) return coordinator_->await_start(stop);
  std::unique_lock lock(mutex_);
  while (!begun_ && status_.ok()) {
    if (stop != nullptr && stop->load()) return false;
    changed_.wait_for(lock, kServeLook);
  }
  if (!status_.ok()) return status_;
  return true;
}

void SandblasterNode::end() {
  coordinator_->end();
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

Status SandblasterNode::serve(const std::atomic<bool>* stop) {
  bool passed_on = false;
  std::unique_lock lock(mutex_);
  while (!ended_ && status_.ok()) {
    if (stop != nullptr && stop->load() && !std::exchange(passed_on, true))
      transport_->send(first_, encode(SandblasterMessage{.kind = SandblasterKind::kStop}));
    changed_.wait_for(lock, kServeLook);
  }
  return status_;
}

void SandblasterNode::run_talking() {
  for (bool failed = false; !stopping_ && !failed;) {  // a node that has failed falls silent: the others go on
    NodeId from = 0;
    std::string frame;
    const Status got = transport_->receive(Deadline::after(kTalkWait), from, frame);
    if (got.code() == Code::kUnavailable && !stopping_) fail(got);
    if (got.ok()) receive_frame(from, frame);
    keep_in_touch(clock_seconds());
    const std::lock_guard lock(mutex_);
    failed = !status_.ok();
  }
}

void SandblasterNode::receive_frame(NodeId from, std::string_view frame) {
  const Result<SandblasterMessage> message = decode_sandblaster(frame);
  if (message.ok()) return receive(from, *message);
  if (is_member(options_.workers, from) || is_member(options_.owners, from))  // it came for good: nobody sends it again
    fail({message.status().code(), "node " + std::to_string(from) + " sent " + message.status().message()});
}

void SandblasterNode::receive(NodeId from, const SandblasterMessage& message) {
  if (from == first_) heard_s_ = clock_seconds();
  if (coordinator_ != nullptr) coordinator_->receive(from, message);
  if (from == first_ && message.kind == SandblasterKind::kRefusal)
    return fail({Code::kFailedPrecondition, message.text});
  if (message.kind == SandblasterKind::kView && message.epoch > epoch_) {
    epoch_ = message.epoch;
    receive_of_epoch(from, message);
    for (auto& [sender, waiting] : std::exchange(of_later_, {})) receive(sender, waiting);
  } else if (message.epoch == epoch_) {
    receive_of_epoch(from, message);
  } else if (message.epoch > epoch_ && from != self_) {
    of_later_.emplace_back(from, message);
  }
  const std::lock_guard lock(mutex_);
  begun_ = begun_ || epoch_ > 0;
  ended_ = ended_ || (from == first_ && message.kind == SandblasterKind::kEnd);
  changed_.notify_all();
}

void SandblasterNode::receive_of_epoch(NodeId from, const SandblasterMessage& message) {
  if (worker_ != nullptr) worker_->receive(from, message);
  if (owner_ == nullptr) return;
  if (const Status status = owner_->receive(from, message); !status.ok()) fail(status);
}

// The first node and the others hear from each other all the time.
void SandblasterNode::keep_in_touch(double now_s) {
  if (now_s - alive_sent_s_ > std::min(kInTouchEvery, options_.dead_after_s / 5)) {
    const bool stood_still = now_s - alive_sent_s_ > options_.dead_after_s / 2;
    if (stood_still && alive_sent_s_ > 0) heard_s_ = now_s;  // what came meanwhile waits to be read
    alive_sent_s_ = now_s;
    const SandblasterMessage alive{.kind = SandblasterKind::kAlive};
    if (!coordinates()) transport_->send(first_, encode(alive));
    if (coordinates())
      for (const NodeId node : coordinator_->members())
        if (node != self_) transport_->send(node, encode(alive));
  }
  const std::lock_guard lock(mutex_);
  if (coordinates() || ended_ || !status_.ok()) return;
  if (!begun_ && now_s - started_s_ > options_.start_within_s)
    status_ = error(Code::kUnavailable, "the first node did not begin within ", options_.start_within_s,
                    " s; are all nodes started, with the same addresses in the same order?");
  if (begun_ && now_s - heard_s_ > options_.dead_after_s)
    status_ = error(Code::kUnavailable, "the first node was not heard for ", options_.dead_after_s,
                    " s; the newest checkpoint is what remains");
  changed_.notify_all();
}

void SandblasterNode::fail(const Status& status) {
  if (coordinator_ != nullptr) coordinator_->fail(status);
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  changed_.notify_all();
}

}  // namespace streamvec
