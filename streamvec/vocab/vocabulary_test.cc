#include "streamvec/vocab/vocabulary.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace streamvec {
namespace {

TEST(Vocabulary, GivesSlotsInOrderOfAdding) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.add("the", 5), 0);
  EXPECT_EQ(vocabulary.add("서울", 2), 1);
  EXPECT_EQ(vocabulary.find("서울"), 1);
  EXPECT_EQ(vocabulary.word(1), "서울");
  EXPECT_EQ(vocabulary.count(0), 5);
  EXPECT_EQ(vocabulary.find("absent"), kNoSlot);
  EXPECT_EQ(vocabulary.find(""), kNoSlot);
}

TEST(Vocabulary, TokensIsTheSumOfAllCounts) {
  Vocabulary vocabulary;
  vocabulary.add("a", 5);
  vocabulary.add("b", 0);
  vocabulary.add_count(1, 7);
  EXPECT_EQ(vocabulary.tokens(), 12);
  EXPECT_EQ(vocabulary.count(1), 7);
}

TEST(Vocabulary, AnAliasLeadsToItsWordsSlot) {
  Vocabulary vocabulary;
  vocabulary.add("go", 1);
  vocabulary.add("run", 1);
  vocabulary.add_alias("running", 1);
  EXPECT_EQ(vocabulary.find("running"), 1);
  EXPECT_EQ(vocabulary.size(), 2);
  EXPECT_EQ(vocabulary.word(1), "run");
  ASSERT_EQ(vocabulary.alias_count(), 1);
  EXPECT_EQ(vocabulary.alias(0).spelling, "running");
  EXPECT_EQ(vocabulary.alias(0).slot, 1);
}

TEST(Vocabulary, AWordThatIsAnAliasIsFoundByNameAndCountsForTheOther) {
  Vocabulary vocabulary;
  vocabulary.add("see", 2);
  vocabulary.add("saw", 1);
  vocabulary.add_alias("saws", 1);
  vocabulary.add_alias("saw", 0);
  EXPECT_EQ(vocabulary.find("saw"), 1);
  EXPECT_EQ(vocabulary.find_token("saw"), 0);
  const std::array<std::string_view, 4> tokens = {"saws", "saw", "see", "sea"};
  std::array<Slot, 4> slots;
  vocabulary.find(tokens, slots);
  EXPECT_EQ(slots, (std::array<Slot, 4>{1, 0, 0, kNoSlot}));
  ASSERT_EQ(vocabulary.alias_count(), 2);
  EXPECT_EQ(vocabulary.alias(1).spelling, "saw");
}

TEST(Vocabulary, ACopyIsIndependentAndAMovedOneComplete) {
  Vocabulary original;
  for (int i = 0; i < 1'000; ++i) original.add("word" + std::to_string(i), i);
  Vocabulary copy = original;
  copy.add("more", 1);
  const Vocabulary moved = std::move(copy);
  EXPECT_EQ(original.find("more"), kNoSlot);
  EXPECT_EQ(moved.find("more"), 1'000);
  EXPECT_EQ(moved.find("word999"), 999);
  EXPECT_EQ(original.word(999), "word999");
}

TEST(Vocabulary, TakesLittleMemoryPerWord) {
  Vocabulary vocabulary;
  vocabulary.reserve(100'000, 900'000);
  for (int i = 0; i < 100'000; ++i) vocabulary.add("word" + std::to_string(i), 1);
  EXPECT_LT(vocabulary.memory_bytes(), 100'000 * 80);
}

TEST(VocabularyDeath, StopsWhenAWordIsAddedTwice) {
  Vocabulary vocabulary;
  vocabulary.add("a", 1);
  EXPECT_DEATH(vocabulary.add("a", 1), "broken invariant");
  EXPECT_DEATH(vocabulary.add_alias("a", 0), "broken invariant");
  EXPECT_DEATH(vocabulary.add("", 1), "broken invariant");
}

}  // namespace
}  // namespace streamvec
