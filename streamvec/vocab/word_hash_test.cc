#include "streamvec/vocab/word_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace streamvec {
namespace {

TEST(WordHash, EveryByteAndTheLengthMatter) {
  const WordHash hash(1);
  for (size_t size = 1; size <= 70; ++size) {
    const std::string word(size, 'x');
    ASSERT_NE(hash(word), hash(std::string(size + 1, 'x')));
    for (size_t i = 0; i < size; ++i) {
      std::string other = word;
      other[i] = 'y';
      ASSERT_NE(hash(word), hash(other)) << size << " " << i;
    }
  }
}

TEST(WordHash, WordsChosenToCollideUnderOneSeedAreScatteredUnderAnother) {
  const WordHash known(1), secret(2);
  std::map<uint64_t, int> low, high;
  int planted = 0;
  for (int i = 0; i < 300'000; ++i) {
    const std::string word = "w" + std::to_string(i);
    if (known(word) >> 56 != 0) continue;
    ++planted;
    ++high[secret(word) >> 56];
    ++low[secret(word) & 255];
  }
  ASSERT_GT(planted, 1'000);  // about 4.6 of them are expected in each place
  for (const auto& [place, words] : high) EXPECT_LT(words, 25) << place;
  for (const auto& [place, words] : low) EXPECT_LT(words, 25) << place;
}

TEST(WordHash, NoWordIsFatalWhateverTheSeed) {
  // With public factors, words that begin with one of them make a product zero: all of these collide.
  constexpr uint64_t kFactor = 0xd6e8feb86659fd93ULL;
  constexpr WordHash open_book(1, kFactor, 3);
  const WordHash hash(5);
  std::unordered_set<uint64_t> open_hashes, hashes;
  for (uint64_t i = 0; i < 1'000; ++i) {
    std::string word(16, 0);
    const uint64_t tail = mix(i);
    std::memcpy(word.data(), &kFactor, 8);
    std::memcpy(word.data() + 8, &tail, 8);
    open_hashes.insert(open_book(word));
    hashes.insert(hash(word));
  }
  EXPECT_EQ(open_hashes.size(), 1);
  EXPECT_EQ(hashes.size(), 1'000);
}

}  // namespace
}  // namespace streamvec
