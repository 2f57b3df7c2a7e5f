// Words out of classified characters: where one starts and ends, and whether its bytes can be viewed in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/text/code_points.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/text/word_break.h"

namespace streamvec {

// A character of normalised text, or several of one class. `raw` is the part of the text it came from; `bytes` is what
// stands for it, and equals `raw` in place when nothing changed.
struct Character {
  CharClass cls;
  std::string_view raw;
  std::string_view bytes;
};

// Holds at most one unfinished word. Not thread-safe.
class WordBuilder {
 public:
  explicit WordBuilder(int32_t word_bytes_max);

  // The words that follow go there. REQUIRES: no unfinished word.
  void start(Tokens& out) { out_ = &out; }

  void add(const Character& character);
  // A character too long to keep: the word it belongs to will be dropped.
  void add_overlong(CharClass cls, std::string_view raw);
  void finish();        // ends the word, if there is one
  void end_sentence();  // ends the word and the sentence; an empty sentence is none

  // A finished word of ASCII; `fold` when it has capitals that have to go. REQUIRES: no unfinished word.
  void add_ascii(std::string_view word, bool fold);

 private:
  enum class State { kNone, kWord, kUnspaced };

  void begin(State state, const Character& character);
  void extend_word(const Character& character);
  void add_joiner(const Character& character);
  bool joins(CharClass cls) const;
  void append(const Character& character);
  void change();
  void drop_piece();
  std::string_view piece() const;
  void emit(std::string_view word);
  void emit_unspaced();

  const size_t word_bytes_max_;
  const size_t piece_bytes_max_;  // what is kept of an unfinished word or run
  Tokens* out_ = nullptr;
  State state_ = State::kNone;
  std::string_view raw_;  // from the word's first character to its last, without a joiner that waits
  std::string buffer_;    // its bytes, once they differ from raw_
  bool changed_ = false;
  bool overlong_ = false;
  CharClass last_ = CharClass::kUnknown;  // of its last character but marks
  bool joiner_waits_ = false;
  Character joiner_ = {};  // `bytes` in joiner_bytes_ or in the text
  char joiner_bytes_[4] = {};
  WordBreaker breaker_;
  std::vector<size_t> ends_;
};

}  // namespace streamvec
