#include "streamvec/model/glove.h"

#include <algorithm>
#include <span>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/model.h"
#include "streamvec/model/workers.h"

namespace streamvec {

Result<GloveTables> GloveTables::make(int64_t rows, int64_t dim, int64_t rows_max) {
  GloveTables tables;
  for (int side = 0; side < 2; ++side) {
    STREAMVEC_ASSIGN_OR_RETURN(tables.sums[side], Matrix::make(rows, dim, rows_max));
    STREAMVEC_ASSIGN_OR_RETURN(tables.biases[side], Matrix::make(rows, 2, rows_max));
  }
  return tables;
}

void GloveTables::grow(int64_t rows) {
  for (int side = 0; side < 2; ++side) {
    sums[side].grow(rows);
    biases[side].grow(rows);
  }
}

void GloveTables::restart(Slot row) {
  for (int side = 0; side < 2; ++side) {
    std::fill_n(sums[side].row(row), sums[side].cols(), 0.0f);
    std::fill_n(biases[side].row(row), biases[side].cols(), 0.0f);
  }
  if (cells) cells->forget(row);
}

Result<Matrix> glove_vectors(Parameters& parameters, int64_t rows) {
  const auto dim = static_cast<int32_t>(parameters.dim());
  STREAMVEC_ASSIGN_OR_RETURN(Matrix vectors, Matrix::make(rows, dim));
  for (Slot slot = 0; slot < rows; ++slot) {
    const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), std::span(&slot, 1));
    for (Table* table : {&parameters.input, &parameters.output})
      add_scaled(table->rows.row(slot), 1, dim, vectors.row(slot));
  }
  return vectors;
}

namespace {

// Without the number of rows, which grows while threads train.
MatrixView<float> rows_of(Matrix& table) {
  return {table.row(0), 0, table.cols(), table.stride()};
}

GloveSide side_of(Parameters& parameters, int side) {
  Table& table = side == 0 ? parameters.input : parameters.output;
  return {rows_of(table.rows), rows_of(parameters.glove->sums[side]), rows_of(parameters.glove->biases[side])};
}

void shuffle(CellStore::Cells& cells, Random& random) {
  for (size_t i = cells.places.size(); i > 1; --i) {
    const size_t other = random.below(static_cast<uint32_t>(i));
    std::swap(cells.places[i - 1], cells.places[other]);
    std::swap(cells.x[i - 1], cells.x[other]);
  }
}

}  // namespace

Result<StepStats> GloveTrainer::step(const CellStore& store, const CellStore::Tile& tile, float lr, Random& random) {
  STREAMVEC_RETURN_IF_ERROR(store.read(tile, read_));
  shuffle(read_, random);
  log_x_.resize(read_.x.size());
  weights_.resize(read_.x.size());
  const auto count = static_cast<int64_t>(read_.places.size());
  glove_weights(read_.x.data(), count, parameters_.glove->weighting, log_x_.data(), weights_.data());
  StepStats total;
  for (const bool turned : {false, true}) {
    cells_.clear();
    for (size_t i = 0; i < read_.places.size(); ++i) {
      const Slot low = tile.first_low + (read_.places[i] >> 8), high = tile.first_high + (read_.places[i] & 255);
      if (turned && low == high) continue;
      cells_.push_back({turned ? high : low, turned ? low : high, log_x_[i], weights_[i]});
    }
    const StepStats stats = step_cells(lr);
    total.pairs += stats.pairs;
    total.loss += stats.loss;
    total.refused += stats.refused;
  }
  return total;
}

StepStats GloveTrainer::step(const std::vector<CellTable::Drawn>& cells, float lr) {
  const size_t padded = (cells.size() + 15) / 16 * 16;
  x_.assign(padded, 1.0f);
  log_x_.resize(padded);
  weights_.resize(padded);
  for (size_t i = 0; i < cells.size(); ++i) x_[i] = cells[i].x;
  glove_weights(x_.data(), static_cast<int64_t>(cells.size()), parameters_.glove->weighting, log_x_.data(),
                weights_.data());
  cells_.clear();
  for (size_t i = 0; i < cells.size(); ++i) cells_.push_back({cells[i].word, cells[i].context, log_x_[i], weights_[i]});
  return step_cells(lr);
}

StepStats GloveTrainer::step_cells(float lr) {
  const GloveSide words = side_of(parameters_, 0), contexts = side_of(parameters_, 1);
  // Where rows are locked, each cell is a block of its own.
  const size_t at_once = RowLocks::kLocking ? 1 : std::max<size_t>(1, cells_.size());
  StepStats total;
  for (size_t i = 0; i < cells_.size(); i += at_once) {
    const RowLocks::Guard guard(parameters_.locks, std::span(&cells_[i].word, 1), std::span(&cells_[i].context, 1));
    const GloveStats stats = glove_step(kernel_, std::span(cells_).subspan(i, at_once), lr, words, contexts);
    total.loss += stats.cost;
    total.refused += stats.refused;
  }
  total.pairs = static_cast<int64_t>(cells_.size()) - total.refused;
  total.slope = total.loss;
  return total;
}

namespace {

class GloveWorker final : public ModelWorker {
 public:
  GloveWorker(Parameters& parameters, GloveKernel kernel)
      : parameters_(parameters), kernel_(kernel), trainer_(parameters, kernel) {}

  StepStats step(const Chunk& chunk, const SamplingTables& /*tables*/, float lr, Random& random) override {
    GloveTables& glove = *parameters_.glove;
    int64_t pairs = 0;
    if (glove.counts_chunks)
      pairs = glove.cells->add(chunk, 0);
    else
      visit_pairs(chunk, glove.cells->window(), [&](CellKey, uint64_t) { ++pairs; });
    glove.cells->draw(pairs, random, drawn_);
    return trainer_.step(drawn_, lr);
  }
  std::string kernel_name() const override { return glove_kernel_name(kernel_); }

 private:
  Parameters& parameters_;
  const GloveKernel kernel_;
  GloveTrainer trainer_;
  std::vector<CellTable::Drawn> drawn_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_glove_worker(Parameters& parameters, GloveKernel kernel) {
  return std::make_unique<GloveWorker>(parameters, kernel);
}

}  // namespace streamvec
