#include "streamvec/serve/vocabulary_map.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/core/random.h"
#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/top_k.h"
#include "streamvec/model/widest_directions.h"

namespace streamvec {
namespace {

constexpr float kSpread = 10;  // of the places while they are laid out: UMAP's scale
constexpr float kCurve =
    1.58f;                     // words nearer than about 0.1 of it are near enough; b is 1, so that no power is needed
constexpr int kPushes = 5;     // for each pull
constexpr float kStepMax = 4;  // of one pull or push, before the rate
constexpr int kGroupRounds = 4;  // of k-means, from the last frame's centres

struct Point {
  float x = 0, y = 0;
};

// Frequent words, without the very first ones where there are enough.
std::vector<Slot> words_shown(const ServedModel& model, int64_t words_max, int64_t skipped) {
  const int64_t left_out = model.vocabulary().size() >= 4 * skipped ? skipped : 0;
  const auto slots = model.most_frequent(words_max + left_out);
  return {slots.begin() + static_cast<int64_t>(std::min<size_t>(slots.size(), static_cast<size_t>(left_out))),
          slots.end()};
}

// Their vectors without what all have in common, of length 1.
Result<Matrix> centred_rows(const ServedModel& model, const std::vector<Slot>& slots) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, unit_rows(model.snapshot().input.view(), slots));
  std::vector<double> mean(static_cast<size_t>(rows.cols()));
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (size_t j = 0; j < mean.size(); ++j) mean[j] += double{rows.row(i)[j]} / static_cast<double>(rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (size_t j = 0; j < mean.size(); ++j) rows.row(i)[j] -= static_cast<float>(mean[j]);
  return unit_rows(rows.view());
}

// neighbours[i * k ..]: the k nearest of row i, -1 where there are no more.
std::vector<int32_t> find_neighbours(const Matrix& rows, int32_t k) {
  std::vector<int32_t> own(static_cast<size_t>(rows.rows()));
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::span<const int32_t>> excluded;
  for (const int32_t& row : own) excluded.push_back(std::span(&row, 1));
  std::vector<Hit> hits(own.size() * static_cast<size_t>(k));
  top_k(rows.view(), rows.view(), excluded, k, hits);
  std::vector<int32_t> neighbours;
  for (const Hit& hit : hits) neighbours.push_back(hit.row);
  return neighbours;
}

Result<std::vector<Point>> main_plane(const Matrix& rows) {
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix plane, widest_directions(rows.view(), 2));
  const auto along = [&](int64_t row, int64_t direction) {
    return kSpread * dot(rows.row(row), plane.row(direction), static_cast<int32_t>(rows.cols()));
  };
  std::vector<Point> points(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < rows.rows(); ++i) points[static_cast<size_t>(i)] = {along(i, 0), along(i, 1)};
  return points;
}

void move(Point& a, Point* b, float strength, float rate, float dx, float dy) {
  const float x = std::clamp(strength * dx, -kStepMax, kStepMax) * rate;
  const float y = std::clamp(strength * dy, -kStepMax, kStepMax) * rate;
  a.x += x, a.y += y;
  if (b != nullptr) b->x -= x, b->y -= y;
}

// Stochastic descent on UMAP's cross entropy, neighbours weighed alike.
void lay_out(const std::vector<int32_t>& neighbours, int32_t k, int32_t rounds, float rate_first, Random& random,
             std::vector<Point>& points) {
  for (int32_t round = 0; round < rounds; ++round) {
    const float rate = rate_first * (1 - static_cast<float>(round) / static_cast<float>(rounds));
    for (size_t i = 0; i < points.size(); ++i)
      for (int32_t n = 0; n < k; ++n) {
        const int32_t other = neighbours[i * static_cast<size_t>(k) + static_cast<size_t>(n)];
        if (other < 0) break;
        Point &a = points[i], &b = points[static_cast<size_t>(other)];
        float dx = a.x - b.x, dy = a.y - b.y, square = dx * dx + dy * dy;
        move(a, &b, -2 * kCurve / (1 + kCurve * square), rate, dx, dy);
        for (int push = 0; push < kPushes; ++push) {
          const Point& c = points[random.below(static_cast<uint32_t>(points.size()))];
          if (&c == &a) continue;
          dx = a.x - c.x, dy = a.y - c.y, square = dx * dx + dy * dy;
          move(a, nullptr, 2 / ((0.001f + square) * (1 + kCurve * square)), rate, dx, dy);
        }
      }
  }
}

// Moves all points so that the middle of those is 0 and 98% lie within kSpread.
void settle(std::vector<Point>& points) {
  Point middle;
  for (const Point& point : points)
    middle.x += point.x / static_cast<float>(points.size()), middle.y += point.y / static_cast<float>(points.size());
  std::vector<float> lengths;
  for (Point& point : points) {
    point.x -= middle.x, point.y -= middle.y;
    lengths.push_back(std::hypot(point.x, point.y));
  }
  const auto most = lengths.begin() + static_cast<int64_t>(lengths.size() - 1) * 98 / 100;
  std::nth_element(lengths.begin(), most, lengths.end());
  const float scale = *most > 0 ? kSpread / *most : 1;
  for (Point& point : points) point.x *= scale, point.y *= scale;
}

