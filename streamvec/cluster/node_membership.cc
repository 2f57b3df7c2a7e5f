// Who takes part: what the node that leads and the others tell each other, how newcomers are let in, and who gets which
// pieces of the text.
#include <algorithm>
#include <iterator>
#include <utility>

#include "streamvec/cluster/node.h"
#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr double kAliveEvery = 1.0;

}  // namespace

void ClusterNode::receive_control(NodeId from, const Control& control) {
  if (leads())
    receive_from_follower(from, control);
  else if (from == leader_)
    receive_from_leader(control);
}

void ClusterNode::receive_from_follower(NodeId from, const Control& control) {
  if (control.figures && from != self_) told_[from] = {*control.figures, staleness_at(control.figures->clock)};
  if (control.kind == ControlKind::kHello) return receive_hello(from, control);
  if (control.kind == ControlKind::kAsk) return receive_ask(from, control);
  if (board_ && control.kind == ControlKind::kFinished) leave_text(from);
  leading_->receive(from, control);
}

void ClusterNode::receive_ask(NodeId from, const Control& ask) {
  if (!board_ || leading_->members().count(from) == 0) return;
  board_->finish(from, ask.pieces, ask.trained);
  if (ask.wanted > 0) wanted_[from] = ask.wanted;
}

void ClusterNode::leave_text(NodeId node) {
  board_->leave(node);
  wanted_.erase(node);
}

void ClusterNode::receive_hello(NodeId from, const Control& hello) {
  const bool is_first = all_of({0, options_.workers, options_.servers}).count(from) > 0;
  if (!is_first) know(from, hello.address);
  if (hello.fingerprint != options_.fingerprint || (is_first && hello.rows != options_.rows))
    return refuse(from, differences_of(from, hello));
  if (is_first) return leading_->receive(from, hello);
  welcome_.insert(from);
}

std::string ClusterNode::differences_of(NodeId node, const Control& hello) const {
  return "node " + std::to_string(node) + " has " + hello.text + ", node " + std::to_string(self_) + " has " +
         options_.fingerprint_of + "; give all nodes the same text and options";
}

void ClusterNode::refuse(NodeId node, const std::string& why) {
  Control refusal;
  refusal.kind = ControlKind::kRefusal;
  refusal.text = why;
  send(node, encode(refusal));
  if (options_.joinable) gone_s_[node] = clock_seconds();
}

// At a moment when each of our pushes is answered: we know every row as its owner has it then, but for what others have
// changed, which the owners will tell the newcomer.
void ClusterNode::welcome() {
  if (welcome_.empty() || view_.epoch == 0 || !replica_->idle()) return;
  const bool owns_rows = options_.servers == options_.workers;
  for (const NodeId node : std::exchange(welcome_, {})) {
    if (text_over_ || leading_->ending()) {
      refuse(node, "the run is about to end, and takes nobody in any more");
      continue;
    }
    Outbox out;
    replica_->tell_base(node, out);
    send_out(out);
    leading_->admit(node, owns_rows);
  }
}

void ClusterNode::receive_from_leader(const Control& control) {
  switch (control.kind) {
    case ControlKind::kView:
      for (const auto& [node, address] : control.addresses) know(node, address);
      return take_view(control.view);
    case ControlKind::kRefusal:
      return fail(error(Code::kFailedPrecondition, control.text));
    case ControlKind::kFlush:
      return begin_stage(Phase::kFlushing);
    case ControlKind::kSettle:
      settle_clock_ = control.clock;
      return begin_stage(Phase::kSettling);
    case ControlKind::kPieces:
      if (pieces_ != nullptr) pieces_->give(control.pieces, control.standing, workers_now());
      return;
    case ControlKind::kTextOver:
      if (pieces_ == nullptr) return;
      pieces_->give({}, control.standing, workers_now());
      return pieces_->end(PieceQueue::Next::kOver);
    case ControlKind::kEnd:
      phase_ = Phase::kEnded;
      return changed_.notify_all();
    default:
      return;
  }
}

void ClusterNode::take_view(const View& view) {
  if (view.epoch <= view_.epoch) return;
  if (!is_among(view.workers, self_) && !is_among(view.servers, self_))
    return fail(error(Code::kAborted, "node ", self_, " was not heard for ", options_.dead_after_s,
                      " s, and the others go on without it; what it has learnt since is not in their model"));
  for (const NodeId node : all_of(view_))
    if (all_of(view).count(node) == 0) gone_s_[node] = clock_seconds();
  view_ = view;
  for (auto [known, now] : {std::pair{&known_.workers, &view.workers}, std::pair{&known_.servers, &view.servers}}) {
    std::vector<NodeId> all;
    std::set_union(known->begin(), known->end(), now->begin(), now->end(), std::back_inserter(all));
    *known = std::move(all);
  }
  pace_.set_workers(workers_now());
  Outbox out;
  if (server_ != nullptr) server_->set_view(view, out);
  if (replica_ != nullptr) replica_->set_view(view, out);
  send_out(out);
  if (phase_ == Phase::kStarting) phase_ = Phase::kTraining;
  if (phase_ > Phase::kFinished && phase_ != Phase::kEnded)
    phase_ = Phase::kFinished;  // owners may have lost something
  changed_.notify_all();
}

