// What the tests of this folder share: small texts of slots, small models, dense forms of sparse things.
#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/eval/cooccurrence.h"
#include "streamvec/eval/sparse.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

using Sentences = std::vector<std::vector<Slot>>;

inline SentenceStream stream_of(Sentences sentences) {
  return [sentences = std::move(sentences)](const SentenceVisitor& visitor) -> Status {
    for (const std::vector<Slot>& sentence : sentences) visitor(sentence);
    return {};
  };
}

// Words 0 .. words - 1, lower ones more often, each sentence leaning to one residue of the slots: there is structure.
inline Sentences random_sentences(int32_t words, int32_t sentences, int32_t length, uint64_t seed) {
  Random random(seed);
  Sentences text(static_cast<size_t>(sentences));
  for (std::vector<Slot>& sentence : text) {
    const auto residue = static_cast<int32_t>(random.below(4));
    for (int32_t i = 0; i < length; ++i) {
      const float u = random.uniform();
      auto slot = static_cast<Slot>(u * u * static_cast<float>(words));
      if (random.below(3) > 0) slot = std::min(slot / 4 * 4 + residue, words - 1);
      sentence.push_back(slot);
    }
  }
  return text;
}

// Words "w0", "w1", ... counted from the text; a word that is not in it counts once.
inline Vocabulary vocabulary_of(const Sentences& text, int32_t words) {
  std::vector<int64_t> counts(static_cast<size_t>(words));
  for (const std::vector<Slot>& sentence : text)
    for (const Slot slot : sentence) ++counts[static_cast<size_t>(slot)];
  Vocabulary vocabulary;
  for (int32_t i = 0; i < words; ++i)
    vocabulary.add("w" + std::to_string(i), std::max<int64_t>(1, counts[static_cast<size_t>(i)]));
  return vocabulary;
}

inline Matrix random_matrix(int64_t rows, int64_t cols, uint64_t seed, float scale = 1) {
  Matrix matrix = Matrix::make(rows, cols).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) matrix.row(i)[j] = scale * (random.uniform() - 0.5f);
  return matrix;
}

inline Eigen::MatrixXd dense(const Matrix& matrix) {
  Eigen::MatrixXd result(matrix.rows(), matrix.cols());
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.cols(); ++j) result(i, j) = matrix.row(i)[j];
  return result;
}

inline Eigen::MatrixXd dense(const SparseMatrix& matrix) {
  Eigen::MatrixXd result = Eigen::MatrixXd::Zero(matrix.size(), matrix.size());
  for (int64_t i = 0; i < matrix.size(); ++i)
    for (int64_t k = matrix.begin[static_cast<size_t>(i)]; k < matrix.begin[static_cast<size_t>(i) + 1]; ++k)
      result(i, matrix.column[static_cast<size_t>(k)]) = matrix.value[static_cast<size_t>(k)];
  return result;
}

inline Eigen::MatrixXd dense(const PairCounts& counts) {
  Eigen::MatrixXd result = Eigen::MatrixXd::Zero(counts.size(), counts.size());
  for (Slot i = 0; i < counts.size(); ++i)
    for (int64_t k = counts.begin[static_cast<size_t>(i)]; k < counts.begin[static_cast<size_t>(i) + 1]; ++k) {
      const Slot j = counts.column[static_cast<size_t>(k)];
      result(i, j) = result(j, i) = counts.weight(k);
    }
  return result;
}

inline SparseMatrix sparse(const Eigen::MatrixXd& matrix) {
  SparseMatrix result;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
      if (matrix(i, j) == 0) continue;
      result.column.push_back(static_cast<int32_t>(j));
      result.value.push_back(static_cast<float>(matrix(i, j)));
    }
    result.begin.push_back(result.nonzeros());
  }
  return result;
}

}  // namespace streamvec
