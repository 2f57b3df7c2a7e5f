// What the schemes are defined to do with the changes that some workers push to one owner: in double precision and one
// process, whole tables at a time. It shares no code with what it is there to be compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "streamvec/sync/scheme.h"

namespace streamvec {

using PlainRow = std::vector<double>;
using PlainRows = std::map<uint32_t, PlainRow>;

inline double dot(const PlainRow& a, const PlainRow& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// x * a + y * b
inline PlainRow blend(double x, const PlainRow& a, double y, const PlainRow& b) {
  PlainRow sum(a.size());
  for (size_t k = 0; k < a.size(); ++k) sum[k] = x * a[k] + y * b[k];
  return sum;
}

// Maleki et al. 2021: what both agree in counts once. A change of nothing has no direction.
inline PlainRow adasum(const PlainRow& a, const PlainRow& b) {
  if (dot(a, a) == 0 || dot(b, b) == 0) return blend(1, a, 1, b);
  return blend(1 - dot(a, b) / (2 * dot(a, a)), a, 1 - dot(a, b) / (2 * dot(b, b)), b);
}

class PlainScheme {
 public:
  struct Push {
    size_t worker = 0;
    int64_t clock = 0;    // how many the worker has begun
    int64_t version = 0;  // the owner's, when the worker last heard of it
    PlainRows known;      // what the worker had heard by then
    PlainRows changes;
  };
  PlainScheme(const Scheme& scheme, size_t workers, PlainRows rows)
      : scheme_(scheme), workers_(workers), rows_(std::move(rows)), clocks_(workers, 0) {}

  // What a push has led to.
  struct Taken {
    std::vector<size_t> answered;  // workers
    std::set<uint32_t> moved;      // rows
    bool dropped = false;
  };
  Taken take(const Push& push) {
    Taken taken;
    taken.answered = {push.worker};
    switch (scheme_.admission) {
      case Admission::kBsp:
        take_in_round(push, workers_, taken);
        break;
      case Admission::kBackup:  // the first of a round, all but so many
        taken.dropped = push.version < version_;
        if (taken.dropped)
          clocks_[push.worker] = push.clock;
        else
          take_in_round(push, workers_ - static_cast<size_t>(scheme_.backups), taken);
        break;
      case Admission::kSoftsync:
        take_in_group(push, taken);
        break;
      case Admission::kSsp:
      case Admission::kAsync:
        take_in_at_once(push, taken);
        break;
    }
    return taken;
  }

  // Whether a worker that has begun so many pushes may train on when it has heard that the slowest has so many in.
  bool may_train(int64_t clock, int64_t slowest) const {
    return scheme_.admission != Admission::kSsp || clock <= slowest + scheme_.staleness;
  }
  const PlainRows& rows() const { return rows_; }
  int64_t version() const { return version_; }
  // Of the worker's pushes, up to which one is taken in or dropped.
  int64_t clock(size_t worker) const { return clocks_[worker]; }
  int64_t slowest() const { return *std::min_element(clocks_.begin(), clocks_.end()); }

 private:
  void take_in_round(const Push& push, size_t pushes, Taken& taken) {
    waiting_.push_back(push);
    taken.answered.clear();
    if (waiting_.size() < pushes) return;
    for (auto& [key, row] : rows_) {
      std::vector<PlainRow> changes;
      for (const Push& of_round : waiting_)
        if (of_round.changes.count(key) > 0) changes.push_back(of_round.changes.at(key));
      if (changes.empty()) continue;
      row = blend(1, row, 1, together(std::move(changes)));
      taken.moved.insert(key);
    }
    step();
    for (size_t i = 0; i < workers_; ++i) taken.answered.push_back(i);
  }

  // Who did not change a row has a change of nothing to it: that counts for the mean. Of more than two, Adasum takes
  // pairs, and pairs of those.
  PlainRow together(std::vector<PlainRow> changes) const {
    if (scheme_.combine == Combine::kAdasum) {
      while (changes.size() > 1) {
        std::vector<PlainRow> pairs;
        for (size_t i = 0; i < changes.size(); i += 2)
          pairs.push_back(i + 1 < changes.size() ? adasum(changes[i], changes[i + 1]) : changes[i]);
        changes = std::move(pairs);
      }
      return changes.front();
    }
    PlainRow sum(changes.front().size(), 0.0);
    for (const PlainRow& change : changes) sum = blend(1, sum, 1, change);
    if (scheme_.combine != Combine::kMean) return sum;
    return blend(1 / static_cast<double>(waiting_.size()), sum, 0, sum);
  }

  void take_in_at_once(const Push& push, Taken& taken) {
    waiting_ = {push};
    for (const auto& [key, change] : push.changes) {
      const PlainRow& known = push.known.at(key);
      rows_[key] = blend(1, known, 1, late(blend(1, rows_[key], -1, known), change));
      taken.moved.insert(key);
    }
    step();
  }

  // From the state that the sender knew: its own change, and the others' that it did not know of.
  PlainRow late(const PlainRow& missed, const PlainRow& change) const {
    if (scheme_.combine == Combine::kMean) return blend(0.5, missed, 0.5, change);
    return scheme_.combine == Combine::kAdasum ? adasum(missed, change) : blend(1, missed, 1, change);
  }

  // Zhang et al. 2016: a step is the mean of so many changes, each divided by how many steps it is old.
  void take_in_group(const Push& push, Taken& taken) {
    waiting_.push_back(push);
    const size_t group = std::min(static_cast<size_t>(scheme_.group), workers_);
    if (waiting_.size() < group) return;
    for (const Push& delta : waiting_)
      for (const auto& [key, change] : delta.changes) {
        const auto staleness = static_cast<double>(std::max<int64_t>(version_ - delta.version, 1));
        rows_[key] = blend(1, rows_[key], 1 / staleness / static_cast<double>(group), change);
        taken.moved.insert(key);
      }
    step();
  }

  void step() {
    for (const Push& push : waiting_) clocks_[push.worker] = push.clock;
    waiting_.clear();
    ++version_;
  }

  const Scheme scheme_;
  const size_t workers_;
  PlainRows rows_;
  int64_t version_ = 0;
  std::vector<int64_t> clocks_;
  std::vector<Push> waiting_;
};

}  // namespace streamvec
