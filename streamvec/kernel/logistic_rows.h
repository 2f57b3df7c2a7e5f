// The logistic loss of rows of products, with Highway and run-time dispatch. Rows start on 64-byte boundaries and are
// padded to a multiple of 16 floats.
#pragma once

#include <cstdint>

namespace streamvec {

// a . b. REQUIRES: the padding of one of them is zero, that of the other finite.
float dot(const float* a, const float* b, int32_t dim);

// For products g that should be low (negatives): replaces g by -weight * sigma(g), the slope of
// -weight * log(1 + exp(g)), and returns the sum of weight * log(1 + exp(g)). REQUIRES: the padding of weights is zero,
// that of the products finite.
double climb_negatives(const float* weights, int32_t count, float* products);

}  // namespace streamvec
