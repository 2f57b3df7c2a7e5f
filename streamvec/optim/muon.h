// Muon (Jordan and others 2024), for matrices of weights that every batch changes all of: a step goes along the
// momentum of the slopes with every singular value of it brought to about 1, so that what slopes say seldom is learnt
// as fast as what they say always. A batch four times as large with twice the rate then learns nearly what four batches
// would, where Adam learns far less (docs/BENCHMARKS.md, Muon): nodes that step together need that.
//
// Singular values are brought to 1 by five steps of Newton and Schulz: with X = momentum / its norm, as wide as it is
// high or wider, X becomes a X + (b A + c A A) X of A = X X'. All that is a polynomial of the first A times X: so A is
// made once, the steps are taken by square matrices alone, and X is multiplied once at the end, a third of the
// products and a fifth of the packing. What A says of small singular values is their square, so products are in f32. A
// matrix that is high is cut into bands, each of which is brought there by itself: time goes with the square of the
// height, and a thread has a band to itself.
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

  // What is evened out by itself: some rows of a matrix or, `turned`, some columns of one that is higher than wide.
  struct Cut {
    bool turned;
    int64_t begin, end;
  };
  static std::vector<Cut> cuts_of(int64_t rows, int64_t cols, const MuonRates& rates = {});
  static MatrixView<float> part_of(const MatrixView<float>& matrix, const Cut& cut);
  // Of the products that one takes whose rows, or columns, are so long.
  static double flops_of(const Cut& cut, int64_t length, const MuonRates& rates = {});
  struct Band {
    MatrixView<float> momentum, slopes;  // of equal shape, as in the matrix
    bool turned;
  };

  // The team is borrowed. REQUIRES: products of floats, `reference` or `simd`.
  Muon(std::shared_ptr<const PackedGemm> products, ThreadTeam& team);

  // One step of each part up its slopes, which are finite.
  void step(std::span<const Part> parts, float lr, const MuonRates& rates = {});
  // The same of bands whose values somebody else steps: leaves in `slopes` how far they go at a rate of 1. Bands whose
  // slopes are all 0 keep their momentum, and go nowhere; so do those whose slopes are not finite, or beyond any use.
  void even_out(std::span<const Band> bands, const MuonRates& rates = {});
  double flops() const { return flops_; }  // of all products so far

 private:
  struct PartBand {
    const Part* part;
    Cut cut;
  };
  // What a member needs of its own.
  struct Lane {
    RowBuffer gram, factor, power, next, way;
    PackedFactor packed;
  };

  void take_momentum(std::span<const Part> parts, float momentum, int32_t member);
  void step_band(const PartBand& band, float lr, const MuonRates& rates, Lane& lane);
  void even_out_band(const Band& band, const MuonRates& rates, Lane& lane);
  // to = what `slopes` are evened out, times lr, or to +=. Where they are not turned `to` may be the slopes.
  void go(const MatrixView<float>& slopes, bool turned, float lr, const MuonRates& rates, bool add,
          const MatrixView<float>& to, Lane& lane);
  // Of lane.gram: lane.power times X has singular values of about 1.
  void find_power(int32_t iterations, Lane& lane);

  std::shared_ptr<const PackedGemm> products_;
  ThreadTeam& team_;
  std::vector<PartBand> bands_;
  std::vector<Lane> lanes_;
  double flops_ = 0;
};

}  // namespace streamvec
