// One value of one cell, forward and back, as kernel/lstm_cell.h and kernel/gru_cell.h have them. Of lstm_kernels.cu
// only.
#pragma once

#include <cstdint>

#include "streamvec/cuda/lstm_kernels.h"

namespace streamvec::cuda {
namespace {

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + __expf(-x));
}

// What of a step a cell needs: of its gates, what the character and what the state before give; `parent` is that
// state's node, 0 where there is none.
template <int kGates>
struct Gates {
  float input[kGates], recurrent[kGates];
};

struct Lstm {
  static constexpr int kGates = 4;

  static __device__ void step(const LstmSide& side, int64_t H, int64_t node, int64_t parent, int64_t k,
                              const Gates<kGates>& z) {
    const float in = sigmoid(z.input[0] + z.recurrent[0]), forget = sigmoid(z.input[1] + z.recurrent[1]);
    const float g = tanhf(z.input[2] + z.recurrent[2]), out = sigmoid(z.input[3] + z.recurrent[3]);
    const float c = forget * (parent == 0 ? 0 : side.c[parent * H + k]) + in * g;
    float* kept = side.gates + node * kKept * H + k;
    kept[0] = in;
    kept[H] = forget;
    kept[2 * H] = g;
    kept[3 * H] = out;
    side.c[node * H + k] = c;
    side.h[node * H + k] = out * tanhf(c);
  }

  // The way back of one value; `dh` is whole, `dc` what children gave. Returns what the parent's `dc` gets.
  static __device__ float climb(const LstmSide& side, int64_t H, int64_t node, int64_t parent, int64_t k, float dh,
                                float dc, Gates<kGates>& dz) {
    const float* kept = side.gates + node * kKept * H + k;
    const float in = kept[0], forget = kept[H], g = kept[2 * H], out = kept[3 * H];
    const float tanh_c = tanhf(side.c[node * H + k]);
    const float c_before = parent == 0 ? 0 : side.c[parent * H + k];
    dc += dh * out * (1 - tanh_c * tanh_c);
    const float slopes[kGates] = {dc * g * in * (1 - in), dc * c_before * forget * (1 - forget), dc * in * (1 - g * g),
                                  dh * tanh_c * out * (1 - out)};
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) dz.input[gate] = dz.recurrent[gate] = slopes[gate];
    return dc * forget;
  }
};

struct Gru {
  static constexpr int kGates = 3;

  static __device__ void step(const LstmSide& side, int64_t H, int64_t node, int64_t parent, int64_t k,
                              const Gates<kGates>& x) {
    const float r = sigmoid(x.input[0] + x.recurrent[0]), z = sigmoid(x.input[1] + x.recurrent[1]);
    const float u = x.recurrent[2], n = tanhf(x.input[2] + r * u);
    const float before = parent == 0 ? 0 : side.h[parent * H + k];
    float* kept = side.gates + node * kKept * H + k;
    kept[0] = r;
    kept[H] = z;
    kept[2 * H] = n;
    kept[3 * H] = u;
    side.h[node * H + k] = n + z * (before - n);
  }

  static __device__ float climb(const LstmSide& side, int64_t H, int64_t node, int64_t parent, int64_t k, float dh,
                                float past, Gates<kGates>& dx) {
    const float* kept = side.gates + node * kKept * H + k;
    const float r = kept[0], z = kept[H], n = kept[2 * H], u = kept[3 * H];
    const float before = parent == 0 ? 0 : side.h[parent * H + k];
    dh += past;
    const float dn = dh * (1 - z) * (1 - n * n);
    dx.input[0] = dx.recurrent[0] = dn * u * r * (1 - r);
    dx.input[1] = dx.recurrent[1] = dh * (before - n) * z * (1 - z);
    dx.input[2] = dn;
    dx.recurrent[2] = dn * r;
    return dh * z;
  }
};

}  // namespace
}  // namespace streamvec::cuda
