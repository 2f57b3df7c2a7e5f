#include "streamvec/cluster/leader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace streamvec {
namespace {

// Slow owners are better than none.
void own_again_if_none_does(View& view) {
  if (view.servers.empty()) view.servers = std::exchange(view.retired, {});
}

}  // namespace

std::set<NodeId> all_of(const View& view) {
  std::set<NodeId> all(view.workers.begin(), view.workers.end());
  all.insert(view.servers.begin(), view.servers.end());
  return all;
}

Leader Leader::successor(Options options, double now_s) {
  Leader leader(std::move(options), now_s);
  leader.view_ = leader.options_.all;
  leader.gathers_ = true;
  return leader;
}

void Leader::receive(NodeId from, const Control& control) {
  const bool is_of_now = control.view.epoch == view_.epoch;
  switch (control.kind) {
    case ControlKind::kHello:
      if (gathers_)  // it takes no part yet
        for (std::vector<NodeId>* nodes : {&view_.workers, &view_.servers}) std::erase(*nodes, from);
      else
        present_.insert(from);
      break;
    case ControlKind::kGreeting:
      if (gathers_ && is_of_now) present_.insert(from);
      break;
    case ControlKind::kFinished:
      if (!is_among(view_.workers, from)) break;  // what it did since it was left out others do again
      finished_.insert(from);
      trained_[from] = control.trained;
      break;
    case ControlKind::kFlushed:
      if (!is_of_now) break;
      flushed_.insert(from);
      flushed_clock_ = std::max(flushed_clock_, control.clock);
      break;
    case ControlKind::kSettled:
      if (is_of_now) settled_.insert(from);
      break;
    case ControlKind::kAlive:
      if (is_of_now) slow_[from] = control.slow;
      break;
    default:
      break;
  }
}

TrainedTotals Leader::trained() const {
  TrainedTotals all;
  for (const auto& [node, trained] : trained_) {
    all.tokens += trained.tokens;
    all.pairs += trained.pairs;
    all.loss += trained.loss;
    all.loss_pairs += trained.loss_pairs;
  }
  return all;
}

Result<std::vector<Control>> Leader::decide(double now_s, const std::map<NodeId, double>& heard_s) {
  if (gathers_) return gather(now_s);
  if (view_.epoch == 0) return begin(now_s);
  std::vector<Control> orders;
  View next = without_silent(now_s, heard_s);
  const bool shrinks = next.workers.size() < view_.workers.size() || next.servers.size() < view_.servers.size();
  const bool grows = !joining_.empty() && !ending_;
  if (grows) add_joining(next);
  if (shrinks || grows) {
    STREAMVEC_RETURN_IF_ERROR(check_kinds(next));
    take_view(next, orders);
  } else if (!ending_) {
    retire_slow(orders);
  }
  end_stages(orders);
  return orders;
}

Result<std::vector<Control>> Leader::begin(double now_s) {
  std::vector<Control> orders;
  const std::set<NodeId> wanted = all_of(options_.all);
  if (present_ == wanted) {
    take_view({1, options_.all.workers, options_.all.servers}, orders);
    return orders;
  }
  if (now_s - started_s_ <= options_.start_within_s) return orders;
  std::string missing;
  for (const NodeId node : wanted)
    if (present_.count(node) == 0) missing += (missing.empty() ? "" : ", ") + std::to_string(node);
  return error(Code::kUnavailable, "node ", missing, " did not come within ", options_.start_within_s,
               " s; was it started, with the same addresses in the same order?");
}

Status Leader::check_kinds(const View& view) const {
  if (!view.workers.empty() && !view.servers.empty()) return {};
  return error(Code::kUnavailable, "no ", view.workers.empty() ? "worker" : "owner of rows",
               " is left: none was heard for ", options_.dead_after_s, " s");
}

