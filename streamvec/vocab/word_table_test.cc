#include "streamvec/vocab/word_table.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// Distinct words of 1 to 70 bytes over a small alphabet, so that many share long beginnings and ends.
std::vector<std::string> make_words(int count) {
  Random random(7);
  std::unordered_set<std::string> seen;
  std::vector<std::string> words;
  while (static_cast<int>(words.size()) < count) {
    std::string word(1 + random.below(70), 'a');
    for (int changes = 0; changes < 4; ++changes)
      word[random.below(static_cast<uint32_t>(word.size()))] = static_cast<char>('a' + random.below(4));
    if (seen.insert(word).second) words.push_back(word);
  }
  return words;
}

TEST(WordTable, FindsEveryWordItHoldsAndNoOther) {
  const std::vector<std::string> words = make_words(20'000);
  WordTable table;
  for (size_t i = 0; i < words.size(); i += 2) table.insert(words[i], static_cast<int32_t>(i));
  for (size_t i = 0; i < words.size(); ++i) {
    const int32_t expected = i % 2 == 0 ? static_cast<int32_t>(i) : WordTable::kNone;
    ASSERT_EQ(table.find(words[i]), expected) << words[i];
  }
  EXPECT_EQ(table.size(), 10'000);
}

TEST(WordTable, FindingManyAtOnceAgreesWithFindingOne) {
  const std::vector<std::string> words = make_words(5'000);
  WordTable table;
  for (size_t i = 0; i < words.size(); i += 3) table.insert(words[i], static_cast<int32_t>(i));
  std::vector<std::string_view> asked(words.begin(), words.end());
  asked.push_back("");
  std::vector<int32_t> numbers(asked.size());
  table.find(asked, numbers);
  for (size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(numbers[i], table.find(asked[i]));
}

TEST(WordTable, AnEmptyTableFindsNothing) {
  const WordTable table;
  const std::vector<std::string_view> asked = {"a", ""};
  std::vector<int32_t> numbers(2, 5);
  table.find(asked, numbers);
  EXPECT_EQ(numbers, (std::vector<int32_t>{WordTable::kNone, WordTable::kNone}));
  EXPECT_EQ(table.find("a"), WordTable::kNone);
}

TEST(WordTable, TellsWordsApartByEachByte) {
  for (size_t size = 1; size <= 40; ++size) {
    WordTable table;
    const std::string word(size, 'x');
    table.insert(word, 0);
    for (size_t i = 0; i < size; ++i) {
      std::string other = word;
      other[i] = '\0';
      ASSERT_EQ(table.find(other), WordTable::kNone) << size << " " << i;
    }
    ASSERT_EQ(table.find(std::string(size + 1, 'x')), WordTable::kNone);
  }
}

TEST(WordTable, TellsWordsOfEqualHashApart) {
  // Of 400,000 words about 9 that are asked for share 32 bits of hash with one that is there.
  std::vector<std::string> words(400'000, "samehead");
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t tail = mix(i);
    words[i].append(reinterpret_cast<const char*>(&tail), sizeof tail);
  }
  WordTable table;
  for (size_t i = 0; i < words.size(); i += 2) table.insert(words[i], 1);
  for (size_t i = 1; i < words.size(); i += 2) ASSERT_EQ(table.find(words[i]), WordTable::kNone);
}

TEST(WordTable, GivesBackTheBytesOfTheLongestWord) {
  WordTable table;
  const std::string longest(WordTable::kWordBytesMax, '\xff');
  const WordTable::Ref ref = table.insert(longest, 3);
  table.insert("after", 4);
  EXPECT_EQ(table.bytes(ref), longest);
  EXPECT_EQ(table.find(longest), 3);
  EXPECT_EQ(table.find(longest + "x"), WordTable::kNone);
}

TEST(WordTable, ReservingKeepsWhatIsThere) {
  const std::vector<std::string> words = make_words(1'000);
  WordTable table;
  table.insert(words[0], 0);
  table.reserve(1'000, 70'000);
  const int64_t reserved = table.memory_bytes();
  for (size_t i = 1; i < words.size(); ++i) table.insert(words[i], static_cast<int32_t>(i));
  EXPECT_EQ(table.memory_bytes(), reserved);
  for (size_t i = 0; i < words.size(); ++i) ASSERT_EQ(table.find(words[i]), static_cast<int32_t>(i));
}

}  // namespace
}  // namespace streamvec
