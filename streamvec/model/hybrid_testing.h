// What the tests of the hybrid's generator share, whichever way it is taught.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/model/hybrid.h"

namespace streamvec::testing {

inline std::vector<float> made_of(const Hybrid& hybrid, std::string_view word) {
  const int64_t dim = hybrid.options().dim;
  Matrix row = std::move(Matrix::make(1, dim)).value();
  hybrid.make_vector(word, row.row(0));
  return {row.row(0), row.row(0) + dim};
}

inline int64_t place_of_largest(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

inline double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2);
  return std::sqrt(sum);
}

}  // namespace streamvec::testing
