#include "streamvec/eval/pip.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/core/random.h"
#include "streamvec/eval/gram.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/sppmi.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {
namespace {

constexpr int32_t kOverlapNeighbours = 10;
constexpr uint64_t kPermutedSeed = 1, kUntrainedSeed = 2;

// (X - 1 m_x')' (Y - 1 m_y') out of X'Y and the columns' sums.
Eigen::MatrixXd centred(const Eigen::MatrixXd& product, const Eigen::VectorXd& sums_x, const Eigen::VectorXd& sums_y,
                        double rows) {
  return product - sums_x * sums_y.transpose() / rows;
}

double safe_ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

Result<Matrix> permuted_rows(const Matrix& matrix) {
  std::vector<int64_t> order(static_cast<size_t>(matrix.rows()));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(kPermutedSeed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  STREAMVEC_ASSIGN_OR_RETURN(Matrix permuted, Matrix::make(matrix.rows(), matrix.cols()));
  for (size_t i = 0; i < order.size(); ++i)
    std::copy_n(matrix.row(order[i]), matrix.cols(), permuted.row(static_cast<int64_t>(i)));
  return permuted;
}

Result<Matrix> untrained_rows(int64_t rows, int64_t cols) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix untrained, Matrix::make(rows, cols));
  Random random(kUntrainedSeed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) untrained.row(i)[j] = (random.uniform() - 0.5f) / static_cast<float>(cols);
  return untrained;
}

bool has_length(std::span<const float> row) {
  return std::any_of(row.begin(), row.end(), [](float value) { return value != 0; });
}

// The `words` slots evenly spread over all.
std::vector<Slot> spread_slots(int64_t size, int64_t words) {
  words = std::min(words, size);
  std::vector<Slot> slots(static_cast<size_t>(words));
  for (int64_t i = 0; i < words; ++i) slots[static_cast<size_t>(i)] = static_cast<Slot>(i * size / words);
  return slots;
}

// x' y, as symmetric as it should be.
Result<Eigen::MatrixXd> gram_by(Products& products, const Matrix& x, const Matrix& y) {
  Eigen::MatrixXd product(x.cols(), y.cols());
  STREAMVEC_RETURN_IF_ERROR(
      products.cross_gram(x.view(), y.view(), std::span(product.data(), static_cast<size_t>(product.size()))));
  return &x == &y ? Eigen::MatrixXd((product + product.transpose()) / 2) : product;
}

// k hits for each of the slots, the slot itself left out.
Result<std::vector<Hit>> neighbours_of(const Matrix& unit, std::span<const Slot> slots, int32_t k, Products& products) {
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix queries, unit_rows(unit.view(), slots));
  std::vector<std::span<const int32_t>> own;
  for (const Slot& slot : slots) own.emplace_back(&slot, 1);
  std::vector<Hit> hits(slots.size() * static_cast<size_t>(k));
  STREAMVEC_RETURN_IF_ERROR(products.top_k(unit.view(), queries.view(), own, k, hits));
  return hits;
}

int64_t count_common(std::span<const Hit> a, std::span<const Hit> b) {
  return std::count_if(a.begin(), a.end(), [&](const Hit& hit) {
    return hit.row >= 0 && std::any_of(b.begin(), b.end(), [&](const Hit& other) { return other.row == hit.row; });
  });
}

Result<Factorisation> factorise_counts(const PairCounts& counts, const Vocabulary& vocabulary,
                                       const OracleOptions& options) {
  SvdOptions svd;
  svd.rank = options.dim;
  svd.basis_factor = options.basis_factor;
  return factorise(make_sppmi(counts, vocabulary, options.counts.pairs), svd);
}

Result<Matrix> oracle_vectors(const PairCounts& counts, const Vocabulary& vocabulary, const OracleOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(const Factorisation factors, factorise_counts(counts, vocabulary, options));
  return root_vectors(factors, factors.left.cols());
}

Result<PipFigures> compare_halves(const std::array<PairCounts, 2>& halves, const Vocabulary& vocabulary,
                                  const Oracle& oracle) {
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix first, oracle_vectors(halves[0], vocabulary, oracle.options));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix second, oracle_vectors(halves[1], vocabulary, oracle.options));
  return compare(first, second, oracle.sppmi_2018, oracle.options.overlap_words);
}

}  // namespace

Result<double> neighbour_overlap(const Matrix& a, const Matrix& b, int64_t words, int32_t k, Products& products) {
  STREAMVEC_CHECK_EQ(a.rows(), b.rows());
  k = static_cast<int32_t>(std::min<int64_t>(k, a.rows() - 1));
  if (k < 1 || words < 1) return 0.0;
  const std::vector<Slot> slots = spread_slots(a.rows(), words);
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix unit_a, unit_rows(a.view()));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix unit_b, unit_rows(b.view()));
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<Hit> hits_a, neighbours_of(unit_a, slots, k, products));
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<Hit> hits_b, neighbours_of(unit_b, slots, k, products));
  int64_t common = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!has_length(unit_a.view().row_span(slots[i])) || !has_length(unit_b.view().row_span(slots[i]))) continue;
    const size_t begin = i * static_cast<size_t>(k);
    common += count_common({&hits_a[begin], static_cast<size_t>(k)}, {&hits_b[begin], static_cast<size_t>(k)});
  }
  return static_cast<double>(common) / static_cast<double>(hits_a.size());
}

