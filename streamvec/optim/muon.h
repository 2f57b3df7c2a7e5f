// Muon (Jordan and others 2024), for matrices of weights that every batch changes all of: a step goes along the
// momentum of the slopes with every singular value of it brought to about 1, so that what slopes say seldom is learnt
// as fast as what they say always. A batch four times as large with twice the rate then learns nearly what four batches
// would, where Adam learns far less (docs/BENCHMARKS.md, Muon): nodes that step together need that.
//
// Singular values are brought to 1 by five steps of Newton and Schulz: with X = momentum / its norm, as wide as it is
// high or wider, X becomes a X + (b A + c A A) X of A = X X'. Products may be in bf16: what is not exact about them
// leaves singular values between .7 and 1.2 where they are anyway. A matrix that is high is cut into bands, each of
// which is brought there by itself: time goes with the square of the height, and a thread has a band to itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/kernel/muon_rates.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/kernel/row_buffer.h"

namespace streamvec {

// Used by one thread; the team works for it. What comes out does not depend on its size.
class Muon {
 public:
  struct Part {
    Matrix* values;
    Matrix* momentum;  // the mean of the slopes, as Adam's first moment
    Matrix* slopes;    // left zeroed
  };

  // The team is borrowed.
  Muon(std::shared_ptr<const PackedGemm> products, ThreadTeam& team);

  // One step of each part up its slopes, which are finite.
  void step(std::span<const Part> parts, float lr, const MuonRates& rates = {});
  double flops() const { return flops_; }  // of all products so far

 private:
  // Some rows of a matrix, or some columns of one that is higher than wide.
  struct Band {
    const Part* part;
    bool turned;
    int64_t begin, end;
  };
  // What a member needs of its own.
  struct Lane {
    RowBuffer x, gram, factor;
    PackedFactor packed;
  };

  void step_band(const Band& band, float lr, const MuonRates& rates, Lane& lane);
  void even_out(int32_t iterations, Lane& lane);

  std::shared_ptr<const PackedGemm> products_;
  ThreadTeam& team_;
  std::vector<Band> bands_;
  std::vector<Lane> lanes_;
  double flops_ = 0;
};

}  // namespace streamvec
