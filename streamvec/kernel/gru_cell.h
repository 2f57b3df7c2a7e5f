// One step of a GRU (Cho et al. 2014, with the reset gate behind the product, as cuDNN and PyTorch have it) for one
// row, with Highway and run-time dispatch:
//   r, z = sigma(recurrent + input), n = tanh(input + r * recurrent), in three parts of H values: r, z, n
//   h = (1 - z) * n + z * h_before
// Rows start on 64-byte boundaries. sigma and tanh have absolute errors below 5e-6.
#pragma once

#include <cstdint>

namespace streamvec {

constexpr int32_t kGruGates = 3;
constexpr int32_t kGruKept = 4;  // parts of H values for the way back: r, z, n, and what r was multiplied with

struct GruStep {
  const float* recurrent;  // 3H: what the state before contributes; null for the first step (nothing)
  const float* input;      // 3H: what the character contributes, bias included
  const float* h_before;   // H; null for the first step (zeros)
  float* kept;             // 4H: out, for the way back; null when there is none
  float* h;                // H: out
};
// REQUIRES: H a multiple of 16.
void gru_forward(const GruStep& step, int32_t hidden);

// The way back: from the slope of h to those of recurrent, input and the h before. Several steps may follow one state:
// the first one to come back writes the dz_sum that the others add to.
struct GruSlope {
  const float* kept;      // as gru_forward left it
  const float* h_before;  // null for the first step
  const float* dh;        // H
  bool first;             // dz_sum is written, not added to
  float* dz_sum;          // 3H: out, that of recurrent; null when nobody asks
  float* dz_input;        // 3H: added to
  float* dh_before;       // H: added to; null for the first step
};
void gru_backward(const GruSlope& slope, int32_t hidden);

}  // namespace streamvec