// A node that was left out has had the time to hear of it. If it did not, it hears nothing any more.
void ClusterNode::forget_gone(double now_s) {
  for (auto gone = gone_s_.begin(); gone != gone_s_.end();) {
    if (now_s - gone->second < options_.dead_after_s) {
      ++gone;
      continue;
    }
    transport_->remove_peer(gone->first);
    links_.erase(gone->first);
    addresses_.erase(gone->first);
    heard_s_.erase(gone->first);
    told_.erase(gone->first);
    forgotten_.insert(gone->first);
    gone = gone_s_.erase(gone);
  }
}

void ClusterNode::lead(double now_s) {
  if (options_.registry != nullptr && !options_.registry->status().ok()) return fail(options_.registry->status());
  welcome();
  const std::set<NodeId> before = leading_->members();
  const Result<std::vector<Control>> orders = leading_->decide(now_s, heard_s_);
  if (!orders.ok()) return fail(orders.status());
  for (const Control& order : *orders) tell_order(order, before);
  if (!board_) return;
  for (const NodeId node : before)
    if (!is_among(view_.workers, node) && !is_among(view_.servers, node)) leave_text(node);
  hand_out();
}

void ClusterNode::tell_order(const Control& order, const std::set<NodeId>& before) {
  std::set<NodeId> nodes = leading_->members();
  if (order.kind != ControlKind::kView) return tell_all(order, nodes);
  Control view = order;
  std::vector<Registry::Member> members;
  for (const NodeId node : nodes) {
    if (!options_.joinable) break;
    const std::string& address = view.addresses[node] = addresses_.at(node);
    members.push_back({node, address, is_among(order.view.workers, node), is_among(order.view.servers, node)});
  }
  nodes.insert(before.begin(), before.end());
  tell_all(view, nodes);
  if (options_.registry != nullptr) options_.registry->publish(order.view.epoch, std::move(members));
}

void ClusterNode::hand_out() {
  for (auto asked = wanted_.begin(); asked != wanted_.end();) {
    Control pieces{ControlKind::kPieces};
    pieces.pieces = board_->take(asked->first, asked->second, workers_now());
    pieces.standing = board_->standing();
    if (pieces.pieces.empty()) break;  // until somebody leaves some
    tell(asked->first, pieces);
    asked = wanted_.erase(asked);
  }
  if (text_over_ || view_.epoch == 0 || !board_->over()) return;
  text_over_ = true;
  Control over{ControlKind::kTextOver};
  over.standing = board_->standing();
  tell_all(over, leading_->members());
}

void ClusterNode::tell(NodeId node, const Control& control) {
  node == self_ ? receive_from_leader(control) : send(node, encode(control));
}

void ClusterNode::tell_finished(const PieceQueue::Report& report) {
  Control ask{ControlKind::kAsk};
  ask.pieces = report.finished;
  ask.wanted = report.wanted;
  ask.trained = report.trained;
  tell_leader(ask);
}

void ClusterNode::tell_all(const Control& control, const std::set<NodeId>& nodes) {
  for (const NodeId node : nodes)
    if (node != self_) send(node, encode(control));
  receive_from_leader(control);
}

void ClusterNode::tell_leader(Control control) {
  control.figures = own_figures();
  leads() ? receive_from_follower(self_, control) : send(leader_, encode(control));
}

void ClusterNode::keep_in_touch(double now_s) {
  for (auto& [node, link] : links_) {
    std::vector<std::string> frames;
    link.tick(now_s, frames);
    for (std::string& frame : frames) transport_->send(node, std::move(frame));
  }
  if (!leads() && phase_ != Phase::kEnded && now_s - heard_s_[leader_] > options_.dead_after_s)
    fail(error(Code::kUnavailable, "node ", leader_, ", which leads, was not heard for ", options_.dead_after_s,
               " s; what was learnt here is saved, start the cluster again to go on"));
  if (options_.joinable) forget_gone(now_s);
  if (now_s - alive_sent_s_ < std::min(kAliveEvery, options_.dead_after_s / 5)) return;
  alive_sent_s_ = now_s;
  if (!leads()) return tell_leader({});
  const std::string alive = encode(Control{});
  for (const NodeId node : view_.epoch == 0 ? leading_->present() : all_of(view_))
    if (node != self_) send(node, alive);
}

}  // namespace streamvec
