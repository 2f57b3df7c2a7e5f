// Continuous bag of words: the mean of the words around a centre predicts it. The slope of the mean reaches each word
// divided by their number, as calculus has it; word2vec.c leaves that division out (Irsoy et al. 2020).
#include <algorithm>
#include <cstring>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/centre_set.h"
#include "streamvec/model/model.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

class CbowWorker final : public ModelWorker {
 public:
  CbowWorker(const WindowOptions& windows, Parameters& parameters, std::unique_ptr<PairKernel> kernel)
      : windows_(windows),
        parameters_(parameters),
        dim_(static_cast<int32_t>(parameters.dim())),
        planner_(windows),
        block_(parameters, std::move(kernel)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    while (planner_.next(plan_)) run(lr, stats);
    return stats;
  }

  Result<StepStats> settle() override {
    block_.settle();
    return StepStats();
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  void run(float lr, StepStats& stats) {
    std::erase_if(plan_.windows, [](const WindowPlan::Window& window) { return window.end - window.begin < 2; });
    const size_t centres = plan_.windows.size();
    block_.begin(centres, centres + plan_.negatives.size());
    for (size_t i = 0; i < centres; ++i) {
      const int32_t column = static_cast<int32_t>(i);
      block_.add_positive(plan_.columns[plan_.windows[i].centre], column, column + 1)[i] = 1;
    }
    weigh_negatives();
    const RowLocks::Guard guard(parameters_.locks, plan_.columns, block_.outputs());
    take_means();
    if (parameters_.options.optimizer == OptimizerKind::kSgd) lr *= block_.step_share();  // its steps have no cut
    const PairBlockResult result = block_.run(means_, mean_slopes_.data(), lr);
    if (!count_block(result, static_cast<int64_t>(centres), stats)) return;
    step_inputs(lr);
    parameters_.note_changed(plan_.columns, {});
  }

  void weigh_negatives() {
    const float share = static_cast<float>(windows_.negatives) / static_cast<float>(windows_.negatives_shared);
    const size_t centres = plan_.windows.size();
    std::fill_n(block_.common_weights(), centres, share);
    centres_.fill(plan_);
    for (Slot negative : plan_.negatives) {
      if (!centres_.may_hold(negative)) {
        block_.add_negative(negative);
        continue;
      }
      float* weights = block_.add_negative_with_weights(negative);
      for (size_t i = 0; i < centres; ++i) weights[i] = plan_.columns[plan_.windows[i].centre] == negative ? 0 : share;
    }
  }

  void take_means() {
    const size_t stride = static_cast<size_t>(parameters_.input.rows.stride());
    const size_t centres = plan_.windows.size(), columns = plan_.columns.size();
    float* memory = memory_.reserve((2 * centres + columns) * stride);
    std::memset(memory, 0, (2 * centres + columns) * stride * sizeof(float));
    means_.resize(centres);
    mean_slopes_.resize(centres);
    for (size_t i = 0; i < centres; ++i) {
      float* mean = memory + i * stride;
      for_context(plan_.windows[i], [&](int32_t column, float share) {
        add_scaled(parameters_.input.rows.row(plan_.columns[column]), share, dim_, mean);
      });
      means_[i] = mean;
      mean_slopes_[i] = memory + (centres + i) * stride;
    }
    column_slopes_ = memory + 2 * centres * stride;
  }

  void step_inputs(float lr) {
    const size_t stride = static_cast<size_t>(parameters_.input.rows.stride());
    for (size_t i = 0; i < plan_.windows.size(); ++i)
      for_context(plan_.windows[i], [&](int32_t column, float share) {
        add_scaled(mean_slopes_[i], share, dim_, column_slopes_ + column * stride);
      });
    Table& table = parameters_.input;
    for (size_t j = 0; j < plan_.columns.size(); ++j)
      table.optimizer->step(plan_.columns[j], column_slopes_ + j * stride, lr, table.rows.row(plan_.columns[j]));
  }

  // Calls f(column, 1 / how many) for each word that a centre looks at.
  template <typename F>
  static void for_context(const WindowPlan::Window& window, F f) {
    const float share = 1.0f / static_cast<float>(window.end - window.begin - 1);
    for (int32_t column = window.begin; column < window.end; ++column)
      if (column != window.centre) f(column, share);
  }

  const WindowOptions windows_;
  Parameters& parameters_;
  const int32_t dim_;
  WindowPlanner planner_;
  BlockStep block_;
  WindowPlan plan_;
  CentreSet centres_;
  AlignedBuffer<float> memory_;  // means, slopes at the means, slopes at the columns
  std::vector<const float*> means_;
  std::vector<float*> mean_slopes_;
  float* column_slopes_ = nullptr;
};

}  // namespace

std::unique_ptr<ModelWorker> make_cbow_worker(const WindowOptions& windows, Parameters& parameters,
                                              std::unique_ptr<PairKernel> kernel) {
  return std::make_unique<CbowWorker>(windows, parameters, std::move(kernel));
}

}  // namespace streamvec
