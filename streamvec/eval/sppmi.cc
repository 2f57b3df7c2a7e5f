#include "streamvec/eval/sppmi.h"

#include <cmath>

#include "streamvec/vocab/sampling.h"

namespace streamvec {
namespace {

// value_ij = log n_ij - row_i - column_j, where positive and finite.
struct Logarithms {
  std::vector<double> row, column;

  float value(double log_weight, Slot i, Slot j) const {
    const double value = log_weight - row[static_cast<size_t>(i)] - column[static_cast<size_t>(j)];
    return value > 0 && std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
};

// Calls visit(i, j, value_ij) for every positive entry; both halves of the symmetric counts. For a fixed row i the
// columns come in rising order, because those below i come from earlier rows.
template <class Visit>
void visit_positive(const PairCounts& counts, const Logarithms& logarithms, Visit visit) {
  for (Slot i = 0; i < counts.size(); ++i)
    for (int64_t k = counts.begin[static_cast<size_t>(i)]; k < counts.begin[static_cast<size_t>(i) + 1]; ++k) {
      const Slot j = counts.column[static_cast<size_t>(k)];
      const double log_weight = std::log(counts.weight(k));
      if (const float value = logarithms.value(log_weight, i, j); value > 0) visit(i, j, value);
      if (i == j) continue;
      if (const float value = logarithms.value(log_weight, j, i); value > 0) visit(j, i, value);
    }
}

SparseMatrix build(const PairCounts& counts, const Logarithms& logarithms) {
  SparseMatrix matrix;
  matrix.begin.assign(static_cast<size_t>(counts.size()) + 1, 0);
  visit_positive(counts, logarithms, [&](Slot i, Slot, float) { ++matrix.begin[static_cast<size_t>(i) + 1]; });
  for (size_t i = 1; i < matrix.begin.size(); ++i) matrix.begin[i] += matrix.begin[i - 1];
  matrix.column.resize(static_cast<size_t>(matrix.begin.back()));
  matrix.value.resize(static_cast<size_t>(matrix.begin.back()));
  std::vector<int64_t> next(matrix.begin.begin(), matrix.begin.end() - 1);
  visit_positive(counts, logarithms, [&](Slot i, Slot j, float value) {
    const auto to = static_cast<size_t>(next[static_cast<size_t>(i)]++);
    matrix.column[to] = j;
    matrix.value[to] = value;
  });
  return matrix;
}

}  // namespace

SparseMatrix make_sppmi(const PairCounts& counts, const Vocabulary& vocabulary, const PairOptions& options) {
  STREAMVEC_CHECK_EQ(counts.size(), vocabulary.size());
  Logarithms logarithms{counts.marginals(), unigram_probabilities(vocabulary, options.smoothing)};
  for (double& value : logarithms.row) value = std::log(value) + std::log(options.negatives);
  for (double& value : logarithms.column) value = std::log(value);
  return build(counts, logarithms);
}

SparseMatrix make_sppmi_2018(const PairCounts& counts, const Vocabulary& vocabulary, const PairOptions& options) {
  STREAMVEC_CHECK_EQ(counts.size(), vocabulary.size());
  Logarithms logarithms;
  for (Slot i = 0; i < vocabulary.size(); ++i) {
    const double log_count = std::log(static_cast<double>(vocabulary.count(i)));
    logarithms.row.push_back(log_count + std::log(options.negatives));
    logarithms.column.push_back(log_count - std::log(static_cast<double>(vocabulary.tokens())));
  }
  return build(counts, logarithms);
}

}  // namespace streamvec
