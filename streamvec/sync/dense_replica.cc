#include "streamvec/sync/dense_replica.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/core/random.h"
#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr uint64_t kSpaceDraws = 11;      // the same on all nodes
constexpr int64_t kMeasuredRows = 2'048;  // the most frequent: their lengths stand for those that a row meets

// Tables differ in width, and what stands behind a row of each has to be zero.
void clear_padding(float* row, int32_t cols) {
  std::fill(row + cols, row + (cols + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple, 0.0f);
}

int64_t measured_rows(int64_t rows) {
  return std::clamp<int64_t>(rows, 1, kMeasuredRows);
}

// The mean square of the first rows.
double length_of(const Matrix& table, int64_t rows) {
  double length = 0;
  for (int64_t row = 0; row < std::min(rows, kMeasuredRows); ++row)
    length += double{dot(table.row(row), table.row(row), static_cast<int32_t>(table.cols()))};
  return length / static_cast<double>(measured_rows(rows));
}

void scale_row(float* row, float factor, int32_t cols) {
  if (factor != 1) blend(row, factor, row, 0, cols, row);
}

}  // namespace

Result<std::unique_ptr<DenseReplica>> DenseReplica::make(const Options& options) {
  std::unique_ptr<DenseReplica> replica(new DenseReplica(options.nodes, options.team));
  for (const DenseTable& table : options.tables) STREAMVEC_RETURN_IF_ERROR(replica->add_table(table));
  for (const Table& table : replica->tables_)
    if (table.options.grows) replica->rows_met_.add(*table.options.live);
  replica->lay_out();
  int64_t cols = 0;
  for (const Table& table : replica->tables_) cols = std::max(cols, table.base.cols());
  replica->rows_.reserve_zeroed(kScratchRows * replica->members(), cols);
  replica->sums_.resize(replica->tables_.size() * static_cast<size_t>(replica->members()));
  return replica;
}

// Where everything lies in a round's values: changes, then squares, then which blocks of rows are in use here.
void DenseReplica::lay_out() {
  size_ = 0;
  for (Table& table : tables_) {
    if (table.options.grows) table.rows = rows_met_.rows_of(*table.options.live);
    table.changes = size_;
    size_ += table.low ? table.low->left_size() : table.rows * table.base.cols();
  }
  changes_ = size_;
  for (Table& table : tables_) {
    if (table.squares < 0) continue;
    table.squares = size_;
    size_ += table.options.by_row ? table.rows : 1;
  }
  met_ = size_;
  size_ += rows_met_.values();
}

Status DenseReplica::add_table(const DenseTable& options) {
  Table table;
  table.options = options;
  switch (options.combine) {
    case Combine::kSum:
      table.way = Way::kSum;
      break;
    case Combine::kMean:
      table.way = Way::kMean;
      break;
    case Combine::kAdasum:
      table.way = Way::kAdasum;
      break;
    case Combine::kDamped:
      table.way = options.pull.empty() ? Way::kAsLong : Way::kDamped;
  }
  const int64_t cols = options.live->cols(), rows = options.grows ? options.live->rows_max() : options.live->rows();
  STREAMVEC_ASSIGN_OR_RETURN(table.base, Matrix::make(rows, cols));
  for (int64_t row = 0; row < rows; ++row) std::copy_n(options.live->row(row), cols, table.base.row(row));
  table.rows = rows;
  table.length = length_of(table.base, rows);
  table.squares = table.lengthens() ? 0 : -1;
  table.brought = static_cast<int64_t>(brought_.size());
  brought_.resize(brought_.size() + static_cast<size_t>(rows * cols));
  if (options.rank > 0 && !options.grows && (rows + cols) * options.rank < rows * cols) {
    table.low = std::make_unique<LowRank>(rows, cols, options.rank, mix(kSpaceDraws, tables_.size()));
    table.squares = -1;  // they are those of its second values
    table.right = second_size_;
    second_size_ += table.low->right_size() + 1;
    table.rest = rest_size_;
    rest_size_ += rows * cols + 1;
    expanded_.resize(std::max(expanded_.size(), static_cast<size_t>(rows * cols)));
  }
  tables_.push_back(std::move(table));
  return {};
}

RowLocks::Guard DenseReplica::locked(const Table& table, int64_t row) {
  const auto slot = static_cast<Slot>(row);
  const std::span<const Slot> one(&slot, 1), none;
  RowLocks& locks = table.options.locks != nullptr ? *table.options.locks : own_locks_;
  return {locks, table.options.is_output ? none : one, table.options.is_output ? one : none};
}

