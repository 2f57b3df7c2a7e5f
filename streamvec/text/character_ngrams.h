// The hashed character n-grams of a word, exactly as fastText has them (Bojanowski et al. 2017): the word is put
// between "<" and ">", and every run of minn to maxn characters is hashed into one of `bucket` buckets. A character
// is a UTF-8 lead byte with the continuation bytes behind it; bytes that are no UTF-8 are characters of their own, so
// that any bytes have n-grams. With `jamo`, which fastText does not have, a Hangul syllable is two or three characters,
// its jamo, so that forms of a verb that differ within a syllable share n-grams.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace streamvec {

struct NgramOptions {
  int32_t minn = 3;            // shortest n-gram, in characters; lower: more rows a word, endings of one letter count
  int32_t maxn = 6;            // longest; 0: no n-grams
  int64_t bucket = 2'000'000;  // hashes are taken modulo this; fewer: more n-grams share a vector
  bool jamo = false;           // Hangul by jamo

  bool operator==(const NgramOptions&) const = default;
};

constexpr int32_t kNgramMax = 64;                       // longest n-gram that can be asked for
constexpr int64_t kBucketMax = (int64_t{1} << 31) - 1;  // most buckets, likewise
constexpr std::string_view kSentenceEndWord = "</s>";   // fastText's mark of a line's end: it has no n-grams

// FNV-1a of 32 bits with each byte widened as a signed one, as fastText computes it.
uint32_t ngram_hash(std::string_view bytes);

// Appends the bucket of every n-gram, in the order of their beginnings, then of their lengths; one that comes twice is
// there twice. "<" and ">" alone are not taken for n-grams of length 1. REQUIRES: bucket > 0.
void append_ngram_buckets(std::string_view word, const NgramOptions& options, std::vector<uint32_t>& buckets);

}  // namespace streamvec
