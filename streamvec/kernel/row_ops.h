// Small operations on single rows, with Highway and run-time dispatch. Rows start on 64-byte boundaries and are padded
// with zeros to a multiple of 16 floats; `dim` is the length without padding, and the padding stays zero.
#pragma once

#include <cstdint>

namespace streamvec {

// to += scale * from, which may begin anywhere if dim is a multiple of 16.
void add_scaled(const float* from, float scale, int32_t dim, float* to);
// to = from - to
void subtract_from(const float* from, int32_t dim, float* to);
// change = row - known, and known becomes what the row is.
void take_change(const float* row, int32_t dim, float* known, float* change);
// A part of a row becomes another: row += to - part, part = to.
void replace_part(const float* to, int32_t dim, float* part, float* row);
// row += share * (copy - base), and both become what the row then is.
void merge_row(float share, int32_t dim, float* copy, float* base, float* row);
// out = the mean of `count` rows. REQUIRES: count > 0; out is none of them.
void mean_of_rows(const float* const* rows, int32_t count, int32_t dim, float* out);
// Adds `step` to each of `count` rows; a row that is named twice gets it twice. REQUIRES: step is none of them.
void add_to_rows(const float* step, int32_t dim, float* const* rows, int32_t count);
// out = the sum of scales[i] * rows[i]; zeros when count is 0.
void sum_scaled_rows(const float* const* rows, const float* scales, int32_t count, int32_t dim, float* out);
// rows[i] += scales[i] * step; a row that is named twice gets both. REQUIRES: step is none of them.
void add_scaled_to_rows(const float* step, const float* scales, int32_t dim, float* const* rows, int32_t count);
// One coordinate of ridge regression's dual: with residual r = target - change, change = (r - noise * dual) / (noise +
// gain), dual += change. Returns the sum of r^2. REQUIRES: noise + gain > 0.
float dual_step(const float* target, float noise, float gain, int32_t dim, float* dual, float* change);
// The mean of the squares. The row may begin anywhere if dim is a multiple of 16.
float mean_square(const float* row, int32_t dim);

struct AdamRates {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
};
// One step of Adam (Kingma, Ba 2015) up the slope `gradient`, the row's `step`-th (from 1). No value moves further
// than gradients can make it (about 8 * lr), even where threads have torn the moments apart.
void adam_step(const float* gradient, float lr, int64_t step, const AdamRates& rates, int32_t dim, float* mean,
               float* variance, float* row);
// Nesterov's momentum: mean += (1 - momentum) * (slope - mean), and the slope is drawn to that by `momentum`.
// Rows may begin anywhere if dim is a multiple of 16.
void nesterov_step(float momentum, int32_t dim, float* mean, float* slope);

}  // namespace streamvec
