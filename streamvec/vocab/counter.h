// Counts the word types of a text and makes a vocabulary of the frequent ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/vocab/form.h"
#include "streamvec/vocab/vocabulary.h"
#include "streamvec/vocab/word_table.h"

namespace streamvec {

struct VocabularyLimits {
  int64_t min_count = 3;  // rarer words are left out
  int64_t vocab_max = 0;  // most words kept, the frequent ones; 0: no limit
};

// Without types_max every count is exact. With it, at most types_max types are held: when they are more, the rarer
// half leaves (Misra and Gries 1982, in the batched form of Anderson et al. 2017). Then, with E = count_error_max():
//   - a word that occurred more than E times is held;
//   - a count is never too high, and too low by at most E; it is exact for words held since their first occurrence;
//   - E <= 2 * tokens / types_max.
// Not thread-safe: one per thread, then merge(). About 60 bytes a type.
class WordCounter {
 public:
  explicit WordCounter(int64_t types_max = 0);
  // The bound that suits `--vocab-max`: 8 types for each word kept, at least 2^18 (about 16 MB); 0 stays 0.
  static int64_t types_max_for(int64_t vocab_max);

  // Empty words and words longer than WordTable::kWordBytesMax are not counted.
  void add(std::span<const std::string_view> words);
  int64_t add(std::string_view word, int64_t times = 1);  // returns the word's count so far
  void forget(std::string_view word);                     // as if it had not occurred
  // Adds another's counts; the bounds add up. Exact counts are the same in whatever order threads are merged.
  void merge(const WordCounter& other);

  int64_t count(std::string_view word) const;  // 0 when it is not held
  int64_t types() const { return static_cast<int64_t>(counts_.size()); }
  std::string_view word_at(int64_t type) const {
    return word(static_cast<size_t>(type));
  }                                                                                    // REQUIRES: 0 <= type < types()
  int64_t count_at(int64_t type) const { return counts_[static_cast<size_t>(type)]; }  // 0 when it was forgotten
  int64_t tokens() const { return tokens_; }  // all that were added, those of types that left included
  int64_t count_error_max() const { return error_max_; }
  int64_t memory_bytes() const;

  Vocabulary make_vocabulary(const VocabularyLimits& limits, const FormOf& form_of = {}) const;
  // Adds what was counted to a vocabulary that is there already (training goes on with new text): its words gain
  // counts, new words with min_count are appended by falling count, ties by bytes, while size() < vocab_max.
  // With form_of, types are counted by their form, and every type met becomes an alias of its form's slot, even one
  // that is itself the form of another. Aliases that are there already, and words that form_of leaves out, stay.
  void extend(Vocabulary& vocabulary, const VocabularyLimits& limits, const FormOf& form_of = {}) const;

 private:
  int64_t upper(size_t type) const { return counts_[type] + missed_[type]; }
  std::string_view word(size_t type) const { return table_.bytes(refs_[type]); }
  void append(std::string_view word, int64_t times, int64_t missed);
  void prune();
  void extend_by_form(Vocabulary& vocabulary, const VocabularyLimits& limits, const FormOf& form_of) const;

  int64_t types_max_;
  int64_t tokens_ = 0;
  int64_t error_max_ = 0;
  int64_t prunes_ = 0;
  WordTable table_;                   // word to type
  std::vector<WordTable::Ref> refs_;  // by type, as the next two
  std::vector<int64_t> counts_;       // seen since the type is held
  std::vector<int64_t> missed_;       // at most this many occurrences came before
  std::vector<int32_t> found_;        // scratch of add()
};

}  // namespace streamvec
