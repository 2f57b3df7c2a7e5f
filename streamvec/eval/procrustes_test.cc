#include "streamvec/eval/procrustes.h"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>

#include "streamvec/eval/gram.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

constexpr int64_t kTurnedRows = 300, kTurnedDim = 12;

Eigen::MatrixXd random_rotation() {
  return Eigen::HouseholderQR<Eigen::MatrixXd>(dense(random_matrix(kTurnedDim, kTurnedDim, 7))).householderQ();
}

Matrix turned(const Matrix& rows, const Eigen::MatrixXd& rotation) {
  Matrix result = Matrix::make(rows.rows(), rows.cols()).value();
  multiply(rows.view(), rotation, result.view());
  return result;
}

TEST(BestRotation, FindsTheRotationThatWasPlanted) {
  const Matrix rows = random_matrix(kTurnedRows, kTurnedDim, 1);
  const Eigen::MatrixXd rotation = random_rotation();
  const Eigen::MatrixXd found = best_rotation(rows.view(), turned(rows, rotation).view());
  EXPECT_LT((found - rotation).norm(), 1e-4);
  EXPECT_LT((found.transpose() * found - Eigen::MatrixXd::Identity(kTurnedDim, kTurnedDim)).norm(), 1e-9);
}

TEST(AlignOnStable, RowsThatMovedDoNotPullTheOthersAlong) {
  const Matrix rows = unit_rows(random_matrix(kTurnedRows, kTurnedDim, 1).view()).value();
  const Eigen::MatrixXd rotation = random_rotation();
  Matrix later = turned(rows, rotation);
  for (int64_t i = 0; i < kTurnedRows; i += 5)  // a fifth of the words all went the same way
    for (int64_t j = 0; j < kTurnedDim; ++j) later.row(i)[j] = j == 0 ? 1 : 0;
  const Alignment alignment = align_on_stable(rows.view(), later.view(), {}).value();
  EXPECT_LT((alignment.rotation - rotation).norm(), 1e-4);
  EXPECT_EQ(alignment.stable.size(), static_cast<size_t>(kTurnedRows * 7 / 10));
  for (const int32_t row : alignment.stable) EXPECT_NE(row % 5, 0);
}

TEST(AlignOnStable, RestsOnTheFirstRowsAlone) {
  const Matrix rows = unit_rows(random_matrix(kTurnedRows, kTurnedDim, 1).view()).value();
  const Matrix noise = unit_rows(random_matrix(kTurnedRows, kTurnedDim, 2).view()).value();
  const Eigen::MatrixXd rotation = random_rotation();
  Matrix later = turned(rows, rotation);
  for (int64_t i = 100; i < kTurnedRows; ++i) std::copy_n(noise.row(i), kTurnedDim, later.row(i));
  AlignOptions options;
  options.anchors_max = 100;
  EXPECT_LT((align_on_stable(rows.view(), later.view(), options).value().rotation - rotation).norm(), 1e-4);
}

}  // namespace
}  // namespace streamvec
