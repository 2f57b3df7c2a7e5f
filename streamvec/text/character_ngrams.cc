#include "streamvec/text/character_ngrams.h"

#include <string>

namespace streamvec {
namespace {

constexpr uint32_t kHashStart = 2166136261u, kHashFactor = 16777619u;

uint32_t add_byte(uint32_t hash, char byte) {
  return (hash ^ static_cast<uint32_t>(static_cast<int8_t>(byte))) * kHashFactor;
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Unicode 15, section 3.12: syllables are numbered by leading consonant, vowel and trailing consonant.
constexpr uint32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr uint32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 19 * kVowelCount * kTrailingCount;

void append_three_bytes(uint32_t point, std::string& out) {
  out += static_cast<char>(0xE0 | point >> 12);
  out += static_cast<char>(0x80 | (point >> 6 & 0x3F));
  out += static_cast<char>(0x80 | (point & 0x3F));
}

// Appends `word` with every Hangul syllable as its jamo; all other bytes as they are.
void append_as_jamo(std::string_view word, std::string& out) {
  for (size_t at = 0; at < word.size();) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(word[at + i])); };
    const bool three = (byte(0) & 0xF0) == 0xE0 && at + 2 < word.size() && continues_character(word[at + 1]) &&
                       continues_character(word[at + 2]);
    const uint32_t point = three ? (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F) : 0;
    const uint32_t syllable = point - kSyllables;
    if (point < kSyllables || syllable >= kSyllableCount) {
      out += word[at++];
      continue;
    }
    append_three_bytes(kLeading + syllable / (kVowelCount * kTrailingCount), out);
    append_three_bytes(kVowels + syllable / kTrailingCount % kVowelCount, out);
    if (syllable % kTrailingCount != 0) append_three_bytes(kTrailing + syllable % kTrailingCount, out);
    at += 3;
  }
}

}  // namespace

uint32_t ngram_hash(std::string_view bytes) {
  uint32_t hash = kHashStart;
  for (const char byte : bytes) hash = add_byte(hash, byte);
  return hash;
}

void append_ngram_buckets(std::string_view word, const NgramOptions& options, std::vector<uint32_t>& buckets) {
  if (word == kSentenceEndWord) return;
  std::string bounded = "<";
  options.jamo ? append_as_jamo(word, bounded) : void(bounded += word);
  bounded += '>';
  for (size_t begin = 0; begin < bounded.size(); ++begin) {
    if (continues_character(bounded[begin])) continue;
    uint32_t hash = kHashStart;
    size_t end = begin;
    for (int32_t n = 1; n <= options.maxn && end < bounded.size(); ++n) {
      do hash = add_byte(hash, bounded[end++]);
      while (end < bounded.size() && continues_character(bounded[end]));
      const bool bound_alone = n == 1 && (begin == 0 || end == bounded.size());
      if (n >= options.minn && !bound_alone)
        buckets.push_back(static_cast<uint32_t>(hash % static_cast<uint64_t>(options.bucket)));
    }
  }
}

}  // namespace streamvec
