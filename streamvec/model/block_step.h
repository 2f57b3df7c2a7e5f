// One pair block from slots to stepped rows: row pointers, weights, the kernel, and the optimiser behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/step_share.h"
#include "streamvec/model/hot_rows.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/step_sums.h"
#include "streamvec/model/window_plan.h"
#include "streamvec/vocab/row_pace.h"

namespace streamvec {

// PairBlock::step_max of plain SGD, which takes a block's pairs at one point instead of one after the other, so that a
// row which meets many of them can be carried too far. docs/BENCHMARKS.md (Choosing the defaults) has how it was found.
constexpr float kSgdStepMax = 0.25f;

// Filled by a model, then run. Outputs are rows of the output table: positives first, then negatives.
class BlockStep {
 public:
  BlockStep(Parameters& parameters, std::unique_ptr<PairKernel> kernel)
      : parameters_(parameters),
        kernel_(std::move(kernel)),
        hot_inputs_(parameters.hot_input, parameters.input.rows),
        hot_outputs_(parameters.hot_output, parameters.output.rows) {}

  // From the next block on rows of the tables have these paces, where plain SGD takes the steps: optimisers have their
  // own. `pace` must stay as long as blocks are run with it.
  void set_pace(const RowPace& pace) {
    pace_ = pace.any() && parameters_.options.optimizer == OptimizerKind::kSgd ? &pace : nullptr;
  }
  // Begins a block with `inputs` columns of weight and at most outputs_max outputs. Rows of weight are given out zeroed
  // and stay where they are until the next begin().
  void begin(size_t inputs, size_t outputs_max);
  // A word that did occur, with weight only in columns [begin, end) of the row returned.
  float* add_positive(Slot slot, int32_t band_begin, int32_t band_end);
  // A negative with the block's common weights (common_weights()), or with its own in the row returned.
  void add_negative(Slot slot);
  float* add_negative_with_weights(Slot slot);
  float* common_weights() { return weights_.data(); }

  // Inputs are rows of the input table.
  PairBlockResult run(std::span<const Slot> inputs, float lr);
  // Inputs are rows of the caller's; the slope at each is added to `slopes`, not scaled by any rate.
  PairBlockResult run(std::span<const float* const> inputs, float* const* slopes, float lr);

  // The same for plain SGD: the outputs take their steps in place, and what each input should move (the rate is in it,
  // and it is cut as rows' steps are) is added to `steps`, which may be the inputs themselves. REQUIRES: kSgd.
  PairBlockResult run_sgd(std::span<const float* const> inputs, float* const* steps, float lr);

  // A batch of several blocks, which all find rows as they were when it began; each row takes one step, at its end.
  // Between them: a block of each plan, filled in their order and added. Each row is cut by itself, whatever else the
  // batch names; one that it names more than kNamedOften times moves no further than as many. Other threads' batches
  // know nothing of that step, and half of them count like this one (docs/BENCHMARKS.md, The experiment of 2018).
  void begin_batch(std::span<const WindowPlan> plans, int32_t threads);
  PairBlockResult add_to_batch(std::span<const Slot> inputs, float lr);
  void end_batch(float lr);

  // Rows of both tables that the next block will need; fetched while this one runs.
  void expect(std::span<const Slot> inputs, std::span<const Slot> outputs);
  void expect_rows(std::span<float* const> rows);  // rows of other tables, likewise

  // What this thread has kept to itself goes to the tables. REQUIRES: no block is begun.
  void settle();

  // Of the block that was filled (kNamedOften): for steps that are not cut by themselves.
  float step_share() const { return step_share_of(outputs().first(positives_), outputs()); }
  std::span<const Slot> outputs() const { return std::span(outputs_).first(count_); }
  std::string kernel_name() const { return kernel_->name(); }

 private:
  void add_output(Slot slot, const float* weights) {
    outputs_[count_] = slot;
    y_[count_] = output_row(slot);
    output_weights_[count_++] = weights;
  }
  // The rows to train on, for a block; each call is a use.
  float* input_row(Slot slot) {
    if (hot_inputs_.use(slot)) [[unlikely]]
      renew_input(slot);
    return hot_inputs_.row(slot);
  }
  float* output_row(Slot slot) {
    if (hot_outputs_.use(slot)) [[unlikely]]
      renew_output(slot);
    return hot_outputs_.row(slot);
  }
  void renew_input(Slot slot);
  void renew_output(Slot slot);
  float* new_weights();
  PairBlock block_of(const float* const* x, float* const* dx, float* const* dy, float scale, float step_max,
                     bool paced = false) const;
  // `count` zeroed rows of gradient.
  void zeroed_rows(size_t count, AlignedBuffer<float>& memory, std::vector<float*>& rows) const;
  static void step_rows(std::span<const Slot> slots, const std::vector<float*>& gradients, float lr,
                        Optimizer& optimizer, const std::vector<float*>& rows);
  void note_changed(std::span<const Slot> inputs);  // what is no copy; merging tells of the others
  void find_paces(std::span<const Slot> inputs);
  void find_sums(std::span<const Slot> slots, StepSums& sums, std::vector<float*>& rows, std::vector<float>& longest);

  Parameters& parameters_;
  std::unique_ptr<PairKernel> kernel_;
  HotRows hot_inputs_, hot_outputs_;
  size_t inputs_ = 0, columns_ = 0, weights_used_ = 0;
  size_t positives_ = 0, count_ = 0;  // outputs so far: how many of what follows is in use
  std::vector<Slot> outputs_;
  std::vector<float*> y_;
  std::vector<const float*> output_weights_;
  std::vector<int32_t> band_begin_, band_end_;  // of the positives
  std::vector<float*> x_;
  std::vector<const float*> upcoming_;
  AlignedBuffer<float> weights_, x_memory_, y_memory_;
  std::vector<float*> x_steps_, y_steps_;  // gradients, where an optimiser follows
  const RowPace* pace_ = nullptr;
  std::vector<float> input_pace_, output_pace_;  // of the block's rows
  StepSums input_sums_, output_sums_;            // of a batch
  std::vector<float> input_max_, output_max_;    // of a batch's block
  int32_t batches_at_once_ = 1;                  // as rows are cut by
};

}  // namespace streamvec
