// One step of all nodes on the slopes of all their batches: what one node would do with all of them as one batch. A
// round sums the slopes up; each node then makes the step of its part of the matrices alone (Muon's products, which
// are dear: optim/muon.h), and all get the steps of all parts. What Adam steps, biases and characters, comes back as
// slopes, and every node does it for itself.
//
// So Muon costs each of n nodes an n-th. Its momentum lies with the node that makes the step, and begins anew where a
// part changes hands: it knows ten steps or so.
//
// The next batch has to wait for the step (Turns::Options::always): a slope that comes late leads astray, where a late
// change only counts less (docs/BENCHMARKS.md, One step of all nodes). A round in which nobody had a batch steps
// nothing, and what few bits had left out of earlier ones is lost with it.
//
// A step is as long whatever slopes say, so that one of fewer pairs, which are less sure, has less of the rate: it goes
// by the root of the pairs of all nodes that are there (Malladi and others 2022, of Adam).
//
// Where the rate never falls (streams) changes are better: Muon makes what is chance in the slopes of all as long again
// as what they agree on, and the mean of steps that were made before does not (docs/BENCHMARKS.md, as above).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/core/thread_team.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/optim/muon.h"
#include "streamvec/optim/shared_slopes.h"
#include "streamvec/sync/round_values.h"

namespace streamvec {

// Used by one thread, while nobody else uses the slopes, the values or the team. What is agreed on is the values and
// what Adam knows of them.
class SharedStep final : public RoundValues {
 public:
  // Both borrowed.
  SharedStep(SharedSlopes& slopes, ThreadTeam& team);

  int64_t size() const override { return size_; }
  int64_t changes() const override { return changes_; }
  void set_nodes(int64_t nodes) override;
  std::span<const size_t> parts() const override { return parts_; }
  // Slopes of the part's matrices become their step, at a rate of 1.
  void make_part(size_t part, std::span<float> means) override;
  void set_trained(double) override {}
  void bring(std::span<float> values) override;
  void take(std::span<const float> means, std::span<const float> second_means = {}) override;
  void undo() override;
  int64_t agreed_size() const override { return agreed_size_; }
  void copy_agreed(std::span<float> values) override;
  void adopt(std::span<const float> agreed) override;
  double flops_of(size_t part) const;  // of its products, once a round

 private:
  using Table = SharedSlopes::Table;
  // What one node evens out at once. Its values lie together, row by row.
  struct Band {
    const Table* table;
    Muon::Cut cut;
    MatrixView<float> momentum;
    size_t part;
    int64_t at;
    double flops() const { return Muon::flops_of(cut, cut.turned ? momentum.rows : momentum.cols); }
  };
  // Values that lie together in a row and in a round.
  struct Run {
    const Table* table;
    int64_t row, col, count, at;
  };
  struct Totals {
    double pairs, rate;  // of one node, in the mean
  };

  void lay_out();
  std::vector<size_t> shares_of_bands();
  void add_runs(const Band& band);
  // Calls use(run, whose turn it is) so that every run has its turn.
  template <typename Use>
  void share_runs(const Use& use);
  void take_run(const Run& run, std::span<const float> means, const Totals& totals, float* scratch);
  void clear_slopes();
  void forget_others(size_t part);
  void keep_momentum(size_t part);
  void give_momentum_back();
  template <typename Use>
  void for_each_agreed(const Use& use);

  SharedSlopes& slopes_;
  ThreadTeam& team_;
  Muon muon_;
  int64_t nodes_ = 1;
  std::vector<Band> bands_;
  std::vector<Run> runs_;
  std::vector<size_t> parts_;
  int64_t size_ = 0, changes_ = 0, agreed_size_ = 0;
  bool under_way_ = false;
  std::vector<float> momentum_before_;  // of the part that was finished in the round under way
  size_t made_part_ = 0;
  std::pair<int64_t, size_t> own_{0, 0};  // of so many nodes, the part that this one finished last
  RowBuffer scratch_;
};

}  // namespace streamvec
