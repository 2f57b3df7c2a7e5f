// The questions that can be asked of a served model, as plain values: HTTP and gRPC translate to and from these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/serve/served_model.h"

namespace streamvec {

constexpr int64_t kNeighboursMax = 1'000;     // of one question
constexpr int64_t kQuestionWordsMax = 1'000;  // words or pairs of one question
constexpr int64_t kWordsListedMax = 1'000;    // by prefix
constexpr int64_t kPathNeighboursMax = 100;   // of each moment of a word's path
constexpr int64_t kMovedMax = 1'000;          // words of a drift list
constexpr int64_t kHistoryPointsMax = 2'000;  // of what training has told

// How a word of a question was understood.
struct AskedWord {
  std::string word;
  bool seen = false;  // false: its vector was made from its spelling
  double weight = 1;
};

// By a vector, or by words with weights. REQUIRES: one of the two is empty.
struct NearestQuery {
  std::vector<WeightedWord> words;
  std::vector<float> vector;
  int64_t k = 10;
};

// A question on its way: what is sought, and what is to be said beside the answer.
struct PlannedSearch {
  SearchRequest request;
  std::vector<AskedWord> words;
};

// kInvalidArgument: nothing or too much asked, a vector of another length or not finite, k out of 1 .. kNeighboursMax,
// a vector of zeros, words that cancel each other out. kNotFound: a word that the model neither knows nor makes a
// vector of. A single word is left out of its neighbours, as are several.
Result<PlannedSearch> plan_nearest(const ServedModel& model, const NearestQuery& query);
// a is to b as c is to ...: nearest to b - a + c (3CosAdd), the three left out.
Result<PlannedSearch> plan_analogy(const ServedModel& model, const std::string& a, const std::string& b,
                                   const std::string& c, int64_t k);

struct VectorAnswer {
  std::string word;
  bool found = false, seen = false;  // not found: neither known nor made; no values then
  std::vector<float> values;
};
// In the order of `words`. kInvalidArgument: none or too many.
Result<std::vector<VectorAnswer>> find_vectors(const ServedModel& model, const std::vector<std::string>& words);

struct SimilarityAnswer {
  AskedWord a, b;
  double cosine = 0;
};
// kNotFound as above.
Result<SimilarityAnswer> find_similarity(const ServedModel& model, const std::string& a, const std::string& b);

}  // namespace streamvec
