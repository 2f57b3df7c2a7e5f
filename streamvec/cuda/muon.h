// Muon's steps (optim/muon.h) of matrices that lie on the card. Products are the caller's cuBLAS; what stands between
// them are kernels here.
#pragma once

#include "streamvec/cuda/blas.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/kernel/muon_rates.h"

namespace streamvec::cuda {

struct MuonPart {
  CardMatrix values, momentum, slopes;  // slopes are left zeroed
};

// Nothing moves when one of these, on the card, is not finite.
struct FiniteChecks {
  const double *square, *loss;
};

// Memory for one matrix at a time. Not thread-safe.
class CardMuon {
 public:
  // For matrices of at most these sides; of several, asked for one after the other, for each of them.
  Status reserve_for(const CardMatrix& shape);
  // Queues a step on `stream`, which is that of `blas`. REQUIRES: room was reserved; steps queued before are on the
  // same stream.
  Status step(const Blas& blas, cudaStream_t stream, float lr, const MuonPart& part, const FiniteChecks& checks,
              const MuonRates& rates = {});

 private:
  CardBuffer<float> x_, next_, gram_, factor_;
  CardBuffer<double> square_;
};

}  // namespace streamvec::cuda