Result<PipFigures> compare(const Matrix& vectors, const Matrix& oracle, const SparseMatrix& sppmi_2018,
                           int64_t overlap_words, Products& products) {
  const auto rows = static_cast<double>(vectors.rows());
  STREAMVEC_ASSIGN_OR_RETURN(const Eigen::MatrixXd ee, gram_by(products, vectors, vectors));
  STREAMVEC_ASSIGN_OR_RETURN(const Eigen::MatrixXd ff, gram_by(products, oracle, oracle));
  STREAMVEC_ASSIGN_OR_RETURN(const Eigen::MatrixXd ef, gram_by(products, vectors, oracle));
  const Eigen::VectorXd sums_e = column_sums(vectors.view()), sums_f = column_sums(oracle.view());
  PipFigures figures;
  figures.norm = ee.norm();
  const double squared = ee.squaredNorm() + ff.squaredNorm() - 2 * ef.squaredNorm();
  figures.relative_unscaled = safe_ratio(std::sqrt(std::max(0.0, squared)), ff.norm());
  const double cosine = safe_ratio(ef.squaredNorm(), ee.norm() * ff.norm());
  figures.relative = std::sqrt(std::max(0.0, 1 - cosine * cosine));
  figures.scale = safe_ratio(ef.squaredNorm(), ee.squaredNorm());
  figures.mean_square =
      (sppmi_2018.squared_norm() - 2 * inner_product(sppmi_2018, vectors.view()) + ee.squaredNorm()) / (rows * rows);
  figures.cka = safe_ratio(centred(ef, sums_e, sums_f, rows).squaredNorm(),
                           centred(ee, sums_e, sums_e, rows).norm() * centred(ff, sums_f, sums_f, rows).norm());
  figures.scale_free = std::sqrt(std::max(0.0, 1 - figures.cka * figures.cka));
  STREAMVEC_ASSIGN_OR_RETURN(figures.neighbour_overlap,
                             neighbour_overlap(vectors, oracle, overlap_words, kOverlapNeighbours, products));
  return figures;
}

Result<Oracle> make_oracle(const SentenceStream& stream, const Vocabulary& vocabulary, const OracleOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(auto halves, count_pairs_of_halves(stream, vocabulary, options.counts));
  const PairCounts counts = add(halves[0], halves[1]);
  if (counts.pairs() == 0)
    return error(Code::kInvalidArgument,
                 "the text has no two words of the vocabulary within a window; give the text "
                 "the model was trained on");
  if (!options.split_half) halves = {};
  Oracle oracle;
  oracle.options = options;
  STREAMVEC_ASSIGN_OR_RETURN(Factorisation factors, factorise_counts(counts, vocabulary, options));
  STREAMVEC_ASSIGN_OR_RETURN(oracle.vectors, root_vectors(factors, factors.left.cols()));
  oracle.singular_values = std::move(factors.singular_values);
  oracle.sppmi_2018 = make_sppmi_2018(counts, vocabulary, options.counts.pairs);
  if (options.split_half) {
    STREAMVEC_ASSIGN_OR_RETURN(oracle.split_half, compare_halves(halves, vocabulary, oracle));
  }
  return oracle;
}

Result<PipReport> measure_pip(const Matrix& vectors, const Oracle& oracle, Products& products) {
  if (vectors.rows() != oracle.vectors.rows())
    return error(Code::kInvalidArgument, "the model has ", vectors.rows(), " words, the oracle ", oracle.vectors.rows(),
                 "; make the oracle with the model's vocabulary");
  const auto measure = [&](const Matrix& rows) {
    return compare(rows, oracle.vectors, oracle.sppmi_2018, oracle.options.overlap_words, products);
  };
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix zero, Matrix::make(vectors.rows(), 1));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix permuted, permuted_rows(vectors));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix untrained, untrained_rows(vectors.rows(), vectors.cols()));
  PipReport report;
  report.oracle_dim = oracle.vectors.cols();
  STREAMVEC_ASSIGN_OR_RETURN(const Eigen::MatrixXd oracle_gram, gram_by(products, oracle.vectors, oracle.vectors));
  report.oracle_norm = oracle_gram.norm();
  STREAMVEC_ASSIGN_OR_RETURN(report.model, measure(vectors));
  const std::pair<std::string, const Matrix*> references[] = {
      {"zero", &zero}, {"permuted", &permuted}, {"untrained", &untrained}};
  for (const auto& [name, rows] : references) {
    STREAMVEC_ASSIGN_OR_RETURN(const PipFigures figures, measure(*rows));
    report.references.emplace_back(name, figures);
  }
  if (oracle.options.split_half) report.references.emplace_back("split_half", oracle.split_half);
  return report;
}

}  // namespace streamvec
