// The tokeniser (text/tokenizer.h), the language guess and the stemmers' input: a byte of options, then text. Words are
// UTF-8, not empty, without white space and not too long; sentence ends rise to the last word; two calls agree.
#include "streamvec/text/tokenizer.h"

#include "fuzz/fuzz.h"
#include "streamvec/text/language.h"

namespace streamvec {
namespace {

TokenizerOptions options_of(uint8_t bits) {
  TokenizerOptions options;
  options.split = (bits & 1) != 0 ? TokenizerOptions::Split::kWhitespace : TokenizerOptions::Split::kWords;
  options.fold_case = (bits & 2) == 0;
  options.nfkc = (bits & 4) == 0;
  options.word_bytes_max = (bits & 8) != 0 ? 7 : 256;
  return options;
}

void check(const Tokens& tokens, const TokenizerOptions& options) {
  for (const std::string_view word : tokens.words) {
    STREAMVEC_CHECK(!word.empty() && static_cast<int32_t>(word.size()) <= options.word_bytes_max);
    STREAMVEC_CHECK(is_utf8(word));
    STREAMVEC_CHECK(word.find_first_of(std::string_view(" \t\n\v\f\r\0", 7)) == std::string_view::npos);
  }
  int32_t before = 0;
  for (const int32_t end : tokens.sentence_ends) {
    STREAMVEC_CHECK(end > before);
    before = end;
  }
  STREAMVEC_CHECK_EQ(static_cast<size_t>(before), tokens.words.size());
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {std::string("\0", 1) +
                        "Don't part 3.14 or 1,000 from new_york; the U.S. is state-of-the-art.\nStra\u00DFe",
                    std::string("\0", 1) + "東京は2008年の首都です。ภาษาไทยไม่มีช่องว่าง 한국어는 띄어 쓴다 ㅋㅋ",
                    "\x01white space\tonly\vhere\u00A0there\u3000", "\x02Ǆ İstanbul ΣΊΣΥΦΟΣ ﬁ ½ ™ \u00AD\u200D😀",
                    "\x04"
                    "e\u0301e\u0301 \u0130",
                    "\x08 longer than seven bytes, ខ្មែរ ພາສາລາວ မြန်မာ",
                    std::string("\0\xEF\xBB\xBF\xC3( \xED\xA0\x80 a\0b\x85", 16)},
          .words = {"\u2028", "\u0085", "'", "\u2019", "\u05F3", "\u0301", "\uFB01", "\uFFFD", "\u0E33", "한", "日本",
                    "\xF4\x90\x80\x80"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const TokenizerOptions options = options_of(input.byte());
  static Tokens tokens, again;
  Tokenizer tokenizer(options);
  tokenizer.tokenize(input.rest(), tokens);
  check(tokens, options);
  tokenizer.tokenize(input.rest(), again);
  STREAMVEC_CHECK(tokens.words == again.words && tokens.sentence_ends == again.sentence_ends);
  STREAMVEC_CHECK(guess_language(input.rest()).code.size() <= 16);
  return 0;
}
