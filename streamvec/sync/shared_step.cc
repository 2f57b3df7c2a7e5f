#include "streamvec/sync/shared_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/core/status.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {
namespace {

constexpr int64_t kTotals = 2;  // pairs, and pairs times rate

int64_t cols_most(const SharedSlopes& slopes) {
  int64_t most = 1;
  for (const SharedSlopes::Table& table : slopes.tables) most = std::max(most, table.values->cols());
  return most;
}

}  // namespace

// Calls use(matrix) for all that nodes agree on.
template <typename Use>
void SharedStep::for_each_agreed(const Use& use) {
  for (const Table& table : slopes_.tables) {
    use(*table.values);
    if (table.evened_out) continue;
    use(*table.mean);
    use(*table.variance);
  }
  use(*slopes_.steps);
}

SharedStep::SharedStep(SharedSlopes& slopes, ThreadTeam& team)
    : slopes_(slopes), team_(team), muon_(slopes.products, team) {
  scratch_.reserve_zeroed(team.size(), cols_most(slopes));
  for_each_agreed([&](Matrix& matrix) { agreed_size_ += matrix.rows() * matrix.cols(); });
  lay_out();
}

void SharedStep::set_nodes(int64_t nodes) {
  nodes_ = nodes;
  lay_out();
}

// A node's part is some bands, for as many products as others', then its share of what Adam steps; behind all parts
// the totals, which are exact and of the last part.
void SharedStep::lay_out() {
  bands_.clear();
  runs_.clear();
  std::vector<Run> rows;
  int64_t rest = 0;
  for (const Table& table : slopes_.tables) {
    const Matrix& values = *table.values;
    if (table.evened_out) {
      for (const Muon::Cut& cut : Muon::cuts_of(values.rows(), values.cols()))
        bands_.push_back({&table, cut, Muon::part_of(table.mean->view(), cut), 0, 0});
      continue;
    }
    for (int64_t row = 0; row < values.rows(); ++row) rows.push_back({&table, row, 0, values.cols(), 0});
    rest += values.rows() * values.cols();
  }
  const std::vector<size_t> shares = shares_of_bands();
  parts_.assign(static_cast<size_t>(nodes_) + 1, 0);
  size_ = 0;
  size_t row = 0;
  int64_t laid = 0;  // of `rest`
  for (size_t part = 0; part < static_cast<size_t>(nodes_); ++part) {
    parts_[part] = static_cast<size_t>(size_);
    for (size_t i = shares[part]; i < shares[part + 1]; ++i) {
      bands_[i].part = part;
      bands_[i].at = size_;
      add_runs(bands_[i]);
      size_ += bands_[i].momentum.rows * bands_[i].momentum.cols;
    }
    for (; row < rows.size() && laid * nodes_ < rest * static_cast<int64_t>(part + 1); ++row) {
      runs_.push_back(rows[row]);
      runs_.back().at = size_;
      size_ += rows[row].count;
      laid += rows[row].count;
    }
  }
  changes_ = size_;
  size_ += kTotals;
  parts_.back() = static_cast<size_t>(size_);
}

// Where each part's bands begin: a band goes to the part in which the middle of its products lies.
std::vector<size_t> SharedStep::shares_of_bands() {
  double all = 0, before = 0;
  for (const Band& band : bands_) all += band.flops();
  std::vector<size_t> shares(static_cast<size_t>(nodes_) + 1, bands_.size());
  shares[0] = 0;
  size_t part = 0;
  for (size_t i = 0; i < bands_.size(); before += bands_[i++].flops()) {
    const double middle = (before + bands_[i].flops() / 2) / all * static_cast<double>(nodes_);
    while (part + 1 < static_cast<size_t>(nodes_) && middle >= static_cast<double>(part + 1)) shares[++part] = i;
  }
  return shares;
}

double SharedStep::flops_of(size_t part) const {
  double flops = 0;
  for (const Band& band : bands_)
    if (band.part == part) flops += band.flops();
  return flops;
}

void SharedStep::add_runs(const Band& band) {
  const int64_t cols = band.momentum.cols, begin = band.cut.begin;
  for (int64_t row = 0; row < band.momentum.rows; ++row)
    runs_.push_back(
        {band.table, band.cut.turned ? row : begin + row, band.cut.turned ? begin : 0, cols, band.at + row * cols});
}

template <typename Use>
void SharedStep::share_runs(const Use& use) {
  team_.run([&](int32_t member) {
    const auto count = static_cast<int64_t>(runs_.size());
    for (int64_t i = count * member / team_.size(); i < count * (member + 1) / team_.size(); ++i)
      use(runs_[static_cast<size_t>(i)], member);
  });
}

void SharedStep::bring(std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == size_);
  int64_t in_use = 0;
  for (const Table& table : slopes_.tables) in_use += table.values->rows() * table.values->cols();
  STREAMVEC_CHECK_EQ(changes_, in_use);  // no table has grown
  under_way_ = true;
  const bool some = slopes_.pairs > 0;
  share_runs([&](const Run& run, int32_t) {
    float* to = values.data() + run.at;
    if (some) {
      std::copy_n(run.table->slopes->row(run.row) + run.col, run.count, to);
    } else {
      std::fill_n(to, run.count, 0.0f);
    }
  });
  const auto sums = values.subspan(static_cast<size_t>(changes_));
  sums[0] = static_cast<float>(slopes_.pairs);
  sums[1] = static_cast<float>(slopes_.pairs * slopes_.rate);
}

