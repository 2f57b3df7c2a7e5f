#include "streamvec/text/character_ngrams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace streamvec {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::vector<uint32_t> buckets_of(std::string_view word, const NgramOptions& options) {
  std::vector<uint32_t> buckets;
  append_ngram_buckets(word, options, buckets);
  return buckets;
}

std::vector<uint32_t> hashes_of(const std::vector<std::string>& ngrams, int64_t bucket) {
  std::vector<uint32_t> hashes;
  for (const std::string& ngram : ngrams) hashes.push_back(static_cast<uint32_t>(ngram_hash(ngram) % bucket));
  return hashes;
}

TEST(CharacterNgrams, HashIsFnv1aOverSignedBytes) {
  EXPECT_EQ(ngram_hash(""), 2166136261u);
  EXPECT_EQ(ngram_hash("<wh"), 1048167652u);
  EXPECT_EQ(ngram_hash("é"), 1023043777u);
  EXPECT_EQ(ngram_hash("한국"), 1801725635u);
}

TEST(CharacterNgrams, AWordStandsBetweenBoundsAndGivesEveryRunOfItsCharacters) {
  EXPECT_THAT(buckets_of("where", {3, 3, 1'000'000}),
              ElementsAreArray(hashes_of({"<wh", "whe", "her", "ere", "re>"}, 1'000'000)));
  EXPECT_THAT(buckets_of("ab", {3, 6, 77}), ElementsAreArray(hashes_of({"<ab", "<ab>", "ab>"}, 77)));
  EXPECT_THAT(buckets_of("a", {3, 6, 77}), ElementsAreArray(hashes_of({"<a>"}, 77)));
}

TEST(CharacterNgrams, ACharacterIsAWholeUtf8Sequence) {
  EXPECT_THAT(buckets_of("é한", {2, 3, 999}), ElementsAreArray(hashes_of({"<é", "<é한", "é한", "é한>", "한>"}, 999)));
}

TEST(CharacterNgrams, TheBoundsAloneAreNoNgrams) {
  EXPECT_THAT(buckets_of("ab", {1, 1, 50}), ElementsAreArray(hashes_of({"a", "b"}, 50)));
}

TEST(CharacterNgrams, OneThatComesTwiceIsThereTwice) {
  EXPECT_THAT(buckets_of("aaaa", {3, 3, 50}), ElementsAreArray(hashes_of({"<aa", "aaa", "aaa", "aa>"}, 50)));
}

TEST(CharacterNgrams, TheSentenceEndHasNone) {
  EXPECT_THAT(buckets_of("</s>", {}), IsEmpty());
}

TEST(CharacterNgrams, BytesThatAreNoUtf8HaveNgramsToo) {
  EXPECT_FALSE(buckets_of("\xff\xfe\xfd", {}).empty());
  EXPECT_THAT(buckets_of("\x80\x80", {3, 6, 50}), IsEmpty()) << "one character with the bound before it, and the end";
}

}  // namespace
}  // namespace streamvec
