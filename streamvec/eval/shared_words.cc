#include "streamvec/eval/shared_words.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/eval/gram.h"
#include "streamvec/eval/neighbours.h"

namespace streamvec {
namespace {

constexpr int64_t kCentreRows = 5'000;  // the mean of rare words is mostly noise

bool has_direction(std::span<const float> row) {
  double squares = 0;
  for (const float value : row) squares += double{value} * value;
  return squares > 0 && std::isfinite(squares);
}

double evidence_of(int64_t count_old, int64_t count_new) {
  if (count_old <= 0 || count_new <= 0) return 0;
  return 1 / (1 / static_cast<double>(count_old) + 1 / static_cast<double>(count_new));
}

// The slot of the word where its vector has a direction. An alias leads to another word's slot: that is not the same
// word.
Slot find_vector(const Snapshot& snapshot, std::string_view word) {
  const Slot slot = snapshot.vocabulary.find(word);
  if (slot == kNoSlot || snapshot.vocabulary.word(slot) != word) return kNoSlot;
  return has_direction(snapshot.input.view().row_span(slot)) ? slot : kNoSlot;
}

std::vector<SharedWord> match_words(const Snapshot& old_snapshot, const Snapshot& new_snapshot, double evidence_min,
                                    std::span<const Snapshot* const> others) {
  std::vector<SharedWord> words;
  for (Slot slot = 0; slot < old_snapshot.vocabulary.size(); ++slot) {
    const auto word = old_snapshot.vocabulary.word(slot);
    const Slot other = find_vector(new_snapshot, word);
    if (other == kNoSlot || find_vector(old_snapshot, word) != slot) continue;
    const double evidence = evidence_of(old_snapshot.vocabulary.count(slot), new_snapshot.vocabulary.count(other));
    if (evidence < evidence_min || evidence == 0) continue;
    if (std::all_of(others.begin(), others.end(), [&](const Snapshot* s) { return find_vector(*s, word) != kNoSlot; }))
      words.push_back({slot, other, evidence});
  }
  return words;
}

Result<Matrix> centred_rows(const Snapshot& snapshot, std::span<const Slot> slots) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, unit_rows(snapshot.input.view(), slots));
  const int64_t centre_rows = std::min(kCentreRows, rows.rows());
  if (centre_rows == 0) return rows;
  const Eigen::VectorXf mean =
      (column_sums({rows.row(0), centre_rows, rows.cols(), rows.stride()}) / static_cast<double>(centre_rows))
          .cast<float>();
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (int64_t j = 0; j < rows.cols(); ++j) rows.row(i)[j] -= mean[j];
  return unit_rows(rows.view());
}

float dot(const Matrix& rows, int64_t i, int64_t j) {
  return std::inner_product(rows.row(i), rows.row(i) + rows.cols(), rows.row(j), 0.0f);
}

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>> map_rows(const Matrix& rows, int64_t begin, int64_t count) {
  return {rows.row(begin), count, rows.cols(), Eigen::OuterStride<>(rows.stride())};
}

// The first `count` rows that are not left out (empty: none is); all when those are fewer than half as many.
std::vector<int64_t> first_staying(int64_t rows, int64_t count, const std::vector<bool>& left_out) {
  count = std::min(count, rows);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < rows && std::ssize(chosen) < count; ++i)
    if (left_out.empty() || !left_out[static_cast<size_t>(i)]) chosen.push_back(i);
  if (2 * std::ssize(chosen) >= count) return chosen;
  chosen.resize(static_cast<size_t>(count));
  std::iota(chosen.begin(), chosen.end(), int64_t{0});
  return chosen;
}

RowMajor gather(const Matrix& rows, std::span<const int64_t> chosen) {
  RowMajor gathered(std::ssize(chosen), rows.cols());
  for (int64_t i = 0; i < std::ssize(chosen); ++i)
    std::copy_n(rows.row(chosen[static_cast<size_t>(i)]), rows.cols(), gathered.row(i).data());
  return gathered;
}

double cosine_change(const Matrix& old_rows, const Matrix& new_rows, int64_t i, int64_t j) {
  return double{dot(new_rows, i, j)} - double{dot(old_rows, i, j)};
}

struct Covariance {
  double x = 0, y = 0, xy = 0;
  int32_t count = 0;

  void add(double a, double b) { x += a, y += b, xy += a * b, ++count; }
  double value() const { return count > 0 ? xy / count - (x / count) * (y / count) : 0; }
};

struct Spread {
  double sum = 0, squares = 0;
  int32_t count = 0;

  void add(double value) { sum += value, squares += value * value, ++count; }
  double deviation() const {
    const double mean = count > 0 ? sum / count : 0;
    return count > 0 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) : 0;
  }
};

}  // namespace

