// The arithmetic of sending changes of rows in few bits (sync/codec.h), with Highway and run-time dispatch. Rows start
// on 64-byte boundaries and are padded with zeros to a multiple of 16 floats; `dim` is the length without padding, and
// the padding stays zero.
#pragma once

#include <cstdint>

namespace streamvec {

// What a bit of a row stands for: the mean of its values at or above zero, and of those below.
struct OneBitLevels {
  float high = 0, low = 0;
};

// Bit k (from the least of byte 0 on) is set where row[k] >= 0; the bits past dim in the last byte are not. The sum of
// the squared errors is the smallest that one bit a value can have with this cut. REQUIRES: room for (dim + 7) / 8
// bytes.
OneBitLevels onebit_encode(const float* row, int32_t dim, uint8_t* bits);
void onebit_decode(const uint8_t* bits, OneBitLevels levels, int32_t dim, float* row);

// IEEE half precision, rounded to nearest even; what is larger becomes the largest finite value.
void half_encode(const float* row, float scale, int32_t dim, uint16_t* halves);
void half_decode(const uint16_t* halves, float scale, int32_t dim, float* row);
// The largest magnitude of the row.
float largest_magnitude(const float* row, int32_t dim);

// What one pass over a row and what is known of it yields: the squared lengths of the change and of what is known.
struct ChangeSquares {
  float change = 0, known = 0;
};
// change = live - known, padding included.
ChangeSquares take_change(const float* live, const float* known, int32_t dim, float* change);
// b += to - from, a += share * (to - from).
void shift_both(const float* to, const float* from, float share, int32_t dim, float* a, float* b);
// Asks for the row's cache lines: a row is needed soon.
inline void fetch_row(const float* row, int32_t dim) {
  for (int32_t k = 0; k < dim; k += 16) __builtin_prefetch(row + k);
}
// Likewise, and to be written: a line that another core has changed crosses over once, not twice.
inline void fetch_row_to_write(const float* row, int32_t dim) {
#if defined(__x86_64__)
  for (int32_t k = 0; k < dim; k += 16) asm volatile("prefetchw %0" : : "m"(row[k]));
#else
  for (int32_t k = 0; k < dim; k += 16) __builtin_prefetch(row + k, 1);
#endif
}

// out = x * a + y * b; out may be a or b.
void blend(const float* a, float x, const float* b, float y, int32_t dim, float* out);

}  // namespace streamvec
