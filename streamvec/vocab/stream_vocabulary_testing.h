// What tests of StreamVocabulary share.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

inline std::vector<Slot> map(StreamVocabulary& vocabulary, const std::vector<std::string_view>& words, double t = 0,
                             std::vector<Slot>* admitted = nullptr) {
  std::vector<Slot> slots(words.size()), unused;
  vocabulary.map(words, t, slots, admitted != nullptr ? *admitted : unused);
  return slots;
}

// Words "w0", "w1" ... of falling frequency, about as 1 / rank.
inline std::vector<std::string> zipf_text(int tokens, int types, uint64_t seed) {
  Random random(seed);
  std::vector<std::string> text;
  for (int i = 0; i < tokens; ++i)
    text.push_back("w" + std::to_string(static_cast<int>(std::pow(types, random.uniform())) - 1));
  return text;
}

}  // namespace streamvec
