// What becomes of each kind of word after tokenising: left out (stop words), replaced by its lemma, or by its stem.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/text/stemmer.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {

struct WordFilterOptions {
  // Each "english" (a list that is built in) or the path of a file with a word a line; empty: nothing is left out.
  std::vector<std::string> stop_words = {};
  // The path of a file with "form<TAB>lemma" lines; of several lines for a form the first counts. "": no lemmas.
  std::string lemmas = {};
  std::string stem = {};  // a Snowball language ("english", "german", ...); "": no stemming
  // Words of the files are normalised as the text is. A stop word or form that the tokeniser would cut or drop
  // ("i.e.") matches no word and is passed over; a lemma has to be one word.
  TokenizerOptions tokenizer = {};
};

// Meant to be asked once per word type by callers that remember the answer (a vocabulary does).
// Thread-safe once open. Equal words get equal answers.
class WordFilter {
 public:
  // Fails, naming path and line, when a file is missing, unreadable, empty, not UTF-8 text, malformed or without a
  // usable word; and, naming the known ones, when there is no such stemmer.
  static Result<WordFilter> open(const WordFilterOptions& options);

  // The word to use for a tokenised `word`, never empty, or nothing when it is left out. A word is left out when it or
  // its lemma is a stop word. A word with a lemma is not stemmed.
  std::optional<std::string> apply(std::string_view word) const;

  // Whether apply() returns every word as it is.
  bool empty() const { return stop_words_.empty() && lemmas_.empty() && !stemmer_.has_value(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  WordFilter() = default;
  Status add_stop_words(const std::string& name, Tokenizer& tokenizer);
  Status add_lemmas(const std::string& path, Tokenizer& tokenizer);

  std::unordered_set<std::string, Hash, std::equal_to<>> stop_words_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> lemmas_;
  std::optional<Stemmer> stemmer_;
};

}  // namespace streamvec
