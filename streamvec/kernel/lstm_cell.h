// Steps of an LSTM (Hochreiter, Schmidhuber 1997; forget gate of Gers 2000), with Highway and run-time dispatch:
//   z = recurrent + input, in four parts of H values: i, f, g, o;  i, f, o = sigma(z), g = tanh(z)
//   c = f * c_before + i * g,  h = o * tanh(c)
// Rows start on 64-byte boundaries. sigma and tanh have absolute errors below 5e-6.
#pragma once

#include <cstdint>
#include <span>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/left_rows.h"

namespace streamvec {

constexpr int32_t kLstmGates = 4;

// Steps from some states, each to any number of others: nodes of a tree, with a character each. Views without rows say
// that there is nothing (before) or that nobody asks (after).
struct LstmSteps {
  std::span<const int32_t> parents, characters;  // by node
  MatrixView<const float> recurrent;  // by parent from first_parent on: what it contributes to the units at hand, gate
                                      // by gate; none for the first step
  int32_t first_parent = 0;
  MatrixView<const float> input;     // by character: 4H, bias included
  MatrixView<const float> c_before;  // by parent, from the first unit at hand on; none for the first step
  MatrixView<float> c;               // by node, likewise: out
  MatrixView<float> gates;           // by node: 4H, out, i, f, g, o, for the way back
  MatrixView<float> h;               // by node: out
  LeftRows bf16;                     // by node: h once more
};
// Takes nodes begin .. end - 1 one step on, in units unit_begin .. unit_end - 1. REQUIRES: H and both bounds of units
// are multiples of 16.
void lstm_forward(const LstmSteps& steps, int32_t begin, int32_t end, int32_t unit_begin, int32_t unit_end);

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
