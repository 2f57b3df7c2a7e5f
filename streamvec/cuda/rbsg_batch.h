// One step of the character model on the card: both encoders over their tries, the loss, all the way back, Muon, Adam.
#pragma once

#include <optional>

#include "streamvec/cuda/blas.h"
#include "streamvec/cuda/lstm_kernels.h"
#include "streamvec/cuda/muon.h"
#include "streamvec/cuda/rbsg_plan.h"

namespace streamvec::cuda {

enum EncoderPart { kCharacters, kInput, kRecurrent, kBias, kOutput, kOutputBias };

// Not thread-safe. Batches follow each other on one stream; slopes of weights that nothing waits for but Adam are
// computed beside it, on another.
class RbsgSteps {
 public:
  explicit RbsgSteps(const RbsgShape& shape);
  RbsgSteps(RbsgSteps&&) = delete;
  ~RbsgSteps();
  Status begin();

  // Values or moments of both encoders. REQUIRES: nothing is queued.
  enum Kind { kValues, kMeans, kVariances };
  Status put(const EncoderViews (&views)[2], Kind kind) { return copy(views, kind, true); }
  Status get(const EncoderViews (&views)[2], Kind kind) { return copy(views, kind, false); }
  void set_steps(int64_t steps) { steps_ = steps; }

  // Queues all of a batch: its copy, its step, its result's way back.
  Status queue(RbsgPlanned& batch);
  // REQUIRES: what is beside has been joined, as it is between batches.
  Status wait() const { return status_of(cudaStreamSynchronize(stream_), "training"); }

 private:
  // What one encoder computes for a batch.
  struct Encoding {
    CardBuffer<float> letters, table, h, c, gates, words, out, dwords, dz, dletters;
    float *dout, *dh, *dc, *dz_sum, *dtable;  // zero when the batch begins
  };
  struct Place {
    int64_t begin, rows, cols;
  };
  enum { kSlopes = kVariances + 1, kBuffers };

  CardMatrix matrix(int buffer, int side, int part) const;
  CardMatrix value(int side, int part) const { return matrix(kValues, side, part); }
  CardMatrix slope(int side, int part) const { return matrix(kSlopes, side, part); }
  Status copy(const EncoderViews (&views)[2], Kind kind, bool to_card);

  Status go_beside();  // what is queued beside from here on comes after all that is on the stream
  Status join();       // and now the other way
  Status round_weights();
  Status reserve_for(const RbsgPlanned& batch);
  LstmLevel lstm_sides(const RbsgPlanned& batch) const;  // of no level yet
  Status forward(const RbsgPlanned& batch);
  Status climb_loss(const RbsgPlanned& batch);
  Status backward(const RbsgPlanned& batch);
  Status climb_output(const RbsgPlanned& batch);
  Status climb_levels(const RbsgPlanned& batch);
  Status climb_recurrent(const RbsgPlanned& batch);
  Status climb_tables(const RbsgPlanned& batch);
  Status step(const RbsgPlanned& batch);
  void step_by_adam(const RbsgPlanned& batch, int64_t begin, int64_t size, int32_t* refused);
  Status step_by_muon(const RbsgPlanned& batch);

  const RbsgShape shape_;
  Place places_[2][kEncoderParts];
  int64_t size_ = 0, steps_ = 0;
  cudaStream_t stream_ = nullptr, beside_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  std::optional<Blas> blas_, blas_beside_;
  CardBuffer<float> buffers_[kBuffers];
  CardMuon muon_[2];  // by side
  Encoding encodings_[2];
  CardBuffer<__nv_bfloat16> recurrent_[2];  // rounded, for products in bf16
  CardBuffer<float> zeroed_;
  size_t zeroed_size_ = 0;
  int32_t* counts_ = nullptr;  // of the pairs of a centre; likewise
  CardBuffer<float> pooled_, pooled_slopes_, weights_, products_;
};

}  // namespace streamvec::cuda
