// The greatest singular values of a sparse matrix and their left vectors, by a randomised block Krylov space (Musco,
// Musco 2015). Text matrices have flat spectra, on which plain power iteration settles too slowly: after five sweeps it
// still disagreed with itself by 60% of the norm on a novel's SPPMI. Never holds more than size x basis floats.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/sparse.h"

namespace streamvec {

struct SvdOptions {
  int64_t rank = 200;       // at most the matrix's size; a larger one is cut to it
  double basis_factor = 4;  // the Krylov basis has this many times `rank` columns, and 400. More: the last values and
                            // vectors are closer; memory in proportion, time with the square
  uint64_t seed = 1;        // of the first block: one seed, one result
};

struct Factorisation {
  Matrix left;                          // size x rank: orthonormal columns (zeros past the matrix's own rank)
  std::vector<double> singular_values;  // falling, `rank` of them
};

// The matrix need not be symmetric. kResourceExhausted when there is no memory for the dense matrices.
Result<Factorisation> factorise(const SparseMatrix& matrix, const SvdOptions& options);

// The word vectors of a factorisation, U * sqrt(S), of its first `dim` columns. REQUIRES: 0 < dim <= rank.
Result<Matrix> root_vectors(const Factorisation& factorisation, int64_t dim);

}  // namespace streamvec
