// What is known of pushes to owners that rows had before, by row: rows of one former owner may come from states of
// different age, when the only one that had heard the last of it was lost after it had told some of them.
#pragma once

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/sync/message.h"

namespace streamvec {

class RowClocks {
 public:
  RowClocks() = default;
  RowClocks(const RowClocks&) = delete;
  RowClocks& operator=(const RowClocks&) = delete;

  // The row is of a state of these clocks. Those of its present owner are left out: its own states tell them.
  void set(RowKey key, std::span<const WorkerClock> clocks, NodeId owner) {
    std::vector<WorkerClock> former;
    for (const WorkerClock& known : clocks)
      if (known.server != owner) former.push_back(known);
    if (former.empty())
      rows_.erase(key);
    else
      rows_[key] = &*distinct_.insert(std::move(former)).first;
  }
  // The same object for rows of equal clocks, until rows are forgotten.
  const std::vector<WorkerClock>& of(RowKey key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? none_ : *found->second;
  }
  // The owner's clocks and the row's.
  std::vector<WorkerClock> joined(std::span<const WorkerClock> owner, RowKey key) const {
    std::vector<WorkerClock> clocks(owner.begin(), owner.end());
    clocks.insert(clocks.end(), of(key).begin(), of(key).end());
    return clocks;
  }
  template <typename Which>
  void forget_if(Which&& which) {
    std::erase_if(rows_, [&](const auto& row) { return which(row.first); });
    if (rows_.empty()) distinct_.clear();
  }

 private:
  std::set<std::vector<WorkerClock>> distinct_;
  std::map<RowKey, const std::vector<WorkerClock>*> rows_;
  const std::vector<WorkerClock> none_;
};

}  // namespace streamvec
