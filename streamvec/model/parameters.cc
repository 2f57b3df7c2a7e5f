#include "streamvec/model/parameters.h"

#include <algorithm>
#include <string>

#include "streamvec/core/memory.h"
#include "streamvec/core/random.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/model/first_row.h"

namespace streamvec {
namespace {

constexpr int64_t kManyRows = 20'000;  // fewer are drawn before another thread has begun

}  // namespace

Result<Table> Table::make(int64_t rows, int64_t dim, int64_t rows_max, OptimizerKind optimizer) {
  Table table;
  STREAMVEC_ASSIGN_OR_RETURN(table.rows, Matrix::make(rows, dim, rows_max));
  STREAMVEC_ASSIGN_OR_RETURN(table.optimizer, make_optimizer(optimizer, rows, dim, rows_max));
  return table;
}

void Table::grow(int64_t count) {
  rows.grow(count);
  optimizer->grow(count);
}

Status Parameters::check_memory(const Options& options) {
  const int64_t stride = (options.dim + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple;
  const double kept = options.optimizer == OptimizerKind::kAdam ? 3 : options.glove ? 2 : 1;  // tables of a side
  return streamvec::check_memory(
      "vectors of " + std::to_string(options.rows) + " words and " + std::to_string(options.dim) + " values",
      2 * kept * sizeof(float) * static_cast<double>(options.rows) * static_cast<double>(stride),
      "a smaller --dim or --vocab-max, or a larger --min-count");
}

Result<Parameters> Parameters::make(const Options& options) {
  Parameters parameters;
  parameters.options = options;
  STREAMVEC_ASSIGN_OR_RETURN(parameters.input,
                             Table::make(options.rows, options.dim, options.rows_max, options.optimizer));
  STREAMVEC_ASSIGN_OR_RETURN(parameters.output,
                             Table::make(options.rows, options.dim, options.rows_max, options.optimizer));
  if (options.glove) {
    STREAMVEC_ASSIGN_OR_RETURN(parameters.glove, GloveTables::make(options.rows, options.dim, options.rows_max));
  }
  if (options.optimizer == OptimizerKind::kSgd) {
    parameters.hot_input = HotSlots(options.threads, parameters.input.rows);
    parameters.hot_output = HotSlots(options.threads, parameters.output.rows);
  }
  parameters.draw_rows();
  return parameters;
}

// By all threads: most of it is memory that is touched for the first time.
void Parameters::draw_rows() {
  ThreadTeam team(options.rows >= kManyRows ? std::max(options.threads, 1) : 1);
  team.run([&](int32_t member) {
    const int64_t end = options.rows * (member + 1) / team.size();
    for (int64_t i = options.rows * member / team.size(); i < end; ++i) draw_row(i, i);
  });
}

void Parameters::grow(int64_t rows) {
  const int64_t before = this->rows();
  for (Table* table : {&input, &output}) table->grow(rows);
  if (glove) glove->grow(rows);
  for (int64_t i = before; i < rows; ++i) draw_row(i, i);
}

void Parameters::restart(int64_t row, uint64_t draw) {
  const std::lock_guard lock(*row_mutex_);
  if (row >= rows()) grow(row + 1);
  std::fill_n(output.rows.row(row), options.dim, 0.0f);
  for (Table* table : {&input, &output})
    for (const Optimizer::State& state : table->optimizer->states())
      std::fill_n(state.values->row(row), state.values->cols(), 0.0f);
  if (glove) glove->restart(static_cast<Slot>(row));
  draw_row(row, draw);
  for (HotSlots* hot : {&hot_input, &hot_output}) hot->restart(row);
  put_on_card(row);
}

void Parameters::put_on_card(int64_t row) {
  // An error is told by the next step.
  if (card != nullptr) (void)card->put_row(row, input.rows.view().row_span(row), output.rows.view().row_span(row));
}

Status Parameters::fetch_rows() {
  if (card == nullptr) return {};
  const std::lock_guard lock(*row_mutex_);
  STREAMVEC_RETURN_IF_ERROR(card->get(input.rows.view(), output.rows.view()));
  if (options.optimizer != OptimizerKind::kAdagrad) return {};
  return card->get_sums(adagrad_sums(input).view(), adagrad_sums(output).view());
}

Status Parameters::put_rows() {
  STREAMVEC_RETURN_IF_ERROR(card->put(input.rows.view(), output.rows.view()));
  if (options.optimizer != OptimizerKind::kAdagrad) return {};
  return card->put_sums(adagrad_sums(input).view(), adagrad_sums(output).view());
}

void Parameters::set_word(Slot slot, std::string_view word) {
  if (subwords) subwords->set_word(slot, word);
  if (rbsg != nullptr) rbsg->set_word(slot, word);
  if (hybrid == nullptr) return;
  hybrid->set_word(slot, word);
  const std::lock_guard lock(*row_mutex_);
  if (!hybrid->start_row(slot, input.rows.row(slot))) return;
  hot_input.restart(slot);
  note_changed(std::span(&slot, 1), {});  // to the others of a cluster it is as if it had been trained
  put_on_card(slot);
}

void Parameters::draw_row(int64_t row, uint64_t draw) {
  if (!options.glove)
    return draw_first_row(options.seed, draw, {input.rows.row(row), static_cast<size_t>(options.dim)});
  const float scale = 1.0f / static_cast<float>(options.dim);
  Random random(mix(options.seed, draw));
  for (Table* table : {&input, &output}) {
    float* values = table->rows.row(row);
    for (int64_t d = 0; d < options.dim; ++d) values[d] = (random.uniform() - 0.5f) * scale;
  }
}

}  // namespace streamvec
