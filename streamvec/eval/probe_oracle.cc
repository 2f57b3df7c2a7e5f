// From a probe's counts to the oracle and the figures.
#include <algorithm>
#include <cmath>

#include "streamvec/eval/probe_sppmi.h"

namespace streamvec {
namespace {

using Half = ProbeCounts::Half;

void add(std::vector<double>& sum, const std::vector<double>& values) {
  sum.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

Half sum_of(const std::array<Half, 2>& halves) {
  Half sum;
  for (const Half& half : halves) {
    add(sum.pairs, half.pairs);
    add(sum.marginals, half.marginals);
    add(sum.tokens, half.tokens);
    sum.tokens_sum += half.tokens_sum;
  }
  return sum;
}

// max(0, log n_ij - row_i - column_j), zero where that is not a number.
SparseMatrix positive_matrix(const std::vector<double>& pairs, const std::vector<double>& row,
                             const std::vector<double>& column) {
  SparseMatrix matrix;
  for (size_t i = 0; i < row.size(); ++i) {
    for (size_t j = 0; j < row.size(); ++j) {
      const double value = std::log(pairs[ProbeCounts::pair_index(i, j)]) - row[i] - column[j];
      if (!(value > 0) || !std::isfinite(value)) continue;
      matrix.column.push_back(static_cast<int32_t>(j));
      matrix.value.push_back(static_cast<float>(value));
    }
    matrix.begin.push_back(matrix.nonzeros());
  }
  return matrix;
}

std::vector<double> logs(std::span<const double> values, double shift) {
  std::vector<double> result;
  for (const double value : values) result.push_back(std::log(value) + shift);
  return result;
}

// As make_sppmi() of sppmi.h has it, of the probe words' rows and columns.
SparseMatrix sppmi_of(const Half& half, std::span<const double> negative_probability, int32_t negatives) {
  return positive_matrix(half.pairs, logs(half.marginals, std::log(negatives)), logs(negative_probability, 0));
}

SparseMatrix sppmi_2018_of(const Half& half, int32_t negatives) {
  return positive_matrix(half.pairs, logs(half.tokens, std::log(negatives)),
                         logs(half.tokens, -std::log(half.tokens_sum)));
}

Result<Factorisation> factorise_probe(const Half& half, std::span<const double> negative_probability,
                                      const ProbeOptions& options) {
  SvdOptions svd;
  svd.rank = options.dim;
  svd.basis_factor = options.basis_factor;
  return factorise(sppmi_of(half, negative_probability, options.pairs.negatives), svd);
}

Result<Matrix> vectors_of(const Half& half, std::span<const double> negative_probability, const ProbeOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(const Factorisation factors, factorise_probe(half, negative_probability, options));
  return root_vectors(factors, factors.left.cols());
}

}  // namespace

Result<Oracle> make_oracle(const ProbeCounts& counts, std::span<const double> negative_probability,
                           const ProbeOptions& options, bool split_half) {
  STREAMVEC_CHECK_EQ(static_cast<int64_t>(negative_probability.size()), counts.size());
  const Half sum = sum_of(counts.halves);
  if (std::none_of(sum.pairs.begin(), sum.pairs.end(), [](double pair) { return pair > 0; }))
    return error(Code::kInvalidArgument, "no pair of probe words has been counted yet; wait for more text");
  Oracle oracle;
  oracle.options.counts.pairs = options.pairs;
  oracle.options.dim = options.dim;
  oracle.options.basis_factor = options.basis_factor;
  oracle.options.overlap_words = options.overlap_words;
  oracle.options.split_half = split_half;
  STREAMVEC_ASSIGN_OR_RETURN(Factorisation factors, factorise_probe(sum, negative_probability, options));
  STREAMVEC_ASSIGN_OR_RETURN(oracle.vectors, root_vectors(factors, factors.left.cols()));
  oracle.singular_values = std::move(factors.singular_values);
  oracle.sppmi_2018 = sppmi_2018_of(sum, options.pairs.negatives);
  if (!split_half) return oracle;
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix first, vectors_of(counts.halves[0], negative_probability, options));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix second, vectors_of(counts.halves[1], negative_probability, options));
  STREAMVEC_ASSIGN_OR_RETURN(oracle.split_half, compare(first, second, oracle.sppmi_2018, options.overlap_words));
  return oracle;
}

Result<PipReport> measure_probe(const ProbeCounts& counts, const Snapshot& snapshot, const ProbeOptions& options,
                                bool split_half) {
  if (counts.size() == 0) return error(Code::kInvalidArgument, "there are no probe words yet; wait for more text");
  if (counts.slots.back() >= snapshot.vocabulary.size())
    return error(Code::kFailedPrecondition, "the snapshot has ", snapshot.vocabulary.size(), " words and not slot ",
                 counts.slots.back(), "; it is older than the counts");
  const std::vector<double> probabilities = unigram_probabilities(snapshot.vocabulary, options.pairs.smoothing);
  std::vector<double> negatives;
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, Matrix::make(counts.size(), snapshot.dim()));
  for (int64_t i = 0; i < counts.size(); ++i) {
    const Slot slot = counts.slots[static_cast<size_t>(i)];
    negatives.push_back(probabilities[static_cast<size_t>(slot)]);
    std::copy_n(snapshot.input.row(slot), snapshot.dim(), rows.row(i));
  }
  STREAMVEC_ASSIGN_OR_RETURN(const Oracle oracle, make_oracle(counts, negatives, options, split_half));
  return measure_pip(rows, oracle);
}

}  // namespace streamvec
