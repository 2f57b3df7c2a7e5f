// Text to words: UTF-8 in, normalised words and sentence ends out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// What came out of one piece of text. The words are views: into the text that was given (when its bytes needed no
// change) or into storage that this object owns; both end with the next call that fills it.
struct Tokens {
  std::vector<std::string_view> words;
  std::vector<int32_t> sentence_ends;  // rising indexes into words: a sentence is [previous end, end)
  int64_t bytes_replaced = 0;          // invalid UTF-8 bytes that became U+FFFD, NULs dropped: for the counters
  int64_t words_dropped = 0;           // words longer than word_bytes_max
};

struct TokenizerOptions {
  enum class Split {
    kWords,       // words of the language: letters, marks and digits hold together, punctuation falls away
    kWhitespace,  // what stands between white space, as word2vec and fastText read it
  };
  Split split = Split::kWords;
  bool fold_case = true;        // Unicode case folding
  bool nfkc = true;             // compatibility normalisation
  int32_t word_bytes_max = 256; // a longer "word" is dropped and counted
};

// Not thread-safe (it keeps scratch memory): one per thread. Equal bytes and options give equal words.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerOptions options);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Replaces what `out` holds. A line end ends a sentence. Never fails: bad bytes are mended and counted.
  void tokenize(std::string_view text, Tokens& out);
};

}  // namespace streamvec
