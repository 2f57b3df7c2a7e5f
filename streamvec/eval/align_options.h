// How two sets of vectors are brought into one space (procrustes.h), for headers that need not know Eigen.
#pragma once

#include <cstdint>

namespace streamvec {

struct AlignOptions {
  int64_t anchors_max = 3'000;  // the first rows, from which the stable ones are taken
  double kept = 0.7;            // share of them that counts as stable: those that moved least
  int rounds = 3;               // of aligning and dropping; the choice settles after two or three
};

}  // namespace streamvec