Result<std::vector<Control>> Leader::gather(double now_s) {
  std::vector<Control> orders;
  const std::set<NodeId> wanted = all_of(view_);
  if (!std::includes(present_.begin(), present_.end(), wanted.begin(), wanted.end()) &&
      now_s - started_s_ <= options_.start_within_s)
    return orders;
  View next{view_.epoch + 1, {}, {}};
  const auto greeted = [&](NodeId node) { return present_.count(node) > 0; };
  std::copy_if(view_.workers.begin(), view_.workers.end(), std::back_inserter(next.workers), greeted);
  std::copy_if(view_.servers.begin(), view_.servers.end(), std::back_inserter(next.servers), greeted);
  std::copy_if(view_.retired.begin(), view_.retired.end(), std::back_inserter(next.retired), greeted);
  own_again_if_none_does(next);
  STREAMVEC_RETURN_IF_ERROR(check_kinds(next));
  gathers_ = false;
  take_view(next, orders);
  return orders;
}

View Leader::without_silent(double now_s, const std::map<NodeId, double>& heard_s) const {
  View next{view_.epoch + 1, {}, {}};
  const auto lives = [&](NodeId node) {
    return node == options_.self || now_s - heard_s.at(node) <= options_.dead_after_s;
  };
  std::copy_if(view_.workers.begin(), view_.workers.end(), std::back_inserter(next.workers), lives);
  std::copy_if(view_.servers.begin(), view_.servers.end(), std::back_inserter(next.servers), lives);
  std::copy_if(view_.retired.begin(), view_.retired.end(), std::back_inserter(next.retired), lives);
  own_again_if_none_does(next);
  return next;
}

// When more than half of the others find it slow: it owns rows no more, and trains on. For good, so that rows never go
// to and fro, and half of all that ever owned rows keep theirs: a run may last for months, in which each node has bad
// minutes. One at a time: nodes measure anew when rows have moved.
void Leader::retire_slow(std::vector<Control>& orders) {
  const size_t owned = view_.servers.size() + view_.retired.size();
  if (2 * (view_.servers.size() - 1) < owned) return;
  for (const NodeId node : view_.servers) {
    double took_s = 0, others_s = 0;
    size_t found = 0;
    for (const auto& [by, owners] : slow_)
      for (const SlowOwner& owner : owners)
        if (owner.node == node && by != node) took_s += owner.took_s, others_s += owner.others_s, ++found;
    const size_t others = view_.workers.size() - 1;
    if (!is_among(view_.workers, node) || 2 * found <= others) continue;
    View next = view_;
    ++next.epoch;
    std::erase(next.servers, node);
    next.retired.insert(std::upper_bound(next.retired.begin(), next.retired.end(), node), node);
    const auto ms = [&](double sum_s) { return std::to_string(std::lround(1e3 * sum_s / static_cast<double>(found))); };
    take_view(next, orders);
    orders.back().text = "node " + std::to_string(node) + " answered for its rows after " + ms(took_s) +
                         " ms in the mean where the others took " + ms(others_s) + " ms, by the measure of " +
                         std::to_string(found) + " of " + std::to_string(others) +
                         " nodes: its rows went to the others, and it trains on";
    return;
  }
}

void Leader::add_joining(View& view) {
  for (const auto& [node, owns_rows] : std::exchange(joining_, {})) {
    view.workers.push_back(node);
    if (owns_rows) view.servers.push_back(node);
  }
  std::sort(view.workers.begin(), view.workers.end());
  std::sort(view.servers.begin(), view.servers.end());
}

// Owners that are gone may have lost something: what had begun to end begins to end again.
void Leader::take_view(const View& view, std::vector<Control>& orders) {
  view_ = view;
  Control told{ControlKind::kView};
  told.view = view;
  orders.push_back(told);
  flushed_.clear();
  settled_.clear();
  slow_.clear();
  if (ending_) orders.push_back({ControlKind::kFlush});
}

void Leader::end_stages(std::vector<Control>& orders) {
  if (all_in(settled_)) {
    orders.push_back({ControlKind::kEnd});
    settled_.clear();
  } else if (all_in(flushed_)) {
    Control settle{ControlKind::kSettle};
    settle.clock = flushed_clock_;
    orders.push_back(settle);
    flushed_.clear();
  } else if (all_in(finished_)) {
    orders.push_back({ControlKind::kFlush});
    finished_.clear();
    ending_ = true;
  }
}

bool Leader::all_in(const std::set<NodeId>& nodes) const {
  return std::all_of(view_.workers.begin(), view_.workers.end(), [&](NodeId node) { return nodes.count(node) > 0; });
}

}  // namespace streamvec
