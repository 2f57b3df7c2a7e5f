#include "streamvec/serve/queries.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/eval/word_vector.h"

namespace streamvec {
namespace {

double squares_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return squares;
}

std::vector<float> unit_of(std::span<const float> values) {
  const double squares = squares_of(values);
  std::vector<float> unit(values.size());
  if (!(squares > 0) || !std::isfinite(squares)) return unit;
  const double scale = 1 / std::sqrt(squares);
  std::transform(values.begin(), values.end(), unit.begin(),
                 [&](float value) { return static_cast<float>(value * scale); });
  return unit;
}

Status check_k(int64_t k) {
  if (k >= 1 && k <= kNeighboursMax) return {};
  return error(Code::kInvalidArgument, "k is ", k, "; it goes from 1 to ", kNeighboursMax);
}

Status check_count(size_t count, const char* what) {
  if (count == 0) return error(Code::kInvalidArgument, "no ", what, " was given");
  if (count <= static_cast<size_t>(kQuestionWordsMax)) return {};
  return error(Code::kInvalidArgument, count, " ", what, "s were given; at most ", kQuestionWordsMax, " at once");
}

Result<WordVector> find_word_vector(const ServedModel& model, const std::string& word, AskedWord& asked) {
  STREAMVEC_ASSIGN_OR_RETURN(WordVector vector, vector_of(model.snapshot(), word));
  asked.word = word;
  asked.seen = vector.seen();
  return vector;
}

Result<PlannedSearch> plan_sum(const ServedModel& model, const std::vector<WeightedWord>& words, int64_t k) {
  PlannedSearch planned;
  planned.request.k = static_cast<int32_t>(k);
  std::vector<float> sum(static_cast<size_t>(model.dim()));
  bool has_direction = false;
  double weights = 0;  // of words with a direction; the others are near to nothing in particular
  for (const WeightedWord& term : words) {
    if (!std::isfinite(term.weight) || std::abs(term.weight) > 1e6)
      return error(Code::kInvalidArgument, "the weight of \"", term.word, "\" is no number from -1e6 to 1e6");
    AskedWord asked;
    asked.weight = term.weight;
    STREAMVEC_ASSIGN_OR_RETURN(const WordVector vector, find_word_vector(model, term.word, asked));
    const std::vector<float> unit = unit_of(model.own_part(vector.values));
    if (vector.seen()) planned.request.excluded.push_back(vector.slot);
    if (squares_of(unit) > 0) {
      has_direction = true;
      weights += std::abs(term.weight);
    }
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(term.weight * unit[i]);
    planned.words.push_back(std::move(asked));
  }
  constexpr double kRounding = 1e-6;
  if (has_direction && std::sqrt(squares_of(sum)) <= kRounding * weights)
    return error(Code::kInvalidArgument, "the sum of the words given has no direction, so nothing is near to it");
  planned.request.unit = unit_of(sum);
  return planned;
}

}  // namespace

Result<PlannedSearch> plan_nearest(const ServedModel& model, const NearestQuery& query) {
  STREAMVEC_RETURN_IF_ERROR(check_k(query.k));
  if (query.vector.empty()) {
    STREAMVEC_RETURN_IF_ERROR(check_count(query.words.size(), "word"));
    return plan_sum(model, query.words, query.k);
  }
  if (static_cast<int64_t>(query.vector.size()) != model.dim())
    return error(Code::kInvalidArgument, "a vector of ", query.vector.size(), " values was given, the model has ",
                 model.dim());
  if (!std::all_of(query.vector.begin(), query.vector.end(), [](float value) { return std::isfinite(value); }))
    return error(Code::kInvalidArgument, "the vector given holds values that are no numbers");
  if (std::all_of(query.vector.begin(), query.vector.end(), [](float value) { return value == 0; }))
    return error(Code::kInvalidArgument, "the vector given has no direction, so nothing is near to it");
  PlannedSearch planned;
  planned.request = {unit_of(model.own_part(query.vector)), {}, static_cast<int32_t>(query.k)};
  return planned;
}

Result<PlannedSearch> plan_analogy(const ServedModel& model, const std::string& a, const std::string& b,
                                   const std::string& c, int64_t k) {
  STREAMVEC_RETURN_IF_ERROR(check_k(k));
  return plan_sum(model, {{a, -1}, {b, 1}, {c, 1}}, k);
}

Result<std::vector<VectorAnswer>> find_vectors(const ServedModel& model, const std::vector<std::string>& words) {
  STREAMVEC_RETURN_IF_ERROR(check_count(words.size(), "word"));
  std::vector<VectorAnswer> answers;
  for (const std::string& word : words) {
    VectorAnswer answer;
    answer.word = word;
    auto vector = vector_of(model.snapshot(), word);
    answer.found = vector.ok();
    if (vector.ok()) {
      answer.seen = vector->seen();
      answer.values = std::move(vector->values);
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<SimilarityAnswer> find_similarity(const ServedModel& model, const std::string& a, const std::string& b) {
  SimilarityAnswer answer;
  STREAMVEC_ASSIGN_OR_RETURN(const WordVector of_a, find_word_vector(model, a, answer.a));
  STREAMVEC_ASSIGN_OR_RETURN(const WordVector of_b, find_word_vector(model, b, answer.b));
  const std::vector<float> x = unit_of(of_a.values), y = unit_of(of_b.values);
  answer.cosine = std::inner_product(x.begin(), x.end(), y.begin(), 0.0, std::plus<>(),
                                     [](float u, float v) { return double{u} * v; });
  return answer;
}

}  // namespace streamvec
