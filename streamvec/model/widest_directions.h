// The directions in which rows spread most (principal components).
#pragma once

#include <cstdint>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

// `count` rows of length 1 at right angles to each other, the widest first; zeros where the rows spread in fewer
// directions, and where they are not finite. The rows' mean is taken out before.
Result<Matrix> widest_directions(MatrixView<const float> rows, int64_t count);

}  // namespace streamvec
