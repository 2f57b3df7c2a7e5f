// When the leader is gone: one of the others takes its place, by the registry, which makes one node the leader at a
// time and knows the last membership that anybody can have heard of. The others greet it with what they have and know
// of the text; the next membership, numbered after all that were ever told, is of those that have. Whoever led before
// and comes back is heard by nobody, and hears that another leads.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "streamvec/cluster/node.h"
#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr double kPatience = 4;  // times `dead_after_s`: two that have taken its place may be gone, too
constexpr auto kSavedLook = std::chrono::milliseconds(50);

}  // namespace

bool ClusterNode::leads() const {
  const std::lock_guard lock(mutex_);
  return is_leader();
}

bool ClusterNode::holds_lead() const {
  return leads() && (options_.registry == nullptr || options_.registry->holds());
}

Status ClusterNode::not_begun(double silent_s) const {
  const Status unreached = transport_->peer_status(leader_);
  return error(Code::kUnavailable, "node ", leader_, ", which leads, was not heard for ", std::round(silent_s),
               " s, and nothing was begun; ",
               unreached.ok() ? "are all nodes started, with the same options and addresses?" : unreached.message());
}

void ClusterNode::seek_leader(double now_s) {
  const double silent_s = now_s - heard_s_[leader_];
  const auto lost = [&](Code code, const auto&... why) {
    fail(error(code, "node ", leader_, ", which leads, was not heard for ", std::min(silent_s, options_.dead_after_s),
               " s", why...));
  };
  Registry* const registry = options_.registry;
  if (registry == nullptr && view_.epoch == 0) return fail(not_begun(silent_s));
  if (registry == nullptr)
    return lost(Code::kUnavailable,
                "; the newest checkpoint is what remains, start the cluster again to go on from it");
  if (!registry->reached()) {
    if (silent_s > options_.dead_after_s)
      lost(Code::kUnavailable, ", and etcd neither; the others may go on without this node");
    return;
  }
  if (registry->over() && phase_ != Phase::kEnded)
    return lost(Code::kUnavailable, ", and the job has ended without this node");
  model_saved_ = registry->over();
  if (model_saved_) return changed_.notify_all();
  const bool joining = options_.joins && phase_ == Phase::kStarting;
  registry->seek(is_worker_ && !joining && (options_.stream == nullptr || options_.stream->may_lead(self_)));
  sought_ = true;
  const std::optional<Registry::Written> found = registry->found();
  const auto is_self = [&](const Registry::Member& member) { return member.node == self_; };
  if (found && !joining && found->epoch > view_.epoch &&
      std::none_of(found->members.begin(), found->members.end(), is_self))
    return lost(Code::kAborted,
                ", and the others go on without this node; what it has learnt since is not in their model");
  if (found && found->leader == self_) return begin_to_lead(*found, now_s);
  if (found && found->leader != 0 && found->leader != leader_ && found->epoch > led_since_) {
    for (const Registry::Member& member : found->members) know(member.node, member.address);
    return follow(found->leader, found->epoch);
  }
  if (silent_s > std::max(kPatience * options_.dead_after_s, view_.epoch == 0 ? options_.start_within_s : 0.0))
    lost(Code::kUnavailable, " and longer, and no other node leads in its place; ",
         registry->trouble().ok() ? "start the cluster again to go on" : registry->trouble().message());
}

// One that asked to lead may have come to do so just when the other was heard again, and others may know already.
void ClusterNode::look_if_leading(double now_s) {
  const std::optional<Registry::Written> found = options_.registry->found();
  if (found && found->leader == self_ && found->epoch > led_since_) begin_to_lead(*found, now_s);
}

void ClusterNode::begin_to_lead(const Registry::Written& written, double now_s) {
  const NodeId lost = std::exchange(leader_, self_);
  led_since_ = written.epoch;
  Control lead{ControlKind::kLead};
  lead.view.epoch = written.epoch;
  View last{written.epoch, {}, {}};
  for (const Registry::Member& member : written.members) {
    lead.addresses[member.node] = member.address;
    if (member.node == lost) continue;
    know(member.node, member.address);
    heard_s_[member.node] = now_s;
    if (member.worker) last.workers.push_back(member.node);
    if (member.server) last.servers.push_back(member.node);
  }
  std::sort(last.workers.begin(), last.workers.end());
  std::sort(last.servers.begin(), last.servers.end());
  for (const NodeId node : last.workers)
    if (is_among(known_.servers, node) && !is_among(last.servers, node)) last.retired.push_back(node);
  add_to_known(last);
  // Before the beginning some may still read their text.
  const double greet_within_s = view_.epoch == 0 ? options_.start_within_s : options_.dead_after_s;
  leading_.emplace(Leader::successor({self_, last, greet_within_s, options_.dead_after_s}, now_s));
  std::set<NodeId> all = all_of(last);
  all.merge(all_of(view_));
  tell_all(lead, all);
  if (phase_ == Phase::kEnded) return end_all();
  greet();
  for (const auto& [from, control] : std::exchange(before_leading_, {})) receive_from_follower(from, control);
}