void SharedStep::make_part(size_t part, std::span<float> means) {
  STREAMVEC_CHECK(under_way_);
  forget_others(part);
  keep_momentum(part);
  std::vector<Muon::Band> bands;
  for (const Band& band : bands_) {
    if (band.part != part) continue;
    float* slopes = means.data() + (band.at - static_cast<int64_t>(parts_[part]));
    bands.push_back(
        {band.momentum, {slopes, band.momentum.rows, band.momentum.cols, band.momentum.cols}, band.cut.turned});
  }
  muon_.even_out(bands);
}

// What others step has no momentum here: so it begins anew with whoever has it next, here or in a checkpoint.
void SharedStep::forget_others(size_t part) {
  if (std::exchange(own_, {nodes_, part}) == std::pair{nodes_, part}) return;
  for (const Band& band : bands_)
    for (int64_t row = 0; row < band.momentum.rows && band.part != part; ++row)
      std::fill_n(band.momentum.row(row), band.momentum.cols, 0.0f);
}

void SharedStep::keep_momentum(size_t part) {
  made_part_ = part;
  momentum_before_.clear();
  for (const Band& band : bands_) {
    if (band.part != part) continue;
    const MatrixView<float>& momentum = band.momentum;
    for (int64_t row = 0; row < momentum.rows; ++row)
      momentum_before_.insert(momentum_before_.end(), momentum.row(row), momentum.row(row) + momentum.cols);
  }
}

void SharedStep::give_momentum_back() {
  const float* from = momentum_before_.data();
  for (const Band& band : bands_) {
    if (momentum_before_.empty() || band.part != made_part_) continue;
    const MatrixView<float>& momentum = band.momentum;
    for (int64_t row = 0; row < momentum.rows; ++row, from += momentum.cols)
      std::copy_n(from, momentum.cols, momentum.row(row));
  }
  momentum_before_.clear();
}

void SharedStep::take(std::span<const float> means, std::span<const float>) {
  STREAMVEC_CHECK(static_cast<int64_t>(means.size()) == size_ && under_way_);
  const auto sums = means.subspan(static_cast<size_t>(changes_));
  under_way_ = false;
  if (!(sums[0] > 0)) return give_momentum_back();  // nobody had a batch
  *slopes_.steps->row(0) = std::min(*slopes_.steps->row(0) + 1, 1e6f);
  const double pairs = double{sums[0]} * static_cast<double>(nodes_);
  const double rate = double{sums[1]} / double{sums[0]} * std::sqrt(pairs / slopes_.batch);
  const Totals totals{sums[0], rate};
  share_runs([&](const Run& run, int32_t member) { take_run(run, means, totals, scratch_.row(member)); });
  momentum_before_.clear();
  slopes_.pairs = 0;
}

void SharedStep::take_run(const Run& run, std::span<const float> means, const Totals& totals, float* scratch) {
  const Table& table = *run.table;
  const auto count = static_cast<int32_t>(run.count);
  const auto rate = static_cast<float>(totals.rate);
  const float* mean = means.data() + run.at;
  float *values = table.values->row(run.row) + run.col, *slopes = table.slopes->row(run.row) + run.col;
  std::fill_n(slopes, run.count, 0.0f);
  if (table.evened_out) {
    if (run.col == 0 && run.count % Matrix::kRowMultiple == 0) return add_scaled(mean, rate, count, values);
    for (int64_t k = 0; k < run.count; ++k) values[k] += rate * mean[k];  // its neighbours are another thread's
    return;
  }
  const auto of_mean_loss = static_cast<float>(SharedSlopes::kUnit / totals.pairs);
  std::transform(mean, mean + run.count, scratch, [=](float slope) { return of_mean_loss * slope; });
  std::fill(scratch + run.count, scratch + round_up(count, Matrix::kRowMultiple), 0.0f);
  if (!std::isfinite(mean_square(scratch, count))) return;
  adam_step(scratch, slopes_.adam_share * rate, static_cast<int64_t>(*slopes_.steps->row(0)), AdamRates{}, count,
            table.mean->row(run.row), table.variance->row(run.row), values);
}

void SharedStep::undo() {
  if (!std::exchange(under_way_, false)) return;
  give_momentum_back();
}

void SharedStep::copy_agreed(std::span<float> values) {
  STREAMVEC_CHECK(static_cast<int64_t>(values.size()) == agreed_size() && !under_way_);
  auto to = values.begin();
  for_each_agreed([&](Matrix& matrix) {
    for (int64_t row = 0; row < matrix.rows(); ++row) to = std::copy_n(matrix.row(row), matrix.cols(), to);
  });
}

void SharedStep::adopt(std::span<const float> agreed) {
  STREAMVEC_CHECK(static_cast<int64_t>(agreed.size()) == agreed_size());
  STREAMVEC_CHECK(under_way_ || slopes_.pairs == 0);
  auto from = agreed.begin();
  for_each_agreed([&](Matrix& matrix) {
    for (int64_t row = 0; row < matrix.rows(); ++row, from += matrix.cols())
      std::copy_n(from, matrix.cols(), matrix.row(row));
  });
  clear_slopes();
  momentum_before_.clear();
  under_way_ = false;
}

// What this node brought is in what the others have taken.
void SharedStep::clear_slopes() {
  for (const Run& run : runs_) std::fill_n(run.table->slopes->row(run.row) + run.col, run.count, 0.0f);
  slopes_.pairs = 0;
}

}  // namespace streamvec
