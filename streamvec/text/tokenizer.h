// Text to words: UTF-8 in, normalised words and sentence ends out.
//
// The words of Split::kWords, as users of word vectors expect them:
// - Letters, marks and digits of any script hold together: "covid19", "3d", "naïve", "한국어". Nothing else starts a
// word.
// - One apostrophe or underscore between two of them stays: "don't", "l'été", "rock'n'roll", "new_york" (word2phrase's
//   output survives), also Hebrew's geresh and gershayim. At an edge or doubled they fall away: 'tis -> tis, __x__ ->
//   x.
// - One "." or "," between two digits stays: "3.14", "1,000". Between letters they part words: "u.s." -> u s, as text8
//   does, because badly spaced text ("end.Start") is commoner than abbreviations.
// - Hyphens, dashes and all other punctuation part words and fall away: "state-of-the-art" is four (gensim, UAX #29).
// - Symbols (emoji, currency, "™", "½") part words and fall away, before NFKC could spell them "tm" or "1⁄2".
// - Chinese, Japanese, Thai, Lao, Khmer and Burmese runs, which have no spaces, are cut by ICU's dictionaries; a
//   change to or from such a script ends a word ("2008年" -> 2008 年). Korean is cut at spaces like English.
// - A sentence ends at LF, CR, NEL (U+0085), U+2028 or U+2029.
// Split::kWhitespace cuts where fastText does: at space, tab, vertical tab, form feed, CR and LF; LF ends a sentence.
// (word2vec.c cuts at space, tab and LF only.) If nfkc is on, spaces that it makes (from U+00A0, U+3000, ...) cut too.
//
// In both: empty sentences are not given; the end of the text ends its last sentence; a byte order mark at the start is
// skipped; each ill-formed part of UTF-8 becomes one U+FFFD (which kWords drops as a symbol); NULs vanish as if they
// had not been there (text8 and fastText would cut there). No word is empty or holds white space.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/text/arena.h"

namespace streamvec {

// What came out of one piece of text. The words are views: into the text that was given (when its bytes needed no
// change) or into storage that this object owns; both end with the next call that fills it. Movable, not copyable.
struct Tokens {
  std::vector<std::string_view> words;
  std::vector<int32_t> sentence_ends;  // rising indexes into words: a sentence is [previous end, end)
  int64_t bytes_replaced = 0;          // invalid UTF-8 bytes that became U+FFFD, NULs dropped: for the counters
  int64_t words_dropped = 0;           // words longer than word_bytes_max
  TextArena storage;                   // owns the bytes of changed words; not for callers

  void clear();
};

struct TokenizerOptions {
  enum class Split {
    kWords,       // words of the language: letters, marks and digits hold together, punctuation falls away
    kWhitespace,  // what stands between white space, as word2vec and fastText read it
  };
  Split split = Split::kWords;
  bool fold_case = true;  // Unicode case folding (full: "ß" -> "ss", "Σ" and "ς" -> "σ"); off keeps "US" from "us"
  bool nfkc = true;       // compatibility normalisation; drops invisible code points (soft hyphen, ZWNJ, ...) and,
                          // with kWords, writes ’ as '. Stay as they are: Thai and Lao AM, single Korean letters
                          // (ㅋㅋ). Off: composed and decomposed spellings differ
  int32_t word_bytes_max = 256;  // a longer "word" (UTF-8, after normalisation) is dropped and counted; so is one with
                                 // over 4 KiB of marks on one letter. Taken as at least 1
};

// Not thread-safe (it keeps scratch memory): one per thread. Equal bytes and options give equal words.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerOptions options = {});
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Replaces what `out` holds. Never fails: bad bytes are mended and counted. Time is linear in the text, memory
  // besides `out` is bounded. `text` must outlive the use of `out`. REQUIRES: text.size() < 2^32.
  void tokenize(std::string_view text, Tokens& out);

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

}  // namespace streamvec
