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

bool is_to_leader(ControlKind kind) {
  return kind == ControlKind::kHello || kind == ControlKind::kGreeting || kind == ControlKind::kAsk ||
         kind == ControlKind::kFinished || kind == ControlKind::kEnd;
}

std::vector<std::string> parts_of(const std::string& text) {
  constexpr std::string_view kParted = ", ";
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(kParted, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + kParted.size();
  }
  return parts;
}

// What only the one says, of two texts whose parts are between commas.
std::string only_in(const std::string& text, const std::string& other) {
  const std::vector<std::string> others = parts_of(other);
  std::string only;
  for (const std::string& part : parts_of(text))
    if (std::find(others.begin(), others.end(), part) == others.end()) only += (only.empty() ? "" : ", ") + part;
  return only;
}

}  // namespace

void ClusterNode::receive_control(NodeId from, const Control& control) {
  if (control.kind == ControlKind::kLead)
    receive_lead(from, control);
  else if (is_leader())
    receive_from_follower(from, control);
  else if (from == leader_)
    receive_from_leader(control);
  else if (options_.registry != nullptr && is_to_leader(control.kind))
    before_leading_.emplace_back(from, control);
}

void ClusterNode::receive_from_follower(NodeId from, const Control& control) {
  if (control.figures && from != self_) told_[from] = {*control.figures, staleness_at(control.figures->clock)};
  if (control.kind == ControlKind::kHello) return receive_hello(from, control);
  if (control.kind == ControlKind::kGreeting) return receive_greeting(from, control);
  if (control.kind == ControlKind::kEnd && from != self_ && phase_ != Phase::kEnded) return end_all();
  if (awaits_greetings() && (control.kind == ControlKind::kAsk || control.kind == ControlKind::kFinished)) {
    before_greetings_.emplace_back(from, control);
    return;
  }
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

// By one that has all rows that it needs: it takes part, or is one of the first.
Control ClusterNode::as_greeting(Control hello) const {
  hello.kind = ControlKind::kGreeting;
  hello.view.epoch = led_since_;
  return hello;
}

Control ClusterNode::hello() const {
  Control hello{ControlKind::kHello};
  hello.fingerprint = options_.fingerprint;
  hello.rows = options_.rows;
  hello.text = options_.fingerprint_of;
  if (options_.stream != nullptr) hello.heard = options_.stream->generations().stamp();
  if (options_.joins) hello.address = options_.addresses.at(self_);
  return hello;
}

void ClusterNode::receive_hello(NodeId from, const Control& hello) {
  const bool is_first = all_of({0, options_.workers, options_.servers}).count(from) > 0;
  if (!is_first) know(from, hello.address);
  // Others may have been told that it takes part, and would have to forget it and then know it again.
  if (!is_first && is_among(known_.workers, from)) {
    leading_->receive(from, hello);
    return refuse(from,
                  "the node that led is gone after it had taken this one in, and before this one took part; "
                  "start it again, and it joins");
  }
  if (hello.fingerprint != options_.fingerprint || (is_first && hello.rows != options_.rows))
    return refuse(from, differences_of(from, hello));
  if (!is_first) welcome_.insert(from);
  if (is_first && leading_->gathers()) return receive_greeting(from, as_greeting(hello));
  if (is_first && view_.epoch > 0 && leading_->members().count(from) == 0)
    return refuse(from,
                  "the others have begun without node " + std::to_string(from) + "; start it again, and it joins");
  if (is_first || leading_->gathers()) leading_->receive(from, hello);
}

std::string ClusterNode::differences_of(NodeId node, const Control& hello) const {
  const std::string other = "node " + std::to_string(node), own = "node " + std::to_string(self_);
  const std::string there = only_in(hello.text, options_.fingerprint_of);
  const std::string here = only_in(options_.fingerprint_of, hello.text);
  const std::string both = there.empty() ? "" : other + " has " + there + ", " + own + " has " + here;
  if (hello.fingerprint == options_.fingerprint)
    return other + " begins with other rows than " + own + (both.empty() ? "" : ": " + both) + "; is the model that " +
           own + " goes on with in its --out, too?";
  return (both.empty() ? other + " has other words than " + own : both) + "; give all nodes the same text and options";
}

void ClusterNode::refuse(NodeId node, const std::string& why) {
  Control refusal;
  refusal.kind = ControlKind::kRefusal;
  refusal.text = why;
  send(node, encode(refusal));
  if (options_.joinable) gone_s_[node] = clock_seconds();
  if (view_.epoch == 0) refused_ = why;
}

// At a moment when each of our pushes is answered: we know every row as its owner has it then, but for what others have
// changed, which the owners will tell the newcomer. And when it takes part at once: others do not hear that the text is
// over.
void ClusterNode::welcome() {
  if (welcome_.empty() || view_.epoch <= led_since_ || orders_) return;
  if (has_rows() && (replica_ == nullptr || !replica_->idle())) return;
  if (options_.registry != nullptr && !options_.registry->reached()) return;  // who joins has to be written down
  if (options_.stream != nullptr && !options_.stream->has_words()) return;
  const bool owns_rows = options_.servers == options_.workers;
  for (const NodeId node : std::exchange(welcome_, {})) {
    if (takes_nobody_in()) {
      refuse(node, "the run is about to end, and takes nobody in any more");
      continue;
    }
    if (options_.stream != nullptr) {
      StreamExchange::Outbox words;
      options_.stream->welcome(node, words);
      for (auto& [to, bytes] : words) send(to, std::move(bytes));
    }
    Outbox out;
    if (replica_ != nullptr) replica_->tell_base(node, out);
    send_out(out);
    leading_->admit(node, owns_rows);
  }
}

// A ring is not over before the text of the node that leads is.
bool ClusterNode::takes_nobody_in() const {
  return text_over_ || leading_->ending() || (options_.companion != nullptr && phase_ != Phase::kTraining);
}

void ClusterNode::receive_from_leader(const Control& control) {
  switch (control.kind) {
    case ControlKind::kView:
      for (const auto& [node, address] : control.addresses) know(node, address);
      if (control.view.epoch > view_.epoch && !control.text.empty()) lost_.push_back(control.text);
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
    case ControlKind::kSaved:
      model_saved_ = true;
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
  for (const NodeId node : all_of(view_)) {
    if (all_of(view).count(node) > 0) continue;
    gone_s_[node] = clock_seconds();
    lost_.push_back("node " + std::to_string(node) + " fell silent and was left out");
    if (view_.epoch < led_since_) early_.forget(node);  // the new leader may number otherwise what only that one knew
  }
  view_ = view;
  add_to_known(view);
  pace_.set_workers(workers_now());
  slow_owners_.begin_anew();
  Outbox out;
  if (server_ != nullptr) server_->set_view(view, out);
  if (replica_ != nullptr) replica_->set_view(view, out);
  if (options_.companion != nullptr) options_.companion->take_view(view);
  send_out(out);
  if (phase_ == Phase::kStarting) phase_ = Phase::kTraining;
  if (phase_ > Phase::kFinished && phase_ != Phase::kEnded)
    phase_ = Phase::kFinished;  // owners may have lost something
  changed_.notify_all();
}

void ClusterNode::add_to_known(const View& view) {
  for (auto [known, now] : {std::pair{&known_.workers, &view.workers}, std::pair{&known_.servers, &view.servers}}) {
    std::vector<NodeId> all;
    std::set_union(known->begin(), known->end(), now->begin(), now->end(), std::back_inserter(all));
    *known = std::move(all);
  }
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
  if (phase_ == Phase::kEnded) return;
  welcome();
  take_postponed();
  if (!orders_) decide_orders(now_s);
  if (orders_ && may_tell_orders(now_s)) tell_orders();
  if (board_ && status_.ok()) hand_out();
}

void ClusterNode::decide_orders(double now_s) {
  Orders decided;
  decided.before = leading_->members();
  decided.since_s = now_s;
  const bool gathers = leading_->gathers();
  if (gathers) decided.before.merge(all_of(view_));
  Result<std::vector<Control>> controls = leading_->decide(now_s, heard_s_);
  if (!controls.ok()) {
    const std::string refused = view_.epoch > 0 || refused_.empty() ? "" : " It was refused: " + refused_;
    return fail(Status(controls.status().code(), controls.status().message() + refused));
  }
  if (controls->empty()) return;
  if (gathers) resume_text();
  decided.controls = std::move(*controls);
  for (const Control& order : decided.controls)
    if (order.kind == ControlKind::kView) {
      decided.epoch = order.view.epoch;
      publish(order.view);
    }
  orders_ = std::move(decided);
}

void ClusterNode::publish(const View& view) {
  if (options_.registry == nullptr) return;
  std::vector<Registry::Member> members;
  for (const NodeId node : all_of(view))
    members.push_back({node, addresses_.at(node), is_among(view.workers, node), is_among(view.servers, node)});
  options_.registry->publish(view.epoch, std::move(members));
}

// A membership is told only when it is written down. Who cannot have it written, and has lost others too, may have a
// successor by now; who hears everybody trains on until etcd is back, or can write again, but cannot end before.
bool ClusterNode::may_tell_orders(double now_s) {
  if (options_.registry == nullptr || orders_->epoch == 0) return true;
  if (options_.registry->written() >= orders_->epoch) return true;
  const bool late = now_s - orders_->since_s > options_.dead_after_s, silent = any_silent(now_s);
  if (!options_.registry->reached()) {
    if (silent || (phase_ > Phase::kTraining && late))
      fail(error(Code::kAborted, "node ", self_, ", which led, hears neither all of the others nor etcd for ",
                 options_.dead_after_s, " s, and cannot go on alone: they may have another leader by now; nothing ",
                 "more is written here"));
    return false;
  }
  const Status trouble = options_.registry->trouble();
  if (!late || trouble.ok()) return false;
  const std::string unwritten =
      "node " + std::to_string(self_) + ", which leads, could not write down who takes part: ";
  if (silent || phase_ != Phase::kTraining)
    fail(Status(trouble.code(), unwritten + trouble.message()));
  else if (unwritten_.empty())
    unwritten_ = unwritten + trouble.message() + "; nobody could join or be left out for longer than --dead-after";
  return false;
}

bool ClusterNode::any_silent(double now_s) const {
  const std::set<NodeId> all = all_of(view_);
  return std::any_of(all.begin(), all.end(),
                     [&](NodeId node) { return node != self_ && now_s - heard_s_.at(node) > options_.dead_after_s; });
}

void ClusterNode::tell_orders() {
  const Orders orders = *std::exchange(orders_, std::nullopt);
  for (Control order : orders.controls) {
    std::set<NodeId> nodes = leading_->members();
    if (order.kind == ControlKind::kView) {
      for (const NodeId node : nodes)
        if (options_.joinable) order.addresses[node] = addresses_.at(node);
      nodes.insert(orders.before.begin(), orders.before.end());
    }
    tell_all(order, nodes);
  }
  if (!board_) return;
  for (const NodeId node : orders.before)
    if (!is_among(view_.workers, node) && !is_among(view_.servers, node)) leave_text(node);
}

void ClusterNode::stop_text() {
  const std::lock_guard lock(mutex_);
  if (board_ && !text_over_ && view_.epoch > 0) end_text();
}

void ClusterNode::end_text() {
  text_over_ = true;
  Control over{ControlKind::kTextOver};
  over.standing = board_->standing();
  tell_all(over, leading_->members());
}

void ClusterNode::hand_out() {
  if (text_over_) return;
  for (const auto& [node, pieces] : board_->hand_out(wanted_, workers_now())) tell(node, pieces);
  if (view_.epoch > 0 && board_->over()) end_text();
}

void ClusterNode::tell(NodeId node, const Control& control) {
  node == self_ ? receive_from_leader(control) : send(node, encode(control));
}

void ClusterNode::tell_all(const Control& control, const std::set<NodeId>& nodes) {
  for (const NodeId node : nodes)
    if (node != self_) send(node, encode(control));
  receive_from_leader(control);
}

void ClusterNode::tell_leader(Control control) {
  control.figures = own_figures();
  is_leader() ? receive_from_follower(self_, control) : send(leader_, encode(control));
}

Control ClusterNode::alive() const {
  Control alive;
  alive.view.epoch = view_.epoch;
  if (phase_ == Phase::kTraining) alive.slow = slow_owners_.slow();
  return alive;
}

void ClusterNode::keep_in_touch(double now_s) {
  for (auto& [node, link] : links_) {
    std::vector<std::string> frames;
    link.tick(now_s, frames);
    for (std::string& frame : frames) transport_->send(node, std::move(frame));
  }
  const bool needs_leader = phase_ != Phase::kEnded || (options_.registry != nullptr && !model_saved_);
  const double patience_s = options_.registry != nullptr ? kLeaderGone * options_.dead_after_s
                            : view_.epoch == 0           ? std::max(options_.start_within_s, options_.dead_after_s)
                                                         : options_.dead_after_s;
  if (!is_leader() && needs_leader && now_s - heard_s_[leader_] > patience_s) seek_leader(now_s);
  if (options_.joinable) forget_gone(now_s);
  if (now_s - alive_sent_s_ < std::min(kAliveEvery, options_.dead_after_s / 5)) return;
  alive_sent_s_ = now_s;
  if (sought_ && !is_leader()) look_if_leading(now_s);
  if (!is_leader()) return tell_leader(alive());
  leading_->receive(self_, alive());
  const std::string still_here = encode(Control{});
  for (const NodeId node : view_.epoch == 0 ? leading_->present() : all_of(view_))
    if (node != self_) send(node, still_here);
}

}  // namespace streamvec
