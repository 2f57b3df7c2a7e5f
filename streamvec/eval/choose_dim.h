// Which dimension suits a text: the one whose expected PIP loss is least (Yin and Shen 2018). Too few dimensions lose
// signal, too many admit noise; the spectrum of the text's SPPMI matrix and its noise tell where the two meet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/cooccurrence.h"

namespace streamvec {

struct DimChoice {
  int64_t dim = 1;                    // the least loss
  int64_t dim_low = 1, dim_high = 1;  // the losses within 5% of it: any of these will do
  double noise = 0;                   // standard deviation of an entry of the matrix
  std::vector<double> loss;  // expected ||EE' - FF'|| at dim 0, 1, ...: E from the text, F from the signal alone
  bool at_limit = false;     // dim_high is the last dimension looked at: larger ones might do as well
};

// The spectrum (falling singular values, the first of them) of a size x size matrix that is signal plus independent
// noise of deviation `noise`; squared_norm is the whole matrix's. In the limit of large matrices (Benaych-Georges,
// Nadakuditi 2012) a signal value l above the noise level t = noise * sqrt(size) shows as s = l + t^2 / l, and its
// vector as one with squared cosine 1 - t^2 / l^2 to the true one; what shows below 2 t cannot be told from noise. So
// with E = U sqrt(S) of the first k values the expected squared loss is
//   sum_all l^2 + sum_{i <= k} (s_i^2 - 2 l_i s_i (1 - t^2 / l_i^2)),
// where the part of the signal that is too weak to show counts as lost at every k. It is least where s falls below
// 4 t / sqrt(3), the threshold of Gavish and Donoho (2014).
DimChoice choose_dim(std::span<const double> spectrum, double squared_norm, int64_t size, double noise);

struct ChooseDimOptions {
  PairCountOptions counts;
  int64_t dim_max = 500;    // dimensions looked at; more: costs in proportion
  double basis_factor = 4;  // of the factorisation: see SvdOptions
};

// Streams the text once. The noise is half the deviation between the SPPMI matrices of the text's two halves: each has
// twice the variance of the whole's, their difference four times. Fails as make_oracle does.
Result<DimChoice> choose_dim(const SentenceStream& stream, const Vocabulary& vocabulary,
                             const ChooseDimOptions& options);

}  // namespace streamvec
