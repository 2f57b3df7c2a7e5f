// The network of a SimulatedCluster, its cuts, and nodes that stop.
#include <algorithm>
#include <iterator>
#include <utility>

#include "streamvec/sync/simulated_node.h"

namespace streamvec {

void SimulatedCluster::post(NodeId from, NodeId to, std::vector<std::string>& frames) {
  for (std::string& frame : frames) {
    if (!passes(from, to)) continue;
    const bool again = random_.uniform() < options_.repeat;
    if (again) network_.push_back({now_ + 2 * random_.uniform(), from, to, frame});
    if (random_.uniform() >= options_.loss)
      network_.push_back({now_ + 0.3 * random_.uniform(), from, to, std::move(frame)});
  }
}

void SimulatedCluster::deliver(const Frame& frame) {
  const auto found = nodes_.find(frame.to);
  if (found == nodes_.end() || !passes(frame.from, frame.to)) return;
  Node& node = *found->second;
  if (is_stopped(node)) return network_.push_back({node.stopped_until, frame.from, frame.to, frame.bytes});
  std::vector<std::string> messages, frames;
  if (options_.skip_dedupe) {
    if (frame.bytes.size() > 16) messages.push_back(frame.bytes.substr(16));
  }
  std::vector<std::string> in_order;
  if (const Status status = node.link(frame.from).receive(frame.bytes, now_, in_order, frames); !status.ok())
    broken_ = status.message();
  post(node.id, frame.from, frames);
  for (const std::string& message : options_.skip_dedupe ? messages : in_order) receive(node, frame.from, message);
}

bool SimulatedCluster::passes(NodeId from, NodeId to) const {
  return std::none_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    return (cut.from.count(from) > 0 && cut.to.count(to) > 0) ||
           (cut.both_ways && cut.from.count(to) > 0 && cut.to.count(from) > 0);
  });
}

bool SimulatedCluster::is_stopped(const Node& node) const {
  return node.stopped_until > now_;
}

// It hears of no membership meanwhile.
bool SimulatedCluster::is_away(NodeId id) const {
  const auto found = nodes_.find(id);
  if (found != nodes_.end() && is_stopped(*found->second)) return true;
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.away.count(id) > 0; });
}

bool SimulatedCluster::is_left_out(NodeId id) const {
  const auto living = nodes_.find(id), dead = dead_.find(id);
  return living != nodes_.end() ? living->second->left_out : dead != dead_.end() && dead->second->left_out;
}

// Between two sides, of which chance says which goes on, or between two nodes that both hear the others.
void SimulatedCluster::cut_some() {
  const std::vector<NodeId> all = members();
  if (all.size() < 2) return;
  Cut cut;
  cut.since = now_;
  cut.until = now_ + options_.away_max_s * random_.uniform();
  cut.both_ways = random_.uniform() < 0.6f;
  const bool of_two = all.size() > 2 && random_.uniform() < 0.3f;
  const auto count = static_cast<uint32_t>(all.size());
  const NodeId one = all[random_.below(count)], other = all[random_.below(count)];
  if (one == other) return;
  cut.from = {one};
  cut.to = {other};
  for (const NodeId id : all)
    if (!of_two && id != one && id != other) (random_.uniform() < 0.5f ? cut.from : cut.to).insert(id);
  const bool first_is_from = cut.from.count(all.front()) > 0;
  const bool from_is_away = first_leads() ? !first_is_from : random_.uniform() < 0.5f;
  if (!of_two) cut.away = from_is_away ? cut.from : cut.to;
  cuts_.push_back(std::move(cut));
}

void SimulatedCluster::stop_one() {
  const std::vector<NodeId> all = members();
  const NodeId id = all[random_.below(static_cast<uint32_t>(all.size()))];
  Node& node = *nodes_.at(id);
  if (is_stopped(node) || (first_leads() && id == all.front())) return;
  node.stopped_since = now_;
  node.stopped_until = now_ + options_.away_max_s * random_.uniform();
}

void SimulatedCluster::leave_out_lost() {
  std::erase_if(cuts_, [&](const Cut& cut) { return cut.until <= now_; });
  for (const Cut& cut : cuts_)
    if (now_ - cut.since > options_.dead_after_s) leave_out(cut.away, cut.until);
  for (const NodeId id : members())
    if (const Node& node = *nodes_.at(id); is_stopped(node) && now_ - node.stopped_since > options_.dead_after_s)
      leave_out({id}, node.stopped_until);
}

// They live, and hear of it when they are back, or later still.
void SimulatedCluster::leave_out(const std::set<NodeId>& lost, double until) {
  std::vector<NodeId> leave;
  const std::vector<NodeId> all = members();
  std::copy_if(all.begin(), all.end(), std::back_inserter(leave), [&](NodeId id) { return lost.count(id) > 0; });
  if (leave.empty() || leave.size() == all.size()) return;
  for (const NodeId id : leave) nodes_.at(id)->left_out = true;
  left_out_ += std::ssize(leave);
  change_view();
  for (const NodeId id : leave) news_.push_back({until + 2 * random_.uniform(), {id, view_}});
}

}  // namespace streamvec
