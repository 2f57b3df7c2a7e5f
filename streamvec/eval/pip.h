// How near word vectors are to what the text itself says: the pairwise inner product (PIP, Yin and Shen 2018) against
// an oracle, the truncated factorisation of the text's SPPMI matrix. PIP alone misleads (it sees scale before shape),
// so it comes with measures that do not depend on scale, and with what vectors without any knowledge would get.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/cooccurrence.h"
#include "streamvec/eval/products.h"
#include "streamvec/eval/sparse.h"
#include "streamvec/eval/svd.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Vectors E (V x d) against oracle vectors F (V x r). ||.|| is the Frobenius norm. All sums go over d x d, d x r and
// r x r matrices in double, or over SPPMI's nonzeros; nothing is V x V.
struct PipFigures {
  // ||sEE' - FF'|| / ||FF'|| at the scale s that suits E best: 0 is the oracle, 1 what zeros get. Skip-gram settles the
  // products of input and output rows, not how their length is shared out between them, so E's own scale says nothing.
  double relative = 0;
  double mean_square = 0;        // mean over all V^2 of (SPPMI - EE')^2, with the SPPMI of 2018: that year's figure
  double cka = 0;                // centred linear CKA: 1 same shape at any scale and rotation, 0 unrelated (or zeros)
  double scale_free = 0;         // sqrt(1 - cka^2): the least relative PIP of the centred vectors over every scale
  double neighbour_overlap = 0;  // share of a word's 10 nearest neighbours (cosine) that the oracle has too
  double norm = 0;               // ||EE'||
  double scale = 0;              // the s of `relative`
  double relative_unscaled = 0;  // `relative` with s = 1
};

struct PipReport {
  PipFigures model;
  int64_t oracle_dim = 0;
  double oracle_norm = 0;                                      // ||FF'||
  std::vector<std::pair<std::string, PipFigures>> references;  // zero, permuted, untrained, split_half: see measure_pip
};

struct OracleOptions {
  PairCountOptions counts;
  int64_t dim = 200;              // give the model's
  double basis_factor = 4;        // of the factorisation: see SvdOptions
  int64_t overlap_words = 1'000;  // words, evenly spread over the slots, whose neighbours are compared
  bool split_half = true;         // also factorise both halves of the text: three times the work
};

// What a text says, ready to measure any number of vectors against it.
struct Oracle {
  OracleOptions options;
  Matrix vectors;                       // F: V x min(dim, V)
  std::vector<double> singular_values;  // of SPPMI, the first dim
  SparseMatrix sppmi_2018;
  PipFigures split_half;  // the oracle of one half of the text against that of the other: as good as this text allows
};

// Streams the text once. kInvalidArgument when it holds no pair of known words; kResourceExhausted when its pairs pass
// the bound in options.counts.
Result<Oracle> make_oracle(const SentenceStream& stream, const Vocabulary& vocabulary, const OracleOptions& options);

// Measures `vectors` (V x any dim) and the references:
//   zero       all zeros
//   permuted   the vectors given, rows shuffled: same norms, no meaning
//   untrained  uniform in +-0.5/dim, as training starts
//   split_half the oracle's own, when it was asked for
// kInvalidArgument when the number of rows is not the oracle's; the errors of `products`.
Result<PipReport> measure_pip(const Matrix& vectors, const Oracle& oracle, Products& products = cpu_products());

// The parts. REQUIRES: vectors.rows() == oracle.rows() == sppmi_2018.size().
Result<PipFigures> compare(const Matrix& vectors, const Matrix& oracle, const SparseMatrix& sppmi_2018,
                           int64_t overlap_words, Products& products = cpu_products());
Result<double> neighbour_overlap(const Matrix& a, const Matrix& b, int64_t words, int32_t k,
                                 Products& products = cpu_products());

}  // namespace streamvec
