// The text between tags as a reader sees it: references decoded, white space collapsed, bad bytes mended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace streamvec {

// Measures of a piece of text. Lengths are in letters of an alphabet: a Chinese or Japanese character and a Korean
// syllable, which say more, count as two. White space counts nothing.
struct TextMeasure {
  int32_t length = 0;
  int32_t link_length = 0;  // the part of it inside links
  int32_t commas = 0;       // , 、 ， ، ;
  int32_t stops = 0;        // . ! ? 。 ！ ？ … । ؟ with something before them
};

// One block of text at a time, appended to a string that holds many.
class TextFlow {
 public:
  // The block starts at the end of `out`.
  void start(std::string& out);
  // `preformatted`: line feeds stay. `in_link` is for the measure.
  void append(std::string_view run, bool preformatted, bool in_link);
  // White space between words, as a <br> or an image leaves it.
  void append_break() { space_ = space_ == kNone ? ' ' : space_; }

  bool empty() const { return out_->size() == begin_; }
  size_t begin() const { return begin_; }
  const TextMeasure& measure() const { return measure_; }

 private:
  static constexpr char kNone = 0;

  void append_code_point(char32_t c, std::string_view bytes);
  void flush_space();

  std::string* out_ = nullptr;
  size_t begin_ = 0;
  char space_ = kNone;  // white space that waits for a word: ' ' or '\n'
  TextMeasure measure_;
};

// The whole of `text` by the same rules, on one line: for titles.
std::string flat_text(std::string_view text);

}  // namespace streamvec