// Everybody has settled: the leader before has told at least one node so.
void ClusterNode::end_all() {
  phase_ = Phase::kEnded;
  std::set<NodeId> all = leading_->members();
  all.merge(all_of(view_));
  tell_all({ControlKind::kEnd}, all);
  changed_.notify_all();
}

void ClusterNode::receive_lead(NodeId from, const Control& lead) {
  const uint32_t epoch = lead.view.epoch;
  if (options_.registry == nullptr || epoch <= led_since_ || epoch <= view_.epoch) return;
  if (is_leader())
    return fail(error(Code::kAborted, "node ", from, " leads in place of node ", self_, ", which was not heard for ",
                      options_.dead_after_s,
                      " s; the others have gone on without it, and nothing more is written here"));
  for (const auto& [node, address] : lead.addresses) know(node, address);
  follow(from, epoch);
}

void ClusterNode::follow(NodeId leader, uint32_t epoch) {
  leader_ = leader;
  led_since_ = epoch;
  heard_s_[leader] = clock_seconds();
  before_leading_.clear();
  greet();
}

void ClusterNode::greet() {
  if (options_.joins && phase_ == Phase::kStarting) {
    // What it was told nobody may have heard but itself.
    if (options_.stream != nullptr && options_.stream->generations().stamp() > 0)
      return fail(error(Code::kUnavailable,
                        "the node that led is gone after it had told this one words, and before this one took part; "
                        "start it again, and it joins"));
    return tell_leader(hello());
  }
  if (phase_ == Phase::kEnded) return tell_leader({ControlKind::kEnd});  // which the leader before may not have told it
  Control greeting = as_greeting(hello());
  if (phase_ != Phase::kStarting) greeting.rows = 0;
  if (pieces_ != nullptr) {
    KnownText known = pieces_->known(self_);
    if (phase_ <= Phase::kTraining) greeting.pieces = std::move(known.held);
    greeting.standing = std::move(known.standing);
  }
  // Before the greeting: from that on the leader may tell how often all have counted, with what comes here.
  if (options_.stream != nullptr) {
    StreamExchange::Outbox out;
    options_.stream->change_leader(self_, leader_, out);
    for (auto& [to, bytes] : out) send(to, std::move(bytes));
  }
  tell_leader(greeting);
  if (phase_ <= Phase::kTraining || !is_worker_) return;
  Control finished{ControlKind::kFinished};
  finished.trained = own_totals_;
  tell_leader(finished);
}

void ClusterNode::receive_greeting(NodeId from, const Control& greeting) {
  const bool begins = greeting.rows != 0 && !options_.joins;
  if (greeting.fingerprint != options_.fingerprint || (begins && greeting.rows != options_.rows))
    return refuse(from, differences_of(from, greeting));
  if (!leading_->gathers() || greeting.view.epoch != led_since_) return;
  greetings_[from] = {greeting.pieces, greeting.standing};
  heard_words_[from] = greeting.heard;
  leading_->receive(from, greeting);
}

// All that take part have greeted.
void ClusterNode::resume_text() {
  const std::set<NodeId> members = leading_->members();
  // What one has trained that takes no part any more is not in the model.
  std::erase_if(greetings_, [&](const auto& greeting) { return members.count(greeting.first) == 0; });
  if (options_.text != PieceRange())
    board_.emplace(
        PieceBoard::resumed(options_.text, options_.trained_before, options_.finished, std::exchange(greetings_, {})));
  resume_words();
  take_postponed();
}

void ClusterNode::resume_words() {
  std::map<NodeId, uint64_t> heard = std::exchange(heard_words_, {});
  if (options_.stream == nullptr) return;
  const std::set<NodeId> members = leading_->members();
  std::erase_if(heard, [&](const auto& node) { return members.count(node.first) == 0; });
  options_.stream->succeed(std::move(heard), led_since_);
}

// Nobody ends before it is known what there is, and all know the words.
bool ClusterNode::awaits_greetings() const {
  return leading_->gathers() || (options_.stream != nullptr && options_.stream->succeeds());
}

void ClusterNode::take_postponed() {
  if (before_greetings_.empty() || awaits_greetings()) return;
  const std::set<NodeId> members = leading_->members();
  for (const auto& [from, control] : std::exchange(before_greetings_, {}))
    if (members.count(from) > 0) receive_from_follower(from, control);
}

void ClusterNode::saved() {
  std::unique_lock lock(mutex_);
  if (options_.registry == nullptr) return;
  const std::string saved = encode(Control{ControlKind::kSaved});
  for (const NodeId node : all_of(view_))
    if (node != self_) send(node, saved);
  options_.registry->finish();
  await_hearing(lock);
}

Status ClusterNode::await_saved() {
  std::unique_lock lock(mutex_);
  if (options_.registry == nullptr) return {};
  while (!model_saved_ && !is_leader() && status_.ok()) changed_.wait_for(lock, kSavedLook);
  return model_saved_ ? Status() : status_;
}

}  // namespace streamvec