Result<SharedWords> share_words(const Snapshot& old_snapshot, const Snapshot& new_snapshot, double evidence_min,
                                int64_t words_max, std::span<const Snapshot* const> others) {
  std::vector<const Snapshot*> all(others.begin(), others.end());
  all.push_back(&new_snapshot);
  for (const Snapshot* snapshot : all)
    if (snapshot->dim() != old_snapshot.dim())
      return error(Code::kInvalidArgument, "vectors of ", old_snapshot.dim(), " and of ", snapshot->dim(),
                   " values cannot be compared; compare snapshots of one model");
  SharedWords shared;
  shared.words = match_words(old_snapshot, new_snapshot, evidence_min, others);
  std::stable_sort(shared.words.begin(), shared.words.end(),
                   [](const SharedWord& a, const SharedWord& b) { return a.evidence > b.evidence; });
  if (shared.size() > words_max) shared.words.resize(static_cast<size_t>(words_max));
  const auto rows_of = [&](const Snapshot& snapshot) {
    std::vector<Slot> slots;
    for (const SharedWord& word : shared.words)
      slots.push_back(snapshot.vocabulary.find(old_snapshot.vocabulary.word(word.old_slot)));
    return centred_rows(snapshot, slots);
  };
  STREAMVEC_ASSIGN_OR_RETURN(shared.old_rows, rows_of(old_snapshot));
  STREAMVEC_ASSIGN_OR_RETURN(shared.new_rows, rows_of(new_snapshot));
  for (const Snapshot* other : others) {
    STREAMVEC_ASSIGN_OR_RETURN(shared.other_rows.emplace_back(), rows_of(*other));
  }
  return shared;
}

NeighbourTable find_neighbours(const Matrix& rows, int64_t candidates, int32_t k) {
  candidates = std::min(candidates, rows.rows());
  NeighbourTable table;
  table.k = static_cast<int32_t>(std::clamp<int64_t>(k, 0, candidates - 1));
  if (table.k == 0) return table;  // of() is then empty
  std::vector<int32_t> own(static_cast<size_t>(rows.rows()));
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::span<const int32_t>> excluded;
  for (const int32_t& row : own) excluded.emplace_back(&row, 1);
  table.hits.resize(own.size() * static_cast<size_t>(table.k));
  top_k({rows.row(0), candidates, rows.cols(), rows.stride()}, rows.view(), excluded, table.k, table.hits);
  return table;
}

std::vector<double> neighbour_changes(const SharedWords& shared, const NeighbourTable& old_neighbours,
                                      const NeighbourTable& new_neighbours, int32_t k,
                                      const std::vector<bool>& left_out) {
  std::vector<double> changes(shared.words.size());
  for (int64_t i = 0; i < shared.size(); ++i) {
    Spread all, staying;
    const auto add = [&](const Hit& hit, double difference) {
      all.add(difference);
      if (left_out.empty() || !left_out[static_cast<size_t>(hit.row)]) staying.add(difference);
    };
    for (const Hit& hit : old_neighbours.of(i, k))
      if (hit.row >= 0) add(hit, double{dot(shared.new_rows, i, hit.row)} - double{hit.score});
    for (const Hit& hit : new_neighbours.of(i, k))
      if (hit.row >= 0) add(hit, double{hit.score} - double{dot(shared.old_rows, i, hit.row)});
    changes[static_cast<size_t>(i)] = (staying.count >= k ? staying : all).deviation();
  }
  return changes;
}

std::vector<double> agreed_neighbour_changes(const SharedWords& shared, const NeighbourTable& old_neighbours,
                                             const NeighbourTable& new_neighbours, int32_t k,
                                             const std::vector<bool>& left_out) {
  const std::vector<Matrix>& rows = shared.other_rows;
  std::vector<double> changes(shared.words.size());
  for (int64_t i = 0; i < shared.size(); ++i) {
    Covariance all, staying;
    for (const NeighbourTable* table : {&old_neighbours, &new_neighbours})
      for (const Hit& hit : table->of(i, k)) {
        if (hit.row < 0) continue;
        const double in_a = cosine_change(rows[0], rows[2], i, hit.row);
        const double in_b = cosine_change(rows[1], rows[3], i, hit.row);
        all.add(in_a, in_b);
        if (left_out.empty() || !left_out[static_cast<size_t>(hit.row)]) staying.add(in_a, in_b);
      }
    const double value = (staying.count >= k ? staying : all).value();
    changes[static_cast<size_t>(i)] = std::copysign(std::sqrt(std::abs(value)), value);
  }
  return changes;
}

std::vector<double> agreed_profile_changes(const SharedWords& shared, int64_t anchors,
                                           const std::vector<bool>& left_out) {
  constexpr int64_t kRowsAtOnce = 256;
  const std::vector<int64_t> chosen = first_staying(shared.size(), anchors, left_out);
  const std::vector<Matrix>& rows = shared.other_rows;
  std::vector<RowMajor> anchor_rows;
  for (const Matrix& half : rows) anchor_rows.push_back(gather(half, chosen));
  std::vector<double> changes(shared.words.size());
  for (int64_t begin = 0; begin < shared.size(); begin += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, shared.size() - begin);
    const auto centred_change = [&](size_t then, size_t now) -> RowMajor {
      RowMajor change = map_rows(rows[now], begin, count) * anchor_rows[now].transpose();
      change.noalias() -= map_rows(rows[then], begin, count) * anchor_rows[then].transpose();
      return change.colwise() - change.rowwise().mean();
    };
    const RowMajor in_a = centred_change(0, 2), in_b = centred_change(1, 3);
    const Eigen::VectorXf agreed = in_a.cwiseProduct(in_b).rowwise().mean();
    std::copy_n(agreed.data(), count, changes.begin() + begin);
  }
  return changes;
}

double jaccard(std::span<const Hit> a, std::span<const Hit> b) {
  const auto common = static_cast<double>(std::count_if(a.begin(), a.end(), [&](const Hit& hit) {
    return hit.row >= 0 && std::any_of(b.begin(), b.end(), [&](const Hit& other) { return other.row == hit.row; });
  }));
  const double all = static_cast<double>(a.size() + b.size()) - common;
  return all > 0 ? common / all : 0;
}

}  // namespace streamvec
