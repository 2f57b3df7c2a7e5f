#include "streamvec/model/sharded_sgns.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/skip_gram_weights.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

// Some blocks, with the rows that they need under slots of their own.
class Section {
 public:
  Section(const WindowOptions& windows, Parameters parameters, std::unique_ptr<PairKernel> kernel)
      : parameters_(std::make_unique<Parameters>(std::move(parameters))),
        weights_(windows),
        block_(*parameters_, std::move(kernel)) {}

  // The next blocks of the text; false when there are none.
  bool plan(WindowPlanner& planner, int32_t blocks, const RowPace& pace) {
    plans_.resize(static_cast<size_t>(blocks));
    size_t count = 0;
    while (count < plans_.size() && planner.next(plans_[count])) ++count;
    plans_.resize(count);
    rows_.clear();
    places_.clear();
    local_.clear();
    words_ = 0;
    for (WindowPlan& plan : plans_) name_rows(plan);
    for (const auto& [slot, place] : local_) pace_.take(place, pace, slot);
    block_.set_pace(pace_);
    if (static_cast<int64_t>(local_.size()) > parameters_->rows())
      parameters_->grow(static_cast<int64_t>(local_.size()));
    return count > 0;
  }
  const std::vector<uint32_t>& rows() const { return rows_; }

  void set_rows(std::span<const float> values) {
    base_.assign(values.begin(), values.end());
    const auto dim = static_cast<size_t>(parameters_->dim());
    for (size_t i = 0; i < rows_.size(); ++i) std::copy_n(base_.data() + i * dim, dim, row(rows_[i]));
  }

  // What `before` has changed and the rows that came do not have yet.
  void add_changes(const Section& before) {
    const auto dim = static_cast<size_t>(parameters_->dim());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto found = before.places_.find(rows_[i]);
      if (found == before.places_.end()) continue;
      const float* const change = before.changes_.data() + found->second * dim;
      float* const to = row(rows_[i]);
      for (size_t k = 0; k < dim; ++k) {
        to[k] += change[k];
        base_[i * dim + k] = to[k];
      }
    }
  }

  void train(float lr, StepStats& stats) {
    for (const WindowPlan& plan : plans_) {
      weights_.fill(plan, block_);
      count_block(block_.run(plan.columns, lr), plan.pairs, stats);
    }
  }

  // What training has changed, times the share that is to be sent of it.
  const std::vector<float>& find_changes(const ShardedOptions& options, float lr) {
    const auto dim = static_cast<size_t>(parameters_->dim());
    const double square[2] = {mean_square_of(0), mean_square_of(1)};
    changes_.resize(base_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const float* const now = row(rows_[i]);
      const float share =
          options.share ? options.share(rows_[i], static_cast<double>(words_) * double{lr}, square[1 - rows_[i] % 2])
                        : 1;
      for (size_t k = 0; k < dim; ++k) changes_[i * dim + k] = share * (now[k] - base_[i * dim + k]);
    }
    return changes_;
  }
  std::string kernel_name() const { return block_.kernel_name(); }

 private:
  // Slots become places among the section's own; outputs are the centres and the negatives.
  void name_rows(WindowPlan& plan) {
    words_ += static_cast<int64_t>(plan.windows.size());
    for (const WindowPlan::Window& window : plan.windows)
      need(2 * static_cast<uint32_t>(plan.columns[static_cast<size_t>(window.centre)]) + 1);
    for (Slot& slot : plan.columns) {
      need(2 * static_cast<uint32_t>(slot));
      slot = local(slot);
    }
    for (Slot& slot : plan.negatives) {
      need(2 * static_cast<uint32_t>(slot) + 1);
      slot = local(slot);
    }
  }
  void need(uint32_t row) {
    if (places_.emplace(row, rows_.size()).second) rows_.push_back(row);
  }
  Slot local(Slot slot) { return local_.emplace(slot, static_cast<Slot>(local_.size())).first->second; }
  float* row(uint32_t key) {
    Table& table = key % 2 == 0 ? parameters_->input : parameters_->output;
    return table.rows.row(local_.at(static_cast<Slot>(key / 2)));
  }
  double mean_square_of(uint32_t table) {
    double sum = 0;
    int64_t count = 0;
    for (const uint32_t key : rows_) {
      if (key % 2 != table) continue;
      sum += double{mean_square(row(key), static_cast<int32_t>(parameters_->dim()))} *
             static_cast<double>(parameters_->dim());
      ++count;
    }
    return count > 0 ? sum / static_cast<double>(count) : 0;
  }

  std::unique_ptr<Parameters> parameters_;  // of the section's slots
  SkipGramWeights weights_;
  BlockStep block_;
  std::vector<WindowPlan> plans_;
  std::vector<uint32_t> rows_;
  std::unordered_map<uint32_t, size_t> places_;  // of rows_
  std::unordered_map<Slot, Slot> local_;
  RowPace pace_;  // by place
  int64_t words_ = 0;
  std::vector<float> base_, changes_;  // by rows_
};

