#include "streamvec/model/block_step.h"

#include <algorithm>
#include <cstring>

namespace streamvec {
void BlockStep::begin(size_t inputs, size_t outputs_max) {
  inputs_ = inputs;
  columns_ = static_cast<size_t>(round_up(static_cast<int32_t>(inputs), 16));
  weights_.reserve((outputs_max + 1) * columns_);
  weights_used_ = positives_ = count_ = 0;
  if (outputs_.size() < outputs_max) {
    outputs_.resize(outputs_max);
    y_.resize(outputs_max);
    output_weights_.resize(outputs_max);
    band_begin_.resize(outputs_max);
    band_end_.resize(outputs_max);
  }
  upcoming_.clear();
  hot_inputs_.notice_restarts();
  hot_outputs_.notice_restarts();
  new_weights();  // the first row is the common one
}

float* BlockStep::new_weights() {
  float* row = weights_.data() + weights_used_ * columns_;
  for (size_t j = 0; j < columns_; j += 16) std::memset(row + j, 0, 16 * sizeof(float));  // no call for so little
  ++weights_used_;
  return row;
}

float* BlockStep::add_positive(Slot slot, int32_t band_begin, int32_t band_end) {
  STREAMVEC_CHECK_EQ(positives_, count_);  // positives come first
  band_begin_[positives_] = band_begin;
  band_end_[positives_++] = band_end;
  float* weights = new_weights();
  add_output(slot, weights);
  return weights;
}

void BlockStep::add_negative(Slot slot) {
  add_output(slot, common_weights());
}

float* BlockStep::add_negative_with_weights(Slot slot) {
  float* weights = new_weights();
  add_output(slot, weights);
  return weights;
}

void BlockStep::renew_input(Slot slot) {
  const RowLocks::Guard guard(parameters_.locks, {&slot, 1}, {});
  if (hot_inputs_.renew(slot) > 0) parameters_.note_changed({&slot, 1}, {});
}

void BlockStep::renew_output(Slot slot) {
  const RowLocks::Guard guard(parameters_.locks, {}, {&slot, 1});
  if (hot_outputs_.renew(slot) > 0) parameters_.note_changed({}, {&slot, 1});
}

void BlockStep::settle() {
  hot_inputs_.settle([this](Slot slot) { renew_input(slot); });
  hot_outputs_.settle([this](Slot slot) { renew_output(slot); });
}

// Copies are in this core's cache most of the time; asking for them would cost more than it brings.
void BlockStep::expect(std::span<const Slot> inputs, std::span<const Slot> outputs) {
  size_t count = upcoming_.size();
  upcoming_.resize(count + inputs.size() + outputs.size());
  for (Slot slot : outputs) {
    upcoming_[count] = parameters_.output.rows.row(slot);
    count += hot_outputs_.wants_row(slot);
  }
  for (Slot slot : inputs) {
    upcoming_[count] = parameters_.input.rows.row(slot);
    count += hot_inputs_.wants_row(slot);
  }
  upcoming_.resize(count);
}

void BlockStep::note_changed(std::span<const Slot> inputs) {
  if (parameters_.changed == nullptr) return;
  for (const Slot slot : inputs)
    if (!hot_inputs_.holds(slot)) parameters_.note_changed({&slot, 1}, {});
  for (const Slot slot : outputs())
    if (!hot_outputs_.holds(slot)) parameters_.note_changed({}, {&slot, 1});
}

void BlockStep::expect_rows(std::span<float* const> rows) {
  upcoming_.insert(upcoming_.end(), rows.begin(), rows.end());
}

PairBlockResult BlockStep::run(std::span<const Slot> inputs, float lr) {
  STREAMVEC_CHECK_EQ(inputs.size(), inputs_);
  parameters_.look_in();
  x_.resize(inputs_);
  for (size_t j = 0; j < inputs_; ++j) x_[j] = input_row(inputs[j]);
  const RowLocks::Guard guard(parameters_.locks, inputs, outputs());
  if (parameters_.options.optimizer == OptimizerKind::kSgd) {
    if (pace_ != nullptr) find_paces(inputs);
    const PairBlockResult result =
        kernel_->step(block_of(x_.data(), x_.data(), y_.data(), lr, kSgdStepMax * step_share(), pace_ != nullptr));
    note_changed(inputs);
    return result;
  }
  zeroed_rows(inputs_, x_memory_, x_steps_);
  zeroed_rows(count_, y_memory_, y_steps_);
  const PairBlockResult result = kernel_->step(block_of(x_.data(), x_steps_.data(), y_steps_.data(), 1, 0));
  if (!result.finite) return result;
  step_rows(inputs, x_steps_, lr, *parameters_.input.optimizer, x_);
  step_rows(outputs(), y_steps_, lr, *parameters_.output.optimizer, y_);
  note_changed(inputs);
  return result;
}

PairBlockResult BlockStep::run(std::span<const float* const> inputs, float* const* slopes, float lr) {
  STREAMVEC_CHECK_EQ(inputs.size(), inputs_);
  zeroed_rows(count_, y_memory_, y_steps_);
  const PairBlockResult result = kernel_->step(block_of(inputs.data(), slopes, y_steps_.data(), 1, 0));
  if (!result.finite) return result;
  step_rows(outputs(), y_steps_, lr, *parameters_.output.optimizer, y_);
  note_changed({});
  return result;
}

PairBlockResult BlockStep::run_sgd(std::span<const float* const> inputs, float* const* steps, float lr) {
  STREAMVEC_CHECK_EQ(inputs.size(), inputs_);
  return kernel_->step(block_of(inputs.data(), steps, y_.data(), lr, kSgdStepMax * step_share()));
}

void BlockStep::begin_batch(std::span<const WindowPlan> plans, int32_t threads) {
  batches_at_once_ = std::max(threads / 2, 1);
  size_t inputs = 0, outputs = 0;
  for (const WindowPlan& plan : plans) {
    inputs += plan.columns.size();
    outputs += plan.windows.size() + plan.negatives.size();
  }
  input_sums_.begin(inputs, parameters_.input.rows.stride());
  output_sums_.begin(outputs, parameters_.output.rows.stride());
  for (const WindowPlan& plan : plans) {
    for (const Slot slot : plan.columns) input_sums_.name(slot);
    for (const WindowPlan::Window& window : plan.windows)
      output_sums_.name(plan.columns[static_cast<size_t>(window.centre)]);
    for (const Slot slot : plan.negatives) output_sums_.name(slot);
  }
}

// Where the rows' sums are, and how long a step of each may be.
void BlockStep::find_sums(std::span<const Slot> slots, StepSums& sums, std::vector<float*>& rows,
                          std::vector<float>& longest) {
  rows.resize(slots.size());
  longest.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    rows[i] = sums.row(slots[i]);
    const int32_t times = batches_at_once_ * sums.times(slots[i]);
    longest[i] = kSgdStepMax * static_cast<float>(kNamedOften) / static_cast<float>(std::max(kNamedOften, times));
  }
}

