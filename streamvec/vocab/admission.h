// A vocabulary that grows while its text is trained on, for sources that can be read only once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "streamvec/vocab/counter.h"
#include "streamvec/vocab/form.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// A word is admitted when it occurs for the min_count-th time; occurrences before that are not trained on.
// Not thread-safe: the training loop calls it per chunk of tokens, holding the lock that guards the vocabulary.
class Admission {
 public:
  struct Options {
    int64_t min_count = 3;
    int64_t vocab_max = 0;  // nobody is admitted once the vocabulary has this many words; 0: no limit
    // Words not admitted yet that are remembered, about 60 bytes each. When they are more, the rarer half is
    // forgotten: a word may then be admitted late (by count_error_max() occurrences at most), never early.
    int64_t candidates_max = int64_t{1} << 20;
    FormOf form_of = {};  // stop words, stems; empty: every word as it is
  };
  explicit Admission(Options options);

  // Looks up every word, counts it, and admits what has become frequent enough; `slots` gets each word's slot, kNoSlot
  // for those left out or not admitted yet. Returns how many words the vocabulary gained.
  // REQUIRES: slots.size() == words.size(); always the same vocabulary, changed by nobody else in between.
  int32_t admit(std::span<const std::string_view> words, Vocabulary& vocabulary, std::span<Slot> slots);

  int64_t candidates() const { return candidates_.types(); }
  int64_t count_error_max() const { return candidates_.count_error_max(); }

 private:
  Slot admit_one(std::string_view word, Vocabulary& vocabulary);
  Slot admit_form(std::string_view word, Vocabulary& vocabulary);
  Slot count_candidate(std::string_view word, Vocabulary& vocabulary);
  bool full(const Vocabulary& vocabulary) const;
  void remember_dropped(std::string_view word);

  Options options_;
  WordCounter candidates_;
  WordTable dropped_;  // spellings known to be left out, so that stop words do not ask form_of for every token
};

}  // namespace streamvec
