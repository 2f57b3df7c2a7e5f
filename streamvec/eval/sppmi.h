// Shifted positive pointwise mutual information: the matrix whose factors word vectors are (Levy, Goldberg 2014).
#pragma once

#include "streamvec/eval/cooccurrence.h"
#include "streamvec/eval/sparse.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// max(0, log(n_ij / (n_i * p_j)) - log(negatives)), where n_ij are pair counts, n_i = sum_j n_ij, and p_j is the
// probability with which training draws j as a negative: the vocabulary's count^smoothing, normalised. Where it is not
// clipped this is the product of input row i and output row j at which skip-gram with negative sampling rests.
// Smoothing touches only the columns, so the matrix is not symmetric. A word without count or pairs has zeros.
SparseMatrix make_sppmi(const PairCounts& counts, const Vocabulary& vocabulary, const PairOptions& options);

// As the experiment of 2018 had it: max(0, log(n_ij * tokens / (t_i * t_j)) - log(negatives)) with token counts t where
// pair counts belong and without smoothing. Symmetric. Only for comparison with its figures.
SparseMatrix make_sppmi_2018(const PairCounts& counts, const Vocabulary& vocabulary, const PairOptions& options);

}  // namespace streamvec
