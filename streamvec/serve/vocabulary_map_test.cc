#include "streamvec/serve/vocabulary_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "streamvec/serve/test_models.h"

namespace streamvec {
namespace {

double distance(const MapPoint& a, const MapPoint& b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

// The share of words whose nearest word in the picture is of their own group.
double grouped_share(const MapFrame& frame) {
  int64_t same = 0;
  for (const MapPoint& point : frame.points) {
    const MapPoint* nearest = nullptr;
    for (const MapPoint& other : frame.points)
      if (&other != &point && (nearest == nullptr || distance(point, other) < distance(point, *nearest)))
        nearest = &other;
    same += nearest->word.substr(0, 2) == point.word.substr(0, 2);
  }
  return static_cast<double>(same) / static_cast<double>(frame.points.size());
}

double median_move(const MapFrame& before, const MapFrame& now) {
  std::map<std::string, const MapPoint*> places;
  for (const MapPoint& point : before.points) places[point.word] = &point;
  std::vector<double> moves;
  for (const MapPoint& point : now.points)
    if (const auto known = places.find(point.word); known != places.end())
      moves.push_back(distance(point, *known->second));
  std::nth_element(moves.begin(), moves.begin() + std::ssize(moves) / 2, moves.end());
  return moves[moves.size() / 2];
}

TEST(VocabularyMap, BringsWordsOfAGroupTogether) {
  VocabularyMap map;
  const auto frame = map.update(*served(grouped_snapshot(6, 30, 24))).value();
  ASSERT_EQ(frame->points.size(), 180u);
  EXPECT_GT(grouped_share(*frame), 0.9);
  for (const MapPoint& point : frame->points) {
    EXPECT_LT(std::hypot(point.x, point.y), 3);
    EXPECT_TRUE(point.group >= 0 && point.group < kMapGroups);
  }
}

TEST(VocabularyMap, MovesLittleWhenTheModelDoes) {
  VocabularyMap map;
  const auto first = map.update(*served(grouped_snapshot(6, 30, 24, 1))).value();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(map.update(*served(grouped_snapshot(6, 30, 24, 1))).ok());
  const auto settled = map.update(*served(grouped_snapshot(6, 30, 24, 1))).value();
  const auto changed = map.update(*served(grouped_snapshot(6, 30, 24, 2))).value();
  EXPECT_LT(median_move(*settled, *changed), 0.1);
  EXPECT_LT(median_move(*first, *changed), 0.5);
  EXPECT_GT(grouped_share(*changed), 0.9);
}

TEST(VocabularyMap, KeepsItsSpreadOverManyFrames) {
  VocabularyMap map;
  const auto spread = [](const MapFrame& frame) {
    double sum = 0;
    for (const MapPoint& point : frame.points) sum += std::hypot(point.x, point.y);
    return sum / static_cast<double>(frame.points.size());
  };
  const double first = spread(*map.update(*served(grouped_snapshot(6, 30, 24, 1))).value());
  double last = 0;
  for (uint64_t seed = 2; seed < 40; ++seed)
    last = spread(*map.update(*served(grouped_snapshot(6, 30, 24, seed))).value());
  EXPECT_GT(last, first / 2);
  EXPECT_LT(last, first * 2);
}

TEST(VocabularyMap, FollowsAWordThatMoves) {
  VocabularyMap map;
  const auto before = map.update(*served(grouped_snapshot(4, 30, 24))).value();
  auto snapshot = grouped_snapshot(4, 30, 24);
  const Slot mover = snapshot->vocabulary.find("g0w0"), goal = snapshot->vocabulary.find("g1w0");
  std::copy_n(snapshot->input.row(goal), 24, snapshot->input.row(mover));
  const auto moved = served(snapshot);
  auto now = map.update(*moved).value();
  for (int i = 0; i < 30; ++i) now = map.update(*moved).value();
  const auto at = [](const MapFrame& frame, const std::string& word) {
    return *std::find_if(frame.points.begin(), frame.points.end(),
                         [&](const auto& point) { return point.word == word; });
  };
  EXPECT_LT(distance(at(*now, "g0w0"), at(*now, "g1w0")), distance(at(*before, "g0w0"), at(*before, "g1w0")) / 2);
}

TEST(VocabularyMap, IsTheSameForTheSameSeed) {
  VocabularyMap a, b;
  const auto x = a.update(*served(grouped_snapshot(3, 20, 16))).value(),
             y = b.update(*served(grouped_snapshot(3, 20, 16))).value();
  for (size_t i = 0; i < x->points.size(); ++i) EXPECT_EQ(x->points[i].x, y->points[i].x);
}

TEST(VocabularyMap, HasAFrameForAnyModel) {
  VocabularyMap map;
  EXPECT_TRUE(map.update(*served(grouped_snapshot(0, 0, 4))).value()->points.empty());
  EXPECT_TRUE(map.update(*served(grouped_snapshot(1, 2, 4))).value()->points.empty());
  EXPECT_EQ(map.update(*served(grouped_snapshot(1, 3, 4))).value()->points.size(), 3u);
  auto zeros = std::make_shared<Snapshot>();
  for (int i = 0; i < 9; ++i) zeros->vocabulary.add("w" + std::to_string(i), 1);
  zeros->input = Matrix::make(9, 4).value();
  const auto frame = map.update(*served(zeros)).value();
  for (const MapPoint& point : frame->points) EXPECT_TRUE(std::isfinite(point.x) && std::isfinite(point.y));
}

TEST(VocabularyMap, ShowsSoManyWordsWithoutTheVeryFirst) {
  VocabularyMap map({.words_max = 100, .skipped = 10});
  const auto frame = map.update(*served(grouped_snapshot(2, 100, 8))).value();
  ASSERT_EQ(frame->points.size(), 100u);
  EXPECT_EQ(frame->points[0].count, 10'000 - 10);
}

}  // namespace
}  // namespace streamvec
