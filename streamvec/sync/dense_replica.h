// A node's side of rounds in which all nodes change all values at once: what it brings to a round, and what it makes of
// the mean of all that was brought (transport/collective.h). A pure state machine: no clock, thread or network. All
// nodes compute the same from the same mean, so that what they agree on is equal but for rounding.
//
// As with owners of rows (replica.h) there are two values, the live one that training goes on with and `base`, what all
// agree on, counting the round under way: training need not wait for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/model/row_locks.h"
#include "streamvec/sync/combiner.h"
#include "streamvec/sync/low_rank.h"
#include "streamvec/sync/round_values.h"
#include "streamvec/sync/rows_met.h"

namespace streamvec {

struct DenseTable {
  Matrix* live = nullptr;  // borrowed; the same shape and initial values on all nodes
  // kAdasum: the mean of the changes, lengthened by the ratio of their mean square to its own: 1 when they are equal,
  // the number of nodes when they are at right angles, and never more. What Adasum is between two rows, of any number
  // of them at once.
  // kDamped without a pull: the mean, lengthened only until it is as long as the changes are in the mean of their
  // squares, and by no more than the number of nodes: what moves by steps of one length (Adam, Muon) then moves by as
  // much as one node would, in a direction that is surer.
  Combine combine = Combine::kMean;
  // Rows come into use while the ring goes on, up to live->rows_max(); all of them have their first values already,
  // the same on all nodes. Rounds take those that are in use anywhere. Such a table has no rank.
  bool grows = false;
  bool by_row = true;         // lengthening goes by each row; false: by the whole table
  std::vector<float> pull;    // of kDamped, by row (SyncOptions::pull)
  int64_t rank = 0;           // the table's change as two thin matrices (low_rank.h), where that is less; 0: as it is
  RowLocks* locks = nullptr;  // borrowed: of builds that lock rows while they are trained on
  bool is_output = false;     // which of the two tables it is to them
  int64_t against = -1;       // of kDamped: the table whose rows its rows are trained against; -1: itself
};

// Used by one thread, while others may train on the live tables, as in Replica.
class DenseReplica final : public RoundValues {
 public:
  struct Options {
    int64_t nodes = 1;
    std::vector<DenseTable> tables;
    // Borrowed: bring() and take() share rows out among it, so that nobody else uses it meanwhile. None: alone.
    ThreadTeam* team = nullptr;
  };
  static Result<std::unique_ptr<DenseReplica>> make(const Options& options);

  int64_t size() const override { return size_; }
  int64_t changes() const override { return changes_; }
  void set_nodes(int64_t nodes) override { nodes_ = nodes; }
  void set_trained(double steps) override { trained_ = steps; }
  void bring(std::span<float> values) override;
  int64_t second_size() const override { return second_size_; }  // of tables of a rank
  void bring_second(std::span<const float> means, std::span<float> values) override;
  void take(std::span<const float> means, std::span<const float> second_means = {}) override;
  int64_t rows_met() const override { return rows_met_.rows(); }
  void take_rows_met(int64_t rows) override;
  int64_t rest_size() const override { return rest_size_; }  // what tables of a rank have left out
  void bring_rest(std::span<float> values) override;
  void take_rest(std::span<const float> means) override;
  void undo() override;
  int64_t agreed_size() const override;
  void copy_agreed(std::span<float> values) override;
  void adopt(std::span<const float> agreed) override;

 private:
  enum class Way { kSum, kMean, kAdasum, kAsLong, kDamped };  // by options.combine and whether there is a pull
  struct Table {
    DenseTable options;
    Way way = Way::kMean;
    bool lengthens() const { return way == Way::kAdasum || way == Way::kAsLong; }
    Matrix base;
    int64_t rows = 0;                  // that rounds take: all of base, unless it grows
    int64_t changes = 0, squares = 0;  // where they begin in a round's values; -1: it needs no squares
    int64_t brought = 0;               // where its changes begin in brought_
    std::unique_ptr<LowRank> low;      // its changes are of this; `right` is where they begin in the second values
    int64_t right = 0, rest = 0;
    bool told = false;  // what was brought is in `base`, and the round is under way
    double length = 0;  // mean square of the first rows, as last measured
    double gain = 1;    // of the round that is taken, where rows have none of their own
  };
  // What members find while they share rows, by table and then by member: squares of changes, of what was known.
  struct Sums {
    double change = 0, known = 0;
  };
  enum Scratch { kChange, kMean, kOwn, kScratchRows };

  DenseReplica(int64_t nodes, ThreadTeam* team) : nodes_(nodes), team_(team) {}
  int32_t members() const { return team_ != nullptr ? team_->size() : 1; }
  Sums& sums_of(size_t table, int32_t member) {
    return sums_[table * static_cast<size_t>(members()) + static_cast<size_t>(member)];
  }
  Status add_table(const DenseTable& table);
  void lay_out();
  RowLocks::Guard locked(const Table& table, int64_t row);
  // Calls use(table's place, its rows from .. to, whose turn it is) so that every row of every table has its turn.
  template <typename Use>
  void share_rows(const Use& use);
  float* scratch(int32_t member, int64_t row) { return rows_.row(member * kScratchRows + row); }
  void bring_rows(size_t at, int64_t begin, int64_t end, int32_t member, std::span<float> values);
  void end_bringing(size_t at, std::span<float> values);
  void take_rows(size_t at, int64_t begin, int64_t end, int32_t member, std::span<const float> means);
  void take_low(Table& table, std::span<const float> means);
  void end_round();
  void adopt_table(size_t at, std::span<const float> values);
  void shift(Table& table, std::span<const float> means, double factor);
  double low_gain(const Table& table, double mean_of_squares, std::span<const float> mean) const;
  void find_table_gains(std::span<const float> means);
  double row_gain(const Table& table, int64_t row, const float* mean, std::span<const float> means) const;
  double gain(Way way, double mean_of_squares, double square_of_mean) const;
  // How far training has moved the row towards its rest since `then`.
  double pull_since(size_t table, int64_t row, double then) const;

  int64_t nodes_;
  ThreadTeam* team_;
  std::vector<Table> tables_;
  std::vector<Sums> sums_;
  int64_t size_ = 0, changes_ = 0, second_size_ = 0, rest_size_ = 0;
  RowsMet rows_met_;
  int64_t met_ = 0;             // where a round's values tell, to their end, which blocks of rows are in use
  std::vector<float> brought_;  // the changes of this node in the round under way, as they were made or said
  std::vector<float> expanded_;
  RowBuffer rows_;
  RowLocks own_locks_;                           // of tables that have none
  bool under_way_ = false;                       // a round is
  double trained_ = 0, begun_ = 0, before_ = 0;  // now, when this round began, when the one before did
};

}  // namespace streamvec