// Turns `points` so that those with a place before come nearest to it (Procrustes in the plane); their spread stays
// what settle() makes it. Scaled for the least squares as well, the picture would shrink a little with every frame.
void align(const std::vector<std::pair<size_t, Point>>& before, std::vector<Point>& points) {
  if (before.size() < 3) return settle(points);
  Point mean, old_mean;
  const auto count = static_cast<float>(before.size());
  for (const auto& [i, old] : before) {
    mean.x += points[i].x / count, mean.y += points[i].y / count;
    old_mean.x += old.x / count, old_mean.y += old.y / count;
  }
  double same = 0, across = 0;  // of points and places as complex numbers: sum conj(p) q
  for (const auto& [i, old] : before) {
    const double px = points[i].x - mean.x, py = points[i].y - mean.y, qx = old.x - old_mean.x, qy = old.y - old_mean.y;
    same += px * qx + py * qy;
    across += px * qy - py * qx;
  }
  const double length = std::hypot(same, across);
  if (!(length > 0)) return settle(points);
  const auto turn_x = static_cast<float>(same / length), turn_y = static_cast<float>(across / length);
  for (Point& point : points) {
    const float x = point.x - mean.x, y = point.y - mean.y;
    point = {turn_x * x - turn_y * y, turn_x * y + turn_y * x};
  }
  settle(points);
}

// Spherical k-means from the last centres: a group keeps its number, and so its colour, from frame to frame.
std::vector<int32_t> find_groups(const Matrix& rows, Random& random, std::vector<float>& centres) {
  const auto cols = static_cast<size_t>(rows.cols());
  const auto count = static_cast<size_t>(rows.rows());
  if (centres.size() != kMapGroups * cols) {
    centres.assign(kMapGroups * cols, 0);
    for (size_t g = 0; g < kMapGroups; ++g)
      std::copy_n(rows.row(static_cast<int64_t>(random.below(static_cast<uint32_t>(count)))), cols,
                  centres.begin() + static_cast<int64_t>(g * cols));
  }
  std::vector<int32_t> groups(count);
  for (int round = 0; round < kGroupRounds; ++round) {
    std::vector<Hit> hits(count);
    const MatrixView<const float> view{centres.data(), kMapGroups, rows.cols(), rows.cols()};
    top_k(view, rows.view(), {}, 1, hits);
    std::vector<float> sums(centres.size());
    for (size_t i = 0; i < count; ++i) {
      groups[i] = std::max(hits[i].row, 0);
      float* sum = sums.data() + static_cast<size_t>(groups[i]) * cols;
      for (size_t j = 0; j < cols; ++j) sum[j] += rows.row(static_cast<int64_t>(i))[j];
    }
    for (size_t g = 0; g < kMapGroups; ++g) {
      const float* sum = sums.data() + g * cols;
      const float length = std::sqrt(std::inner_product(sum, sum + cols, sum, 0.0f));
      if (length > 0)
        for (size_t j = 0; j < cols; ++j) centres[g * cols + j] = sum[j] / length;
    }
  }
  return groups;
}

}  // namespace

Result<std::shared_ptr<const MapFrame>> VocabularyMap::update(const ServedModel& model) {
  auto frame = std::make_shared<MapFrame>();
  frame->model_number = model.number();
  frame->step = model.snapshot().step;
  const std::vector<Slot> slots = words_shown(model, options_.words_max, options_.skipped);
  if (slots.size() < 3) return std::shared_ptr<const MapFrame>(frame);
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix rows, centred_rows(model, slots));
  Random random(mix(options_.seed, static_cast<uint64_t>(frames_)));
  const auto k = static_cast<int32_t>(std::min<int64_t>(options_.neighbours, rows.rows() - 1));
  const std::vector<int32_t> neighbours = find_neighbours(rows, k);
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<Point> points, main_plane(rows));
  std::vector<std::pair<size_t, Point>> before;
  for (size_t i = 0; i < slots.size(); ++i)
    if (const auto known = last_.find(std::string(model.vocabulary().word(slots[i]))); known != last_.end()) {
      before.push_back({i, {known->second.x * kSpread, known->second.y * kSpread}});
    }
  const bool goes_on = before.size() * 2 > slots.size();
  if (goes_on) {
    align(before, points);
    for (const auto& [i, place] : before) points[i] = place;
  }
  // Young models change much: their first frames are laid out more freely.
  const float rate = !goes_on ? 1.0f : std::max(0.05f, 0.5f / static_cast<float>(1 + frames_));
  lay_out(neighbours, k, goes_on ? options_.rounds_next : options_.rounds_first, rate, random, points);
  goes_on ? align(before, points) : settle(points);
  const std::vector<int32_t> groups = find_groups(rows, random, centres_);
  last_.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string word(model.vocabulary().word(slots[i]));
    const float x = points[i].x / kSpread, y = points[i].y / kSpread;
    last_[word] = {x, y};
    frame->points.push_back({word, model.vocabulary().count(slots[i]), x, y, groups[i]});
  }
  ++frames_;
  return std::shared_ptr<const MapFrame>(frame);
}

}  // namespace streamvec
