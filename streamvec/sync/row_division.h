// Which rows are whose in one membership, found once: asked row by row, owner_of() looks at every server each time, and
// a worker that asks so for each server's rows takes time that grows with the square of their number.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/sync/view.h"

namespace streamvec {

class RowDivision {
 public:
  // Of all keys below key_end. REQUIRES: servers rise, and there is one.
  RowDivision(std::vector<NodeId> servers, RowKey key_end)
      : servers_(std::move(servers)), owner_(key_end), keys_(key_end), begin_(servers_.size() + 1, 0) {
    for (RowKey key = 0; key < key_end; ++key) {
      owner_[key] = owner_of(key, servers_);
      ++begin_[place_of(owner_[key]) + 1];
    }
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    std::vector<size_t> next = begin_;
    for (RowKey key = 0; key < key_end; ++key) keys_[next[place_of(owner_[key])]++] = key;
  }

  NodeId owner(RowKey key) const { return owner_[key]; }
  // Rising; none for one that owns nothing here.
  std::span<const RowKey> rows_of(NodeId server) const {
    if (!is_among(servers_, server)) return {};
    const size_t place = place_of(server);
    return std::span(keys_).subspan(begin_[place], begin_[place + 1] - begin_[place]);
  }

 private:
  size_t place_of(NodeId server) const {
    return static_cast<size_t>(std::lower_bound(servers_.begin(), servers_.end(), server) - servers_.begin());
  }

  std::vector<NodeId> servers_;
  std::vector<NodeId> owner_;  // by key
  std::vector<RowKey> keys_;   // by owner
  std::vector<size_t> begin_;  // of each owner's keys
};

}  // namespace streamvec
