// Exact search by dot product: every row is looked at, none is guessed. Over unit rows the score is the cosine.
// A few queries are answered by one pass over the rows (bound by memory); many by a blocked matrix product whose
// tiles stay in registers (bound by arithmetic). A plain reference of each stands beside it and is tested against it.
//
// Every function is thread-safe, runs in the calling thread and picks the widest instructions of this machine when
// it is called. Equal input gives equal bits on one machine, and rows with equal values get equal scores.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "streamvec/core/matrix.h"

namespace streamvec {

// A row and its score. The default stands for "no more rows".
struct Hit {
  int32_t row = -1;
  float score = -std::numeric_limits<float>::infinity();

  friend bool operator==(const Hit&, const Hit&) = default;
};

// Writes the k best rows of query q to hits[q * k ..], best first; of equal scores the lower row comes first. When
// fewer than k rows are left, default Hits follow. A row with NaN is never a hit.
// `excluded` is empty, or names for every query the (few) rows that must not be among its hits.
// REQUIRES: k > 0, queries.cols == rows.cols, hits.size() == queries.rows * k.
void top_k(MatrixView<const float> rows, MatrixView<const float> queries,
           std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits);
void top_k_reference(MatrixView<const float> rows, MatrixView<const float> queries,
                     std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits);

// The product of two rows, which may begin anywhere.
float inner_product(const float* x, const float* y, int64_t cols);

// "a is to b as c is to ...": three row numbers.
struct AnalogyQuestion {
  int32_t a = 0, b = 0, c = 0;
};

// The best row under both rules, a, b and c left out; -1 when there is no other row.
struct AnalogyAnswer {
  int32_t cos_add = -1;  // argmax_x  x.b - x.a + x.c                          (Mikolov, Yih, Zweig 2013)
  int32_t cos_mul = -1;  // argmax_x  s(x.b) s(x.c) / (s(x.a) + 0.001)          (Levy, Goldberg 2014)
                         //           s(t) = (1 + t) / 2
  friend bool operator==(const AnalogyAnswer&, const AnalogyAnswer&) = default;
};

// Answers all questions at once; of equal scores the lower row wins. Both rules need only the products of every row
// with the distinct words of the questions, and a question list names few words many times: 19,544 questions of the
// Google set name 905. So the matrix product is that small, and each question adds three of its rows.
// REQUIRES: unit rows (or zero), answers.size() == questions.size().
void best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                    std::span<AnalogyAnswer> answers);
void best_analogies_reference(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                              std::span<AnalogyAnswer> answers);

}  // namespace streamvec
