// One step of an LSTM (Hochreiter, Schmidhuber 1997; forget gate of Gers 2000) for one row, with Highway and run-time
// dispatch:
//   z = recurrent + input, in four parts of H values: i, f, g, o;  i, f, o = sigma(z), g = tanh(z)
//   c = f * c_before + i * g,  h = o * tanh(c)
// Rows start on 64-byte boundaries. sigma and tanh have absolute errors below 5e-6.
#pragma once

#include <cstdint>

namespace streamvec {

constexpr int32_t kLstmGates = 4;

struct LstmStep {
  const float* recurrent;  // 4H: what the state before contributes; null for the first step (nothing)
  const float* input;      // 4H: what the character contributes, bias included
  const float* c_before;   // H; null for the first step (zeros)
  float* gates;            // 4H: out, i, f, g, o, for the way back; null when there is none
  float* c;                // H: out
  float* h;                // H: out
};
// REQUIRES: H a multiple of 16.
void lstm_forward(const LstmStep& step, int32_t hidden);

// The way back: from slopes of h and c to those of z and of the c before. Several steps may follow one state (a trie
// branches): the first one to come back writes what the others add to.
struct LstmSlope {
  const float* gates;     // as lstm_forward left them
  const float* c;         //
  const float* c_before;  // null for the first step
  const float* dh;        // H
  const float* dc;        // H: what came back through c; null when no step followed
  bool first;             // dz_sum and dc_before are written, not added to
  float* dz_sum;          // 4H: out, summed over the steps that follow one state; null when nobody asks
  float* dz_input;        // 4H: added to
  float* dc_before;       // H: out; null for the first step
};
void lstm_backward(const LstmSlope& slope, int32_t hidden);

}  // namespace streamvec
