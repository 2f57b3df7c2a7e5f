#include "streamvec/api/word_vectors.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>

#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/set_file.h"
#include "streamvec/eval/word_vector.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/vectors.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/save_snapshot.h"

namespace streamvec {

struct WordVectors::State {
  Snapshot snapshot;
  std::string origin;  // for the state.json of a directory made of it
  std::mutex mutex;    // of the index while it is made
  std::optional<NeighbourIndex> index;

  // Made when it is first needed. A failure (no memory) is tried again by the next call.
  Result<const NeighbourIndex*> neighbours() {
    const std::lock_guard lock(mutex);
    if (!index) {
      STREAMVEC_ASSIGN_OR_RETURN(index, NeighbourIndex::make(snapshot));
    }
    return &*index;
  }
};

namespace {

constexpr double kRoundingError = 1e-6;  // of sums that would be 0, by the lengths of what was added

double dot(const auto& a, const auto& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](double x, double y) { return x * y; });
}

double length_of(const auto& vector) {
  return std::sqrt(dot(vector, vector));
}

void make_unit(std::vector<float>& vector) {
  const double length = length_of(vector);
  if (!(length > 0) || !std::isfinite(length)) return;
  const double scale = 1 / length;
  for (float& value : vector) value = static_cast<float>(value * scale);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

void add(std::vector<double>& sum, double weight, std::span<const float> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * values[i];
}

}  // namespace

WordVectors WordVectors::holding(Snapshot snapshot, std::string origin) {
  auto state = std::make_shared<State>();
  state->snapshot = std::move(snapshot);
  state->origin = std::move(origin);
  return WordVectors(std::move(state));
}

Result<WordVectors> WordVectors::load(const std::string& directory, std::vector<std::string>* notes) {
  STREAMVEC_ASSIGN_OR_RETURN(Snapshot snapshot, load_snapshot(directory, notes));
  return holding(std::move(snapshot), directory);
}

Result<WordVectors> WordVectors::import_vectors(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(Snapshot snapshot, streamvec::import_vectors(path));
  return holding(std::move(snapshot), path);
}

Result<WordVectors> WordVectors::from_vectors(std::span<const std::string> words, MatrixView<const float> vectors,
                                              std::span<const int64_t> counts) {
  const auto rows = static_cast<int64_t>(words.size());
  if (rows != vectors.rows || (!counts.empty() && counts.size() != words.size()))
    return error(Code::kInvalidArgument, rows, " words were given, ", vectors.rows, " vectors and ", counts.size(),
                 " counts");
  if (vectors.cols < 1 || vectors.cols > kDimMax)
    return error(Code::kInvalidArgument, "vectors of ", vectors.cols, " values were given; at least 1 is needed");
  STREAMVEC_ASSIGN_OR_RETURN(SnapshotBuilder builder, SnapshotBuilder::make(vectors.cols, rows));
  for (int64_t i = 0; i < rows; ++i) {
    const std::string& word = words[static_cast<size_t>(i)];
    const std::span<const float> values = vectors.row_span(i);
    if (!all_finite(values)) return error(Code::kInvalidArgument, "the vector of \"", word, "\" holds NaN or Inf");
    const int64_t count = counts.empty() ? 0 : counts[static_cast<size_t>(i)];
    if (count < 0) return error(Code::kInvalidArgument, "the count of \"", word, "\" is ", count);
    STREAMVEC_ASSIGN_OR_RETURN(float* row, builder.add(word, count));
    std::copy(values.begin(), values.end(), row);
  }
  return holding(builder.finish(), "vectors at hand");
}

Status WordVectors::save(const std::string& directory) const {
  return save_snapshot(snapshot(), state_->origin, directory);
}

Status WordVectors::export_vectors(const std::string& path, const std::string& format) const {
  STREAMVEC_ASSIGN_OR_RETURN(const VectorFormat parsed, parse_format(format));
  return streamvec::export_vectors(snapshot(), parsed, path);
}

const Snapshot& WordVectors::snapshot() const {
  return state_->snapshot;
}

Slot WordVectors::find(std::string_view word) const {
  return find_word(snapshot().vocabulary, word);
}

Result<std::vector<float>> WordVectors::get_vector(std::string_view word) const {
  STREAMVEC_ASSIGN_OR_RETURN(WordVector found, vector_of(snapshot(), word));
  return std::move(found.values);
}

Result<std::vector<float>> WordVectors::unit_vector(std::string_view word) const {
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<float> values, get_vector(word));
  make_unit(values);
  return values;
}

Result<std::vector<ScoredWord>> WordVectors::most_similar(const std::vector<WordOrVector>& positive,
                                                          const std::vector<WordOrVector>& negative,
                                                          int32_t topn) const {
  if (positive.empty() && negative.empty())
    return error(Code::kInvalidArgument, "no word was given to look for its neighbours");
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex* index, state_->neighbours());
  std::vector<double> sum(static_cast<size_t>(vector_size()));
  std::vector<Slot> given;
  double lengths = 0;
  for (const auto& [terms, weight] : {std::pair{&positive, 1.0}, std::pair{&negative, -1.0}})
    for (const WordOrVector& term : *terms) {
      if (const auto* values = std::get_if<std::vector<float>>(&term)) {
        if (values->size() != sum.size())
          return error(Code::kInvalidArgument, "a vector of ", values->size(), " values was given, the model has ",
                       sum.size());
        if (!all_finite(*values)) return error(Code::kInvalidArgument, "the vector given holds NaN or Inf");
        const std::vector<float> own = index->own_part(*values);
        add(sum, weight, own);
        lengths += length_of(own);
        continue;
      }
      STREAMVEC_ASSIGN_OR_RETURN(const WordVector word, vector_of(snapshot(), std::get<std::string>(term)));
      std::vector<float> own = index->own_part(word.values);
      make_unit(own);
      add(sum, weight, own);
      lengths += length_of(own);
      if (word.seen()) given.push_back(word.slot);
    }
  const double length = length_of(sum);
  if (length < kRoundingError * lengths)
    return error(Code::kInvalidArgument, "the words given cancel each other out; nothing is left to look for");
  std::vector<float> direction(sum.size());
  if (length > 0)
    std::transform(sum.begin(), sum.end(), direction.begin(), [&](double x) { return static_cast<float>(x / length); });
  std::vector<ScoredWord> words;
  for (const Neighbour& neighbour : index->nearest_to_sum(direction, given, std::max(topn, 0)))
    words.push_back({std::string(word(neighbour.slot)), neighbour.cosine});
  return words;
}

Result<double> WordVectors::similarity(std::string_view a, std::string_view b) const {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<float> x, unit_vector(a));
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<float> y, unit_vector(b));
  return dot(x, y);
}

Result<std::string> WordVectors::doesnt_match(const std::vector<std::string>& words) const {
  if (words.empty()) return error(Code::kInvalidArgument, "no words were given to choose from");
  std::vector<std::vector<float>> units;
  std::vector<double> mean(static_cast<size_t>(vector_size()));
  for (const std::string& word : words) {
    STREAMVEC_ASSIGN_OR_RETURN(units.emplace_back(), unit_vector(word));
    add(mean, 1, units.back());
  }
  size_t farthest = 0;
  for (size_t i = 1; i < units.size(); ++i)
    if (dot(units[i], mean) < dot(units[farthest], mean)) farthest = i;
  return words[farthest];
}

}  // namespace streamvec
