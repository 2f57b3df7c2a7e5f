// How far nodes may be apart, found on the way (--sync auto): in step (1: a push is under way while training goes on,
// as BSP has it) while all push equally often, a few pushes apart when they part (SSP), freely (async) when even that
// holds the fast ones up. Each node finds its own bound, from how often everybody's pushes arrive and how long it was
// held back. A pure state machine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "streamvec/sync/message.h"

namespace streamvec {

class StalenessFinder {
 public:
  static constexpr int64_t kInStep = 1;
  static constexpr int64_t kFreely = INT64_MAX;  // what no node ever is apart
  struct Options {
    int64_t pushes = 16;        // of this node between two looks; more: steadier, and slower to see a change
    double held_most = 0.05;    // share of the time held back that widens the bound
    double held_least = 0.01;   // narrows it, when arrival rates agree
    double agree = 0.8;         // the slowest node's rate over the fastest's, from which on they do
    int64_t staleness_max = 8;  // past it: freely
  };
  StalenessFinder() : StalenessFinder(Options{}) {}
  explicit StalenessFinder(Options options) : options_(options) {}

  // This node begins a push, having been held back for `held_s` since the last; `clocks`: of all workers' pushes that
  // the owners have.
  void pushed(double now_s, double held_s, std::span<const WorkerClock> clocks);

  int64_t staleness() const { return staleness_; }
  // Each change of the bound with what was measured, in words.
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  struct Rates {
    NodeId slowest = 0;
    double ratio = 1;  // the slowest's over the fastest's
  };
  Rates rates_of(std::span<const WorkerClock> clocks) const;
  void look(double now_s, std::span<const WorkerClock> clocks);
  void change(int64_t staleness, double held, const Rates& rates);
  int64_t wider() const;
  int64_t narrower() const;

  const Options options_;
  int64_t staleness_ = kInStep;
  int64_t pushes_ = 0, looked_at_ = 0;
  double looked_s_ = -1, held_s_ = 0;
  std::map<NodeId, int64_t> clocks_;  // at the last look
  std::vector<std::string> reasons_;
};

}  // namespace streamvec
