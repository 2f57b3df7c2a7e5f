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

// to += scale * what onebit_decode() makes of the bits.
void onebit_add(const uint8_t* bits, OneBitLevels levels, float scale, int32_t dim, float* to);

// Whole steps from -kFourBitMost to that, four bits each: of every 16 values the first eight in the lower halves of
// eight bytes, the others in the upper ones. REQUIRES: room for fourbit_bytes().
constexpr int32_t kFourBitMost = 7;
void fourbit_encode(const float* row, float steps_per_one, int32_t dim, uint8_t* nibbles);
void fourbit_decode(const uint8_t* nibbles, float step, int32_t dim, float* row);  // to any address
// to += scale * what fourbit_decode() makes of it.
void fourbit_add(const uint8_t* nibbles, float step, float scale, int32_t dim, float* to);
// A stage of a sum that goes from node to node in four bits a value: all = scale * (values + what `came` stands for) +
// left is said by `nibbles` in steps of the length returned, a seventh of the largest, and `left` keeps what they do
// not say. Where not all is finite, neither is the step. `came` may be null, or the same memory as `nibbles`; any
// address will do. REQUIRES: count is a multiple of 16.
float fourbit_pass_on(const float* values, const uint8_t* came, float came_step, float scale, int32_t count,
                      float* left, uint8_t* nibbles);
// The same in eight bits, a byte each: whole steps from -kEightBitMost to that.
constexpr int32_t kEightBitMost = 127;
void eightbit_decode(const int8_t* numbers, float step, int32_t count, float* row);
float eightbit_pass_on(const float* values, const int8_t* came, float came_step, float scale, int32_t count,
                       float* left, int8_t* numbers);
constexpr int32_t fourbit_bytes(int32_t dim) {
  return dim / 16 * 8 + (dim % 16 < 8 ? dim % 16 : 8);
}

// IEEE half precision, rounded to nearest even; what is larger becomes the largest finite value.
void half_encode(const float* row, float scale, int32_t dim, uint16_t* halves);
void half_decode(const uint16_t* halves, float scale, int32_t dim, float* row);
// The largest magnitude of the row.
float largest_magnitude(const float* row, int32_t dim);

// What one pass over a row and what is known of it yields: the squared lengths of the change and of what is known.
struct ChangeSquares {
  float change = 0, known = 0;
};
struct TakenChange : ChangeSquares {
  float largest = 0;  // magnitude of the change
};
// change = live - known, padding included.
TakenChange take_change(const float* live, const float* known, int32_t dim, float* change);
// onebit_encode() of live - known, which is never written down.
ChangeSquares onebit_encode_change(const float* live, const float* known, int32_t dim, uint8_t* bits,
                                   OneBitLevels& levels);
// b += to - from, a += share * (to - from).
void shift_both(const float* to, const float* from, float share, int32_t dim, float* a, float* b);
// A row that was changed by `sent` is told `to` instead: known += to, live += across * (to - sent), where the part of
// that along `direction`, which is of unit length or zero, counts by `along`.
void take_answer(const float* to, const float* sent, float across, float along, const float* direction, int32_t dim,
                 float* live, float* known);
// What one pass over a row yields beside a direction: their product and the row's squared length.
struct RowAlong {
  float product = 0, square = 0;
};
// next += weight * product * row: a step of power iteration.
RowAlong add_along(const float* row, const float* direction, float weight, int32_t dim, float* next);
// Asks for the row's cache lines: a row is needed soon. To the second cache: the first has room for 16 lines that are
// on their way, a row and a bit. Also for rows that will be written: to ask for those as such takes half as long again,
// even when another core has changed them (docs/BENCHMARKS.md, What a row costs).
inline void fetch_row(const float* row, int32_t dim) {
  for (int32_t k = 0; k < dim; k += 16) __builtin_prefetch(row + k, 0, 2);
}

constexpr int kFetchAhead = 4;  // rows: one from memory takes longer than one to work on

// out = x * a + y * b; out may be a or b.
void blend(const float* a, float x, const float* b, float y, int32_t dim, float* out);

}  // namespace streamvec