class ShardedSgnsWorker final : public ModelWorker {
 public:
  ShardedSgnsWorker(const ShardedOptions& options, const WindowOptions& windows, std::unique_ptr<Section> first,
                    std::unique_ptr<Section> second, RemoteRows& remote)
      : options_(options), planner_(windows), now_(std::move(first)), next_(std::move(second)), remote_(remote) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    if (!failed_.ok()) return stats;
    planner_.begin(chunk, tables, random);
    bool more = now_->plan(planner_, options_.blocks, tables.pace), first = true;
    uint64_t question = more ? remote_.ask(now_->rows()) : 0;
    while (more) {
      failed_ = remote_.await(question, values_);
      if (!failed_.ok()) return stats;
      now_->set_rows(values_);
      if (!first) now_->add_changes(*next_);  // which holds the section before
      first = false;
      std::swap(now_, next_);
      more = now_->plan(planner_, options_.blocks, tables.pace);
      if (more) question = remote_.ask(now_->rows());
      next_->train(lr, stats);
      remote_.add(next_->rows(), next_->find_changes(options_, lr));
    }
    return stats;
  }

  bool failed() const override { return !failed_.ok(); }
  Result<StepStats> settle() override {
    STREAMVEC_RETURN_IF_ERROR(failed_);
    return StepStats();
  }
  std::string kernel_name() const override { return now_->kernel_name(); }

 private:
  const ShardedOptions options_;
  WindowPlanner planner_;
  std::unique_ptr<Section> now_, next_;
  RemoteRows& remote_;
  std::vector<float> values_;
  Status failed_;
};

Result<std::unique_ptr<Section>> make_section(const ShardedOptions& options, const WindowOptions& windows) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<PairKernel> kernel, make_pair_kernel(options.model.kernel));
  Parameters::Options shape;
  shape.dim = options.dim;
  shape.rows_max = int64_t{options.blocks} * (windows.centres + 2 * int64_t{windows.window} + windows.negatives_shared);
  STREAMVEC_ASSIGN_OR_RETURN(Parameters parameters, Parameters::make(shape));
  return std::make_unique<Section>(windows, std::move(parameters), std::move(kernel));
}

}  // namespace

Result<std::unique_ptr<ModelWorker>> make_sharded_sgns_worker(const ShardedOptions& options, RemoteRows& rows) {
  WindowOptions windows = options.model.windows;
  if (options.model.batch > 0) windows.centres = options.model.batch;
  windows = settled(windows);
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Section> first, make_section(options, windows));
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Section> second, make_section(options, windows));
  return std::unique_ptr<ModelWorker>(
      std::make_unique<ShardedSgnsWorker>(options, windows, std::move(first), std::move(second), rows));
}

}  // namespace streamvec
