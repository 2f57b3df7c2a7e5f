#include "streamvec/model/parameters.h"

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

Result<Table> make_table(const Parameters::Options& options) {
  Table table;
  STREAMVEC_ASSIGN_OR_RETURN(table.rows, Matrix::make(options.rows, options.dim, options.rows_max));
  STREAMVEC_ASSIGN_OR_RETURN(table.optimizer,
                             make_optimizer(options.optimizer, options.rows, options.dim, options.rows_max));
  return table;
}

}  // namespace

Result<Parameters> Parameters::make(const Options& options) {
  Parameters parameters;
  parameters.options = options;
  STREAMVEC_ASSIGN_OR_RETURN(parameters.input, make_table(options));
  STREAMVEC_ASSIGN_OR_RETURN(parameters.output, make_table(options));
  parameters.draw_rows(0, options.rows);
  return parameters;
}

void Parameters::grow(int64_t rows) {
  const int64_t before = this->rows();
  for (Table* table : {&input, &output}) {
    table->rows.grow(rows);
    table->optimizer->grow(rows);
  }
  draw_rows(before, rows);
}

void Parameters::draw_rows(int64_t begin, int64_t end) {
  const float scale = 1.0f / static_cast<float>(options.dim);
  for (int64_t i = begin; i < end; ++i) {
    Random random(mix(options.seed, i));
    float* row = input.rows.row(i);
    for (int64_t d = 0; d < options.dim; ++d) row[d] = (random.uniform() - 0.5f) * scale;
  }
}

}  // namespace streamvec
