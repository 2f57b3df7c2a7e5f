// How the nodes of a stream come to read what of the sources that they share. Whenever others take part than before,
// all stand still where they are and tell the leader; it tells all who goes on where. A split is never read by two that
// way: its last reader has told where it stands and reads no more, or takes part no more.
#include <algorithm>
#include <utility>

#include "streamvec/cluster/stream_exchange.h"

namespace streamvec {

std::set<NodeId> StreamExchange::members() const {
  const std::lock_guard lock(mutex_);
  std::set<NodeId> members = others_;
  members.insert(self_);
  return members;
}

bool StreamExchange::division_due() const {
  const std::set<NodeId> now = members();
  const std::lock_guard lock(mutex_);
  return led_ && !is_dividing() && now != divided_members_;
}

// In this order: whoever is asked for cursors knows by then what for.
void StreamExchange::ask_to_divide() {
  divide_ = save_ + 1;
  ++save_;
}

bool StreamExchange::may_divide() const {
  const std::lock_guard lock(mutex_);
  return is_dividing() && std::all_of(others_.begin(), others_.end(), [&](NodeId node) {
           const auto told = cursors_.find(node);
           return told != cursors_.end() && told->second.first >= divide_;
         });
}

void StreamExchange::tell_division(std::string division) {
  const std::set<NodeId> now = members();
  const std::lock_guard lock(mutex_);
  divided_members_ = now;
  division_ = std::move(division);
  divided_ = divide_.load();
}

void StreamExchange::receive_division(const StreamNews& news) {
  const std::lock_guard lock(mutex_);
  divide_ = news.divide;
  if (news.division.empty()) return;
  division_ = news.division;
  divided_ = news.divided;
}

std::optional<std::string> StreamExchange::take_division() {
  const std::lock_guard lock(mutex_);
  if (!stepped_ || division_.empty() || is_dividing() || taken_division_ == divided_) return std::nullopt;
  taken_division_ = divided_;
  return division_;
}

}  // namespace streamvec
