#include "streamvec/eval/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "streamvec/eval/test_text.h"
#include "streamvec/model/common_part_testing.h"

namespace streamvec {
namespace {

// Words at 0, 10, 20, ... degrees, of rising length.
Snapshot fan(int count) {
  Snapshot snapshot;
  snapshot.input = Matrix::make(count, 2).value();
  for (int i = 0; i < count; ++i) {
    const Slot slot = snapshot.vocabulary.add("w" + std::to_string(i), 100 - i);
    snapshot.input.row(slot)[0] = static_cast<float>((i + 1) * std::cos(i * M_PI / 18));
    snapshot.input.row(slot)[1] = static_cast<float>((i + 1) * std::sin(i * M_PI / 18));
  }
  return snapshot;
}

// The square root of a positive matrix, by Denman's and Beavers' iteration. (Eigen's own takes half a minute to
// compile.)
Eigen::MatrixXd square_root(Eigen::MatrixXd root) {
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(root.rows(), root.cols());
  for (int i = 0; i < 30; ++i) {
    const Eigen::MatrixXd other = inverse.inverse();
    inverse = (inverse + root.inverse()) / 2;
    root = (root + other) / 2;
  }
  return root;
}

std::vector<Slot> slots_of(const Result<std::vector<Neighbour>>& neighbours) {
  std::vector<Slot> slots;
  for (const Neighbour& neighbour : neighbours.value()) slots.push_back(neighbour.slot);
  return slots;
}

TEST(NeighbourIndex, FindsTheNearestByAngleWithoutTheWordItself) {
  const Snapshot snapshot = fan(9);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  EXPECT_THAT(slots_of(index.nearest("w0", 3)), testing::ElementsAre(1, 2, 3));
  EXPECT_NEAR(index.nearest("w0", 1).value()[0].cosine, std::cos(M_PI / 18), 1e-6);
}

TEST(NeighbourIndex, MatchesADoubleScanOnRandomVectors) {
  Snapshot snapshot;
  snapshot.input = random_matrix(300, 37, 1);
  for (int i = 0; i < 300; ++i) snapshot.vocabulary.add("w" + std::to_string(i), 1);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  const Eigen::MatrixXd unit = dense(snapshot.input).rowwise().normalized();
  for (int word = 0; word < 300; word += 50) {
    Eigen::VectorXd cosines = unit * unit.row(word).transpose();
    cosines[word] = -2;
    const std::vector<Neighbour> found = index.nearest("w" + std::to_string(word), 5).value();
    for (const Neighbour& neighbour : found) {
      Eigen::Index best = 0;
      const double greatest = cosines.maxCoeff(&best);
      EXPECT_EQ(neighbour.slot, best);
      EXPECT_NEAR(neighbour.cosine, greatest, 1e-6);
      cosines[best] = -2;
    }
  }
}

TEST(NeighbourIndex, LooksOnlyAmongTheFirstSlotsWhenLimited) {
  const Snapshot snapshot = fan(9);
  const NeighbourIndex index = NeighbourIndex::make(snapshot, 3).value();
  EXPECT_THAT(slots_of(index.nearest("w8", 10)), testing::ElementsAre(2, 1, 0));
}

TEST(NeighbourIndex, AVectorsNeighboursIncludeTheWordThere) {
  const Snapshot snapshot = fan(5);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  EXPECT_THAT(slots_of(index.nearest(snapshot.input.view().row_span(2), 1)), testing::ElementsAre(2));
}

TEST(NeighbourIndex, ACombinationLeavesItsWordsOut) {
  const Snapshot snapshot = fan(9);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  const std::vector<WeightedWord> sum = {{"w2", 1}, {"w6", 1}};  // their middle is w4
  EXPECT_THAT(slots_of(index.nearest(sum, 3)), testing::UnorderedElementsAre(3, 4, 5));
  const std::vector<WeightedWord> difference = {{"w6", 1}, {"w2", -1}};  // at 130 degrees
  EXPECT_THAT(slots_of(index.nearest(difference, 2)), testing::ElementsAre(8, 7));
}

TEST(NeighbourIndex, SeeksWithoutTheCommonPartAndWithDirectionsEvenedOut) {
  constexpr int kWords = 300, kDim = 12;
  Snapshot snapshot;
  snapshot.input = random_matrix(kWords, kDim, 1);
  for (int i = 0; i < kWords; ++i) {
    snapshot.vocabulary.add("w" + std::to_string(i), 1'000 / (i + 1) + 1);
    for (int d = 0; d < kDim; ++d) snapshot.input.row(i)[d] *= static_cast<float>(d + 1);
  }
  const Eigen::MatrixXd own = dense(snapshot.input);
  std::vector<float> unseen(kDim);
  for (int d = 0; d < kDim; ++d) unseen[static_cast<size_t>(d)] = 0.5f * snapshot.input.row(7)[d];
  Eigen::VectorXd weights(kWords);
  for (int i = 0; i < kWords; ++i) {
    const auto count = static_cast<double>(snapshot.vocabulary.count(i));
    weights[i] = count / (count + 100);
  }
  const Eigen::MatrixXd squares = own.transpose() * weights.asDiagonal() * own;
  const Eigen::MatrixXd seen = (own * square_root(square_root(squares)).inverse()).rowwise().normalized();
  add_common_part(snapshot, std::vector<float>(kDim, 30), {{"unseen", unseen}});
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  for (const int word : {7, 100, 250}) {
    Eigen::VectorXd cosines = seen * seen.row(word).transpose();
    cosines[word] = -2;
    Eigen::Index best = 0;
    const double greatest = cosines.maxCoeff(&best);
    const Neighbour found = index.nearest("w" + std::to_string(word), 1).value()[0];
    EXPECT_EQ(found.slot, best);
    EXPECT_NEAR(found.cosine, greatest, 1e-4);
  }
  EXPECT_THAT(slots_of(index.nearest("unseen", 1)), testing::ElementsAre(7));
  EXPECT_THAT(slots_of(index.nearest(snapshot.input.view().row_span(2), 1)), testing::ElementsAre(2));
}

TEST(NeighbourIndex, CosineOfTwoWordsIsOfWholeVectors) {
  Snapshot snapshot = fan(9);
  add_common_part(snapshot, {-50, 20});
  EXPECT_GT(NeighbourIndex::make(snapshot).value().cosine("w0", "w8").value(), 0.9);
}

TEST(NeighbourIndex, ToAWordWithNothingOfItsOwnAllAreAsNear) {
  Snapshot snapshot = fan(9);
  add_common_part(snapshot, {-50, 20});
  const std::vector<Neighbour> found = NeighbourIndex::make(snapshot).value().nearest("unseen", 3).value();
  ASSERT_EQ(found.size(), 3u);
  for (const Neighbour& neighbour : found) EXPECT_EQ(neighbour.cosine, 0);
}

TEST(NeighbourIndex, CosineIsOfUnitVectorsAndFoldsCase) {
  const Snapshot snapshot = fan(9);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  EXPECT_NEAR(index.cosine("W1", "w7").value(), std::cos(M_PI / 3), 1e-6);
}

TEST(NeighbourIndex, SaysWhatIsWrongWithAQuery) {
  Snapshot snapshot = fan(3);
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  EXPECT_EQ(index.nearest("zebra", 1).status().code(), Code::kNotFound);
  EXPECT_THAT(index.cosine("w1", "zebra").status().message(), testing::HasSubstr("\"zebra\""));
  EXPECT_EQ(index.nearest(std::vector<WeightedWord>{{"zebra", 1}}, 1).status().code(), Code::kNotFound);
  EXPECT_EQ(index.nearest(std::vector<float>{1, 2, 3}, 1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(index.nearest(std::vector<float>{1, std::nanf("")}, 1).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(index.nearest("w0", 0).value().empty());
}

TEST(NeighbourIndex, RowsWithoutDirectionBecomeZeros) {
  Snapshot snapshot = fan(4);
  snapshot.input.row(1)[0] = std::nanf("");
  snapshot.input.row(2)[0] = snapshot.input.row(2)[1] = 0;
  const NeighbourIndex index = NeighbourIndex::make(snapshot).value();
  EXPECT_EQ(index.cosine("w1", "w0").value(), 0);
  EXPECT_EQ(index.cosine("w2", "w2").value(), 0);
  EXPECT_THAT(slots_of(index.nearest("w0", 1)), testing::ElementsAre(3));
}

}  // namespace
}  // namespace streamvec