template <typename Use>
void DenseReplica::share_rows(const Use& use) {
  std::fill(sums_.begin(), sums_.end(), Sums{});
  const auto share = [&](int32_t member) {
    for (size_t at = 0; at < tables_.size(); ++at) {
      const int64_t rows = tables_[at].rows;
      use(at, rows * member / members(), rows * (member + 1) / members(), member);
    }
  };
  team_ != nullptr ? team_->run(share) : share(0);
}

void DenseReplica::bring(std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == size_);
  before_ = std::exchange(begun_, trained_);
  under_way_ = true;
  share_rows(
      [&](size_t at, int64_t begin, int64_t end, int32_t member) { bring_rows(at, begin, end, member, values); });
  for (size_t at = 0; at < tables_.size(); ++at) end_bringing(at, values);
  rows_met_.bring(values.subspan(static_cast<size_t>(met_)));
}

void DenseReplica::take_rows_met(int64_t rows) {
  STREAMVEC_CHECK(!under_way_);
  rows_met_.take(rows);
  lay_out();
}

void DenseReplica::bring_rows(size_t at, int64_t begin, int64_t end, int32_t member, std::span<float> values) {
  Table& table = tables_[at];
  const auto cols = static_cast<int32_t>(table.base.cols());
  const bool damped = table.way == Way::kDamped;
  Sums& sums = sums_of(at, member);
  float* change = scratch(member, kChange);
  clear_padding(change, cols);
  for (int64_t row = begin; row < end; ++row) {
    float* base = table.base.row(row);
    ChangeSquares squares;
    {
      const RowLocks::Guard lock = locked(table, row);
      squares = take_change(table.options.live->row(row), base, cols, change);
    }
    std::copy_n(change, cols, brought_.begin() + table.brought + row * cols);
    if (table.low) continue;
    add_scaled(change, 1, cols, base);
    if (damped) scale_row(change, damped_share(pull_since(at, row, before_), nodes_), cols);
    std::copy_n(change, cols, values.begin() + table.changes + row * cols);
    sums.change += squares.change;
    if (row < kMeasuredRows) sums.known += squares.known;
    if (table.squares >= 0 && table.options.by_row) values[static_cast<size_t>(table.squares + row)] = squares.change;
  }
}

void DenseReplica::end_bringing(size_t at, std::span<float> values) {
  Table& table = tables_[at];
  if (table.low) {
    const auto size = static_cast<size_t>(table.base.rows() * table.base.cols());
    return table.low->project(
        std::span(brought_).subspan(static_cast<size_t>(table.brought), size),
        values.subspan(static_cast<size_t>(table.changes), static_cast<size_t>(table.low->left_size())));
  }
  table.told = true;
  Sums all;
  for (int32_t member = 0; member < members(); ++member) {
    all.change += sums_of(at, member).change;
    all.known += sums_of(at, member).known;
  }
  if (table.squares >= 0 && !table.options.by_row)
    values[static_cast<size_t>(table.squares)] = static_cast<float>(all.change);
  table.length = all.known / static_cast<double>(measured_rows(table.rows));
}

// What a node has said of its change is all that counts as told; the rest stays for the next round.
void DenseReplica::bring_second(std::span<const float> means, std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == second_size_);
  for (Table& table : tables_) {
    if (!table.low) continue;
    const auto size = static_cast<size_t>(table.base.rows() * table.base.cols());
    const std::span<float> change = std::span(brought_).subspan(static_cast<size_t>(table.brought), size);
    const auto right = values.subspan(static_cast<size_t>(table.right), static_cast<size_t>(table.low->right_size()));
    table.low->span_space(
        means.subspan(static_cast<size_t>(table.changes), static_cast<size_t>(table.low->left_size())));
    table.low->project_back(change, right);
    table.low->expand(right, change);
    float square = 0;  // of what was said: the basis is orthonormal
    for (const float value : right) square += value * value;
    values[static_cast<size_t>(table.right + table.low->right_size())] = square;
    table.told = true;
    const int64_t cols = table.base.cols();
    for (int64_t row = 0; row < table.base.rows(); ++row)
      for (int64_t k = 0; k < cols; ++k) table.base.row(row)[k] += change[static_cast<size_t>(row * cols + k)];
  }
}

