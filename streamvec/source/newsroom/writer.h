// Writes the newsroom's articles: made-up news whose truth is known, so that what a crawler and a model made of them
// can be checked without any data. The sentences are those of planted text (see planted.h), with three things more:
// - three words that stand among one class of words until the change, and among another from then on;
// - compounds ("hydrophone", "hydrowort") whose last part tells their class, among the members of each class;
// - new compounds, coined at the change and used rarely, and others never used, for models that read spelling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/source/planted.h"

namespace streamvec::newsroom {

// The same for every seed. Nothing here stands in two classes but the words that change.
struct Truth {
  struct Change {
    std::string word, class_before, class_after;
  };
  struct Coined {
    std::string word, word_class;
    bool used;  // whether articles use it at all
  };
  std::vector<PlantedTruth::WordClass> classes;  // with the compounds known from the start
  std::vector<PlantedTruth::Relation> relations;
  std::vector<Change> changes;
  std::vector<Coined> coined;

  // Whether `word` belongs to the class of that name: as a member, as a coined word, or after (else before) the change.
  bool is_member(const std::string& word, const std::string& word_class, bool after_change = true) const;
};
const Truth& truth();

struct Story {
  int64_t number = 0;
  std::string title;
  std::vector<std::string> paragraphs;  // plain text in UTF-8, some quotation marks and dashes beyond ASCII

  std::string text() const;  // title and paragraphs, a line each
};

// A story depends on seed and number alone (and on where the change is), and nothing is kept. Thread-safe.
class Writer {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t change_at = 3'000;  // the first story in which the changed words have their new meaning
  };
  explicit Writer(Options options) : options_(options) {}

  // About 300 words. REQUIRES: number >= 0.
  Story story(int64_t number) const;
  std::string title(int64_t number) const;  // of story(number), without making the rest
  // A story that nobody may read: kTrapWord stands in each of its sentences.
  Story trap(int64_t number) const;

  const Options& options() const { return options_; }

 private:
  Options options_;
};

// Stands in no other text of the newsroom: in a vocabulary it proves that robots.txt was ignored.
inline constexpr char kTrapWord[] = "contrabandium";

}  // namespace streamvec::newsroom
