// Floats in half the bytes, as the upper half of each (bf16), rounded to the nearest, ties to even; with Highway and
// run-time dispatch, the same bits on every CPU. What is not finite stays so. Any number of values at any address.
#pragma once

#include <cstdint>

namespace streamvec {

void bf16_encode(const float* values, int64_t count, uint16_t* halves);
void bf16_decode(const uint16_t* halves, int64_t count, float* values);
// halves = (halves + values) / divisor, summed in f32.
void bf16_add(const float* values, float divisor, int64_t count, uint16_t* halves);

}  // namespace streamvec