void DenseReplica::take(std::span<const float> means, std::span<const float> second_means) {
  STREAMVEC_CHECK(static_cast<int64_t>(means.size()) == size_);
  STREAMVEC_CHECK(static_cast<int64_t>(second_means.size()) == second_size_);
  find_table_gains(means);
  share_rows([&](size_t at, int64_t begin, int64_t end, int32_t member) {
    if (!tables_[at].low) take_rows(at, begin, end, member, means);
  });
  for (Table& table : tables_)
    if (table.low) take_low(table, second_means);
  rows_met_.find(means.subspan(static_cast<size_t>(met_)));
  end_round();
}

void DenseReplica::end_round() {
  under_way_ = false;
  for (Table& table : tables_) table.told = false;
}

void DenseReplica::take_low(Table& table, std::span<const float> means) {
  const auto right = means.subspan(static_cast<size_t>(table.right), static_cast<size_t>(table.low->right_size()));
  const double factor = low_gain(table, means[static_cast<size_t>(table.right + table.low->right_size())], right);
  table.low->expand(right, expanded_);
  table.low->keep(right);
  shift(table, expanded_, factor);
}

double DenseReplica::low_gain(const Table& table, double mean_of_squares, std::span<const float> mean) const {
  if (table.way == Way::kMean) return 1;
  if (table.way == Way::kSum) return static_cast<double>(nodes_);
  double square = 0;
  for (const float value : mean) square += double{value} * value;
  return gain(table.way, mean_of_squares, square);
}

void DenseReplica::bring_rest(std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == rest_size_);
  before_ = begun_;
  under_way_ = true;
  for (Table& table : tables_) {
    if (!table.low) continue;
    table.told = true;
    const int64_t cols = table.base.cols();
    double square = 0;
    for (int64_t i = 0; i < table.base.rows() * cols; ++i) {
      float& base = table.base.row(i / cols)[i % cols];
      const float change = table.options.live->row(i / cols)[i % cols] - base;
      base += change;
      square += double{change} * change;
      values[static_cast<size_t>(table.rest + i)] = brought_[static_cast<size_t>(table.brought + i)] = change;
    }
    values[static_cast<size_t>(table.rest + table.base.rows() * cols)] = static_cast<float>(square);
  }
}

void DenseReplica::take_rest(std::span<const float> means) {
  for (Table& table : tables_) {
    if (!table.low) continue;
    const int64_t size = table.base.rows() * table.base.cols();
    const auto mean = means.subspan(static_cast<size_t>(table.rest), static_cast<size_t>(size));
    shift(table, mean, low_gain(table, means[static_cast<size_t>(table.rest + size)], mean));
  }
  end_round();
}

void DenseReplica::undo() {
  if (!under_way_) return;
  begun_ = before_;
  for (Table& table : tables_) {
    if (!table.told) continue;
    const int64_t cols = table.base.cols();
    for (int64_t i = 0; i < table.base.rows() * cols; ++i)
      table.base.row(i / cols)[i % cols] -= brought_[static_cast<size_t>(table.brought + i)];
  }
  end_round();
}

int64_t DenseReplica::agreed_size() const {
  auto size = static_cast<int64_t>(brought_.size());
  for (const Table& table : tables_) size += table.low ? table.low->right_size() : 0;
  return size;
}

void DenseReplica::copy_agreed(std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == agreed_size() && !under_way_);
  auto to = values.begin();
  for (const Table& table : tables_)
    for (int64_t row = 0; row < table.base.rows(); ++row) to = std::copy_n(table.base.row(row), table.base.cols(), to);
  for (const Table& table : tables_)
    if (table.low) to = std::copy_n(table.low->kept().begin(), table.low->right_size(), to);
}

void DenseReplica::adopt(std::span<const float> agreed) {
  STREAMVEC_CHECK(static_cast<int64_t>(agreed.size()) == agreed_size());
  for (size_t at = 0; at < tables_.size(); ++at)
    adopt_table(at, agreed.subspan(static_cast<size_t>(tables_[at].brought)));
  for (Table& table : tables_) table.length = length_of(table.base, table.rows);
  auto kept = agreed.begin() + static_cast<int64_t>(brought_.size());
  for (Table& table : tables_) {
    if (!table.low) continue;
    std::copy_n(kept, table.low->right_size(), table.low->kept().begin());
    kept += table.low->right_size();
  }
  end_round();
}

