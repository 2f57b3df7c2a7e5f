// Two sets of vectors brought into one space by a rotation, so that what is left between them is change of meaning.
// Training fixes vectors only up to a rotation; models trained apart, or long enough one after the other, differ by
// one.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/align_options.h"

namespace streamvec {

// The orthogonal matrix R for which ||a R - b|| is least (Schoenemann 1966). REQUIRES: equal shapes, rows as gram.h
// wants them.
Eigen::MatrixXd best_rotation(MatrixView<const float> a, MatrixView<const float> b);

struct Alignment {
  Eigen::MatrixXd rotation;
  std::vector<int32_t> stable;  // the rows it rests on, rising
};

// Aligns a to b on rows that hardly moved: begins with the first anchors_max rows (give the frequent words first),
// drops those farthest from their partner, and aligns again; words that moved do not pull the others along. REQUIRES:
// equal shapes with at least one row, unit rows (or zero).
Result<Alignment> align_on_stable(MatrixView<const float> a, MatrixView<const float> b, const AlignOptions& options);

}  // namespace streamvec
