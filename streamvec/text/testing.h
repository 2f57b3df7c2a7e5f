// Options of the tokenizer and long texts that the tests of this folder share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "streamvec/text/tokenizer.h"

namespace streamvec {

constexpr TokenizerOptions kPlainWhitespace{
    .split = TokenizerOptions::Split::kWhitespace, .fold_case = false, .nfkc = false};

// Every way to split, with and without each of the foldings.
inline std::vector<TokenizerOptions> all_options(int32_t word_bytes_max = TokenizerOptions().word_bytes_max) {
  using Split = TokenizerOptions::Split;
  std::vector<TokenizerOptions> all;
  for (const Split split : {Split::kWords, Split::kWhitespace})
    for (const bool fold : {false, true})
      for (const bool nfkc : {false, true})
        all.push_back({.split = split, .fold_case = fold, .nfkc = nfkc, .word_bytes_max = word_bytes_max});
  return all;
}

inline std::string repeat(std::string_view part, size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace streamvec
