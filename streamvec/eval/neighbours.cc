#include "streamvec/eval/neighbours.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/eval/word_vector.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {
namespace {

// 1 / length, or 0 for a vector that has no direction.
double inverse_length(std::span<const float> vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  return squares > 0 && std::isfinite(squares) ? 1 / std::sqrt(squares) : 0;
}

void write_unit(std::span<const float> vector, float* out) {
  const double scale = inverse_length(vector);
  if (scale == 0) return;  // `out` is zero already, and NaN * 0 would not be
  for (size_t i = 0; i < vector.size(); ++i) out[i] = static_cast<float>(vector[i] * scale);
}

std::vector<float> unit_of(std::span<const float> vector) {
  std::vector<float> unit(vector.size());
  write_unit(vector, unit.data());
  return unit;
}

std::span<const float> common_part(const Snapshot& snapshot) {
  return snapshot.generator == nullptr ? std::span<const float>() : snapshot.generator->common_part();
}

}  // namespace

Result<Matrix> unit_rows(MatrixView<const float> rows, std::span<const Slot> slots) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix unit, Matrix::make(static_cast<int64_t>(slots.size()), rows.cols));
  for (size_t i = 0; i < slots.size(); ++i) write_unit(rows.row_span(slots[i]), unit.row(static_cast<int64_t>(i)));
  return unit;
}

Result<Matrix> unit_rows(MatrixView<const float> rows) {
  std::vector<Slot> slots(static_cast<size_t>(rows.rows));
  std::iota(slots.begin(), slots.end(), 0);
  return unit_rows(rows, slots);
}

std::vector<float> own_part(const Snapshot& snapshot, std::span<const float> vector) {
  std::vector<float> own(vector.begin(), vector.end());
  const std::span<const float> common = common_part(snapshot);
  for (size_t i = 0; i < common.size(); ++i) own[i] -= common[i];
  return own;
}

Result<Matrix> search_rows(const Snapshot& snapshot) {
  const MatrixView<const float> rows = snapshot.input.view();
  if (common_part(snapshot).empty()) return unit_rows(rows);
  STREAMVEC_ASSIGN_OR_RETURN(Matrix unit, Matrix::make(rows.rows, rows.cols));
  for (int64_t i = 0; i < rows.rows; ++i) write_unit(own_part(snapshot, rows.row_span(i)), unit.row(i));
  return unit;
}

Result<NeighbourIndex> NeighbourIndex::make(const Snapshot& snapshot, int64_t limit) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, search_rows(snapshot));
  const int64_t count = rows.rows();
  return NeighbourIndex(snapshot, std::move(rows), limit > 0 ? std::min(limit, count) : count);
}

std::vector<Neighbour> NeighbourIndex::search(std::span<const float> vector, std::span<const Slot> excluded,
                                              int32_t k) const {
  k = static_cast<int32_t>(std::min<int64_t>(k, limit_));
  if (k <= 0) return {};
  std::vector<Hit> hits(static_cast<size_t>(k));
  const MatrixView<const float> rows{rows_.view().data, limit_, rows_.cols(), rows_.stride()};
  const std::span<const int32_t> lists[1] = {excluded};
  top_k(rows, {vector.data(), 1, rows.cols, rows.cols}, lists, k, hits);
  std::vector<Neighbour> neighbours;
  for (const Hit& hit : hits)
    if (hit.row >= 0) neighbours.push_back({hit.row, hit.score});
  return neighbours;
}

Result<std::vector<Neighbour>> NeighbourIndex::nearest(std::string_view word, int32_t k) const {
  STREAMVEC_ASSIGN_OR_RETURN(const WordVector vector, vector_of(*snapshot_, word));
  if (!vector.seen()) return nearest(vector.values, k);
  return search(rows_.view().row_span(vector.slot), {{vector.slot}}, k);
}

Result<std::vector<Neighbour>> NeighbourIndex::nearest(std::span<const float> vector, int32_t k) const {
  if (static_cast<int64_t>(vector.size()) != rows_.cols())
    return error(Code::kInvalidArgument, "a vector of ", vector.size(), " values was given, the model has ",
                 rows_.cols());
  if (!std::all_of(vector.begin(), vector.end(), [](float value) { return std::isfinite(value); }))
    return error(Code::kInvalidArgument, "the vector given holds NaN or Inf");
  return nearest_to_sum(own_part(*snapshot_, vector), {}, k);
}

Result<std::vector<Neighbour>> NeighbourIndex::nearest(std::span<const WeightedWord> words, int32_t k) const {
  std::vector<float> sum(static_cast<size_t>(rows_.cols()));
  std::vector<Slot> slots;
  for (const WeightedWord& term : words) {
    STREAMVEC_ASSIGN_OR_RETURN(const WordVector vector, vector_of(*snapshot_, term.word));
    const std::vector<float> values = unit_of(own_part(*snapshot_, vector.values));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(term.weight * values[i]);
    if (vector.seen()) slots.push_back(vector.slot);
  }
  return nearest_to_sum(sum, slots, k);
}

std::vector<Neighbour> NeighbourIndex::nearest_to_sum(std::span<const float> sum, std::span<const Slot> excluded,
                                                      int32_t k) const {
  return search(unit_of(sum), excluded, k);
}

Result<double> NeighbourIndex::cosine(std::string_view a, std::string_view b) const {
  STREAMVEC_ASSIGN_OR_RETURN(const WordVector of_a, vector_of(*snapshot_, a));
  STREAMVEC_ASSIGN_OR_RETURN(const WordVector of_b, vector_of(*snapshot_, b));
  const std::vector<float> x = unit_of(of_a.values), y = unit_of(of_b.values);
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0, std::plus<>(),
                            [](float u, float v) { return double{u} * v; });
}

}  // namespace streamvec