PairBlockResult BlockStep::add_to_batch(std::span<const Slot> inputs, float lr) {
  STREAMVEC_CHECK_EQ(inputs.size(), inputs_);
  parameters_.look_in();
  x_.resize(inputs_);
  for (size_t j = 0; j < inputs_; ++j) x_[j] = input_row(inputs[j]);
  find_sums(inputs, input_sums_, x_steps_, input_max_);
  find_sums(outputs(), output_sums_, y_steps_, output_max_);
  const RowLocks::Guard guard(parameters_.locks, inputs, outputs());
  const bool sgd = parameters_.options.optimizer == OptimizerKind::kSgd;
  if (sgd && pace_ != nullptr) find_paces(inputs);
  PairBlock block = block_of(x_.data(), x_steps_.data(), y_steps_.data(), sgd ? lr : 1, sgd ? kSgdStepMax : 0,
                             sgd && pace_ != nullptr);
  block.input_max = sgd ? input_max_.data() : nullptr;
  block.output_max = sgd ? output_max_.data() : nullptr;
  return kernel_->step(block);
}

void BlockStep::end_batch(float lr) {
  const bool sgd = parameters_.options.optimizer == OptimizerKind::kSgd;
  const std::span<const Slot> inputs = input_sums_.slots(), outputs = output_sums_.slots();
  for (size_t i = 0; i < inputs.size(); ++i) {
    float* row = input_row(inputs[i]);
    const RowLocks::Guard guard(parameters_.locks, {&inputs[i], 1}, {});
    parameters_.input.optimizer->step(inputs[i], input_sums_.sum(i), sgd ? 1 : lr, row);
    if (!hot_inputs_.holds(inputs[i])) parameters_.note_changed({&inputs[i], 1}, {});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    float* row = output_row(outputs[i]);
    const RowLocks::Guard guard(parameters_.locks, {}, {&outputs[i], 1});
    parameters_.output.optimizer->step(outputs[i], output_sums_.sum(i), sgd ? 1 : lr, row);
    if (!hot_outputs_.holds(outputs[i])) parameters_.note_changed({}, {&outputs[i], 1});
  }
}

void BlockStep::find_paces(std::span<const Slot> inputs) {
  input_pace_.resize(inputs.size());
  for (size_t j = 0; j < inputs.size(); ++j) input_pace_[j] = pace_->input(inputs[j]);
  output_pace_.resize(count_);
  for (size_t i = 0; i < count_; ++i) output_pace_[i] = pace_->output(outputs_[i]);
}

PairBlock BlockStep::block_of(const float* const* x, float* const* dx, float* const* dy, float scale, float step_max,
                              bool paced) const {
  PairBlock block;
  block.inputs = static_cast<int32_t>(inputs_);
  block.positives = static_cast<int32_t>(positives_);
  block.outputs = static_cast<int32_t>(count_);
  block.dim = static_cast<int32_t>(parameters_.dim());
  block.x = x;
  block.y = y_.data();
  block.weight = output_weights_.data();
  block.band_begin = band_begin_.data();
  block.band_end = band_end_.data();
  block.scale = scale;
  block.step_max = step_max;
  block.input_pace = paced ? input_pace_.data() : nullptr;
  block.output_pace = paced ? output_pace_.data() : nullptr;
  block.upcoming = upcoming_.data();
  block.upcoming_count = static_cast<int32_t>(upcoming_.size());
  block.dx = dx;
  block.dy = dy;
  return block;
}

void BlockStep::zeroed_rows(size_t count, AlignedBuffer<float>& memory, std::vector<float*>& rows) const {
  const size_t stride = static_cast<size_t>(parameters_.input.rows.stride());
  float* data = memory.reserve(count * stride);
  std::memset(data, 0, count * stride * sizeof(float));
  rows.resize(count);
  for (size_t i = 0; i < count; ++i) rows[i] = data + i * stride;
}

void BlockStep::step_rows(std::span<const Slot> slots, const std::vector<float*>& gradients, float lr,
                          Optimizer& optimizer, const std::vector<float*>& rows) {
  for (size_t i = 0; i < slots.size(); ++i) optimizer.step(slots[i], gradients[i], lr, rows[i]);
}

}  // namespace streamvec
