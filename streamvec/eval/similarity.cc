#include "streamvec/eval/similarity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "streamvec/eval/set_file.h"
#include "streamvec/eval/word_vector.h"

namespace streamvec {
namespace {

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + end + 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : std::numeric_limits<double>::quiet_NaN();
}

double cosine(std::span<const float> x, std::span<const float> y) {
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += double{x[i]} * x[i];
    yy += double{y[i]} * y[i];
    xy += double{x[i]} * y[i];
  }
  const double value = xy / std::sqrt(xx * yy);
  return std::isfinite(value) ? value : 0;
}

}  // namespace

Result<SimilaritySet> read_similarity_set(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<SetLine> lines, read_set_file(path));
  SimilaritySet set{set_name(path), {}};
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string>& fields = lines[i].fields;
    if (fields.size() != 3)
      return error(Code::kInvalidArgument, path, ":", lines[i].number, ": ", fields.size(),
                   " columns, wanted 3: word, word, score");
    const std::optional<double> score = parse_number(fields[2]);
    if (!score && i == 0) continue;  // a header
    if (!score)
      return error(Code::kInvalidArgument, path, ":", lines[i].number, ": the score \"", fields[2],
                   "\" is not a number");
    set.pairs.push_back({fields[0], fields[1], *score});
  }
  if (set.pairs.empty()) return error(Code::kInvalidArgument, path, " holds no word pairs, only a header");
  return set;
}

SimilarityResult measure_similarity(const Snapshot& snapshot, const SimilaritySet& set) {
  std::vector<double> cosines, scores;
  for (const SimilarityPair& pair : set.pairs) {
    const Result<WordVector> a = vector_of(snapshot, pair.a), b = vector_of(snapshot, pair.b);
    const bool known = a.ok() && b.ok();
    if (!known && snapshot.generator == nullptr) continue;
    cosines.push_back(known ? cosine(a->values, b->values) : 0);
    scores.push_back(pair.score);
  }
  return {set.name, spearman(cosines, scores), static_cast<int64_t>(set.pairs.size()),
          static_cast<int64_t>(scores.size())};
}

double spearman(std::span<const double> x, std::span<const double> y) {
  STREAMVEC_CHECK_EQ(x.size(), y.size());
  if (x.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  return pearson(average_ranks(x), average_ranks(y));
}

}  // namespace streamvec
