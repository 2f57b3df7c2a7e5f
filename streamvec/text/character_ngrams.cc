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

}  // namespace

uint32_t ngram_hash(std::string_view bytes) {
  uint32_t hash = kHashStart;
  for (const char byte : bytes) hash = add_byte(hash, byte);
  return hash;
}

void append_ngram_buckets(std::string_view word, const NgramOptions& options, std::vector<uint32_t>& buckets) {
  if (word == kSentenceEndWord) return;
  const std::string bounded = "<" + std::string(word) + ">";
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
