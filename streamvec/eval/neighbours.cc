#include "streamvec/eval/neighbours.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "streamvec/eval/gram.h"
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

constexpr double kKnownHalf = 100;  // occurrences that make half of a word's say
constexpr double kLeast = 0.01;     // of the mean square: directions that hold less are not lengthened further

// The sum over the words of weight (row - common)' (row - common). A row that is not finite says nothing.
Result<Eigen::MatrixXd> weighted_squares(const Snapshot& snapshot, std::span<const float> common) {
  constexpr int64_t kBlock = 4'096;
  const MatrixView<const float> rows = snapshot.input.view();
  STREAMVEC_ASSIGN_OR_RETURN(Matrix block, Matrix::make(std::min(kBlock, rows.rows), rows.cols));
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(rows.cols, rows.cols);
  for (int64_t begin = 0; begin < rows.rows; begin += kBlock) {
    const int64_t count = std::min(kBlock, rows.rows - begin);
    for (int64_t i = 0; i < count; ++i) {
      const auto met = static_cast<double>(snapshot.vocabulary.count(static_cast<Slot>(begin + i)));
      const auto weight = static_cast<float>(std::sqrt(met / (met + kKnownHalf)));
      const std::span<const float> row = rows.row_span(begin + i);
      const bool finite = std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); });
      for (size_t d = 0; d < row.size(); ++d) block.row(i)[d] = finite ? weight * (row[d] - common[d]) : 0;
    }
    sum += gram({block.view().data, count, block.cols(), block.stride()});
  }
  return sum;
}

// squares^(-1/4), so that vectors keep about their length.
Eigen::MatrixXd evening_out(const Eigen::MatrixXd& squares) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(squares);
  const double mean = solver.eigenvalues().mean();
  if (!(mean > 0) || !std::isfinite(mean)) return Eigen::MatrixXd::Identity(squares.rows(), squares.cols());
  const Eigen::VectorXd scale = (solver.eigenvalues() / mean).cwiseMax(kLeast).array().pow(-0.25);
  return solver.eigenvectors() * scale.asDiagonal() * solver.eigenvectors().transpose();
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

Result<SearchSpace> SearchSpace::make(const Snapshot& snapshot) {
  SearchSpace space;
  const std::span<const float> common = common_part(snapshot);
  if (common.empty()) return space;
  space.common_.assign(common.begin(), common.end());
  STREAMVEC_ASSIGN_OR_RETURN(const Eigen::MatrixXd squares, weighted_squares(snapshot, common));
  const Eigen::MatrixXd map = evening_out(squares);
  STREAMVEC_ASSIGN_OR_RETURN(space.map_, Matrix::make(map.rows(), map.cols()));
  for (int64_t i = 0; i < map.rows(); ++i)
    for (int64_t j = 0; j < map.cols(); ++j) space.map_.row(i)[j] = static_cast<float>(map(i, j));
  return space;
}

std::vector<float> SearchSpace::own_part(std::span<const float> vector) const {
  if (common_.empty()) return {vector.begin(), vector.end()};
  std::vector<float> own(vector.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const float value = vector[i] - common_[i];
    const float* row = map_.row(static_cast<int64_t>(i));
    for (size_t j = 0; j < own.size(); ++j) own[j] += value * row[j];
  }
  return own;
}

Result<Matrix> SearchSpace::search_rows(const Snapshot& snapshot) const {
  const MatrixView<const float> rows = snapshot.input.view();
  if (common_.empty()) return unit_rows(rows);
  STREAMVEC_ASSIGN_OR_RETURN(Matrix own, Matrix::make(rows.rows, rows.cols));
  for (int64_t i = 0; i < rows.rows; ++i)
    std::transform(rows.row(i), rows.row(i) + rows.cols, common_.begin(), own.row(i), std::minus<>());
  Eigen::MatrixXd map(rows.cols, rows.cols);
  for (int64_t i = 0; i < rows.cols; ++i)
    for (int64_t j = 0; j < rows.cols; ++j) map(i, j) = map_.row(i)[j];
  multiply(std::as_const(own).view(), map, own.view());
  return unit_rows(std::as_const(own).view());
}

Result<NeighbourIndex> NeighbourIndex::make(const Snapshot& snapshot, int64_t limit) {
  STREAMVEC_ASSIGN_OR_RETURN(SearchSpace space, SearchSpace::make(snapshot));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, space.search_rows(snapshot));
  const int64_t count = rows.rows();
  return NeighbourIndex(snapshot, std::move(space), std::move(rows), limit > 0 ? std::min(limit, count) : count);
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
  return nearest_to_sum(own_part(vector), {}, k);
}

Result<std::vector<Neighbour>> NeighbourIndex::nearest(std::span<const WeightedWord> words, int32_t k) const {
  std::vector<float> sum(static_cast<size_t>(rows_.cols()));
  std::vector<Slot> slots;
  for (const WeightedWord& term : words) {
    STREAMVEC_ASSIGN_OR_RETURN(const WordVector vector, vector_of(*snapshot_, term.word));
    const std::vector<float> values = unit_of(own_part(vector.values));
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