void DenseReplica::adopt_table(size_t at, std::span<const float> values) {
  Table& table = tables_[at];
  const auto cols = static_cast<int32_t>(table.base.cols());
  const bool damped = table.way == Way::kDamped;
  float *agreed = scratch(0, kMean), *known = scratch(0, kOwn);
  clear_padding(agreed, cols);
  clear_padding(known, cols);
  for (int64_t row = 0; row < table.base.rows(); ++row) {
    std::copy_n(values.begin() + row * cols, cols, agreed);
    std::copy_n(table.base.row(row), cols, known);
    const float late = damped ? late_share(pull_since(at, row, begun_)) : 1;
    const RowLocks::Guard lock = locked(table, row);
    shift_both(agreed, known, late, cols, table.options.live->row(row), table.base.row(row));
    std::copy_n(agreed, cols, table.base.row(row));  // as it is, without rounding
  }
}

void DenseReplica::shift(Table& table, std::span<const float> means, double factor) {
  const int64_t cols = table.base.cols();
  for (int64_t row = 0; row < table.base.rows(); ++row)
    for (int64_t k = 0; k < cols; ++k) {
      const auto place = static_cast<size_t>(row * cols + k);
      const auto move =
          static_cast<float>(factor * means[place] - brought_[static_cast<size_t>(table.brought) + place]);
      table.options.live->row(row)[k] += move;
      table.base.row(row)[k] += move;
    }
}

void DenseReplica::take_rows(size_t at, int64_t begin, int64_t end, int32_t member, std::span<const float> means) {
  Table& table = tables_[at];
  const auto cols = static_cast<int32_t>(table.base.cols());
  const bool damped = table.way == Way::kDamped;
  float *mean = scratch(member, kMean), *own = scratch(member, kOwn);
  clear_padding(mean, cols);
  clear_padding(own, cols);
  for (int64_t row = begin; row < end; ++row) {
    std::copy_n(means.begin() + table.changes + row * cols, cols, mean);
    std::copy_n(brought_.begin() + table.brought + row * cols, cols, own);
    scale_row(mean, static_cast<float>(row_gain(table, row, mean, means)), cols);
    const float late = damped ? late_share(pull_since(at, row, begun_)) : 1;
    const RowLocks::Guard lock = locked(table, row);
    shift_both(mean, own, late, cols, table.options.live->row(row), table.base.row(row));
  }
}

double DenseReplica::gain(Way way, double mean_of_squares, double square_of_mean) const {
  const auto nodes = static_cast<double>(nodes_);
  if (mean_of_squares <= 0) return 1;
  if (square_of_mean * nodes * nodes <= mean_of_squares) return nodes;
  const double ratio = mean_of_squares / square_of_mean;
  return std::clamp(way == Way::kAsLong ? std::sqrt(ratio) : ratio, 1.0, nodes);
}

// Of tables whose rows have none of their own.
void DenseReplica::find_table_gains(std::span<const float> means) {
  const auto has_one = [](const Table& table) { return !table.low && table.lengthens() && !table.options.by_row; };
  share_rows([&](size_t at, int64_t begin, int64_t end, int32_t member) {
    const Table& table = tables_[at];
    if (!has_one(table)) return;
    const auto cols = static_cast<int32_t>(table.base.cols());
    float* mean = scratch(member, kMean);
    clear_padding(mean, cols);
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(means.begin() + table.changes + row * cols, cols, mean);
      sums_of(at, member).change += double{dot(mean, mean, cols)};
    }
  });
  for (size_t at = 0; at < tables_.size(); ++at) {
    Table& table = tables_[at];
    if (!has_one(table)) continue;
    double square = 0;
    for (int32_t member = 0; member < members(); ++member) square += sums_of(at, member).change;
    table.gain = gain(table.way, means[static_cast<size_t>(table.squares)], square);
  }
}

double DenseReplica::row_gain(const Table& table, int64_t row, const float* mean, std::span<const float> means) const {
  if (table.way == Way::kMean) return 1;
  if (!table.lengthens()) return static_cast<double>(nodes_);
  if (!table.options.by_row) return table.gain;
  return gain(table.way, means[static_cast<size_t>(table.squares + row)],
              dot(mean, mean, static_cast<int32_t>(table.base.cols())));
}

double DenseReplica::pull_since(size_t table, int64_t row, double then) const {
  const DenseTable& options = tables_[table].options;
  const Table& against = tables_[options.against < 0 ? table : static_cast<size_t>(options.against)];
  return double{options.pull[static_cast<size_t>(row)]} * against.length * (trained_ - then);
}

}  // namespace streamvec
