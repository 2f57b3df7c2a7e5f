// Made-up English-like text whose answers are known, for the demo and for tests: what a model learned from it can be
// checked without any data.
//
// The story. Words of a class ("tiger", "wolf", ...) stand between describing and acting words of that class and
// nothing else tells them apart, so they become neighbours. In a relation (country and capital, verb and past tense,
// singular and plural) a word's surroundings are drawn from two independent sets: names that belong to its pair
// ("france" and "paris" share them) and words that belong to its side ("mayor", "suburbs" for every capital); a word's
// vector is then about pair + side, and capital - country is the same for all pairs. Frequent English function words
// and 3,000 made-up words with frequencies after Zipf fill the rest. Everything is lower-case a-z, a sentence a line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/source/source.h"

namespace streamvec {

// The same for every seed.
struct PlantedTruth {
  struct WordClass {
    std::string name;
    std::vector<std::string> words;  // each other's neighbours
  };
  struct Relation {
    std::string name;
    std::vector<std::pair<std::string, std::string>> pairs;  // any two make an analogy: a is to b as c is to d
  };
  std::vector<WordClass> classes;
  std::vector<Relation> relations;

  // All analogies in the format of word2vec's questions-words: ": name" lines, then "a b c d" lines.
  std::string analogy_questions() const;
};
const PlantedTruth& planted_truth();

// Deterministic in its seed: equal options give equal text on every machine, document by document.
class PlantedSource : public Source {
 public:
  struct Options {
    int64_t tokens = 1'000'000;  // exactly as many words; 200,000 and more show the plan clearly
    uint64_t seed = 1;
  };
  // "planted:", "planted:?tokens=2000000&seed=7". kInvalidArgument names what it does not understand.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
  // REQUIRES: tokens > 0.
  explicit PlantedSource(Options options);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Capabilities capabilities() const override { return {}; }
  // The text is not there before it is made: progress counts 7 bytes a token, near the true mean.
  int64_t bytes_total() const override { return options_.tokens * kBytesPerToken; }
  int64_t bytes_read() const override;
  std::string name() const override;

 private:
  static constexpr int64_t kBytesPerToken = 7;
  int64_t documents() const;

  Options options_;
  int64_t next_ = 0;  // the document to be made next
};

}  // namespace streamvec
