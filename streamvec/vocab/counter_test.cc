#include "streamvec/vocab/counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string_view>;

std::vector<std::string> words_of(const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) words.emplace_back(vocabulary.word(slot));
  return words;
}

// A stream with few frequent and many rare words, as texts have.
std::vector<std::string> zipfian_text(int tokens, uint64_t seed) {
  Random random(seed);
  std::vector<std::string> text;
  for (int i = 0; i < tokens; ++i)
    text.push_back("w" + std::to_string(random.below(1 + random.below(1 + random.below(50'000)))));
  return text;
}

// Drops "the" and "be", and takes the ending -s off.
std::optional<std::string> strip_s(std::string_view word) {
  if (word == "the" || word == "be") return std::nullopt;
  if (word == "been") return "be";
  return std::string(word.ends_with('s') ? word.substr(0, word.size() - 1) : word);
}

TEST(WordCounter, SortsByFallingCountThenBytes) {
  WordCounter counter;
  counter.add(Words{"b", "c", "a", "c", "b", "a", "d", "c"});
  const Vocabulary vocabulary = counter.make_vocabulary({.min_count = 1});
  EXPECT_THAT(words_of(vocabulary), ElementsAre("c", "a", "b", "d"));
  EXPECT_EQ(vocabulary.count(0), 3);
  EXPECT_EQ(vocabulary.tokens(), 8);
}

TEST(WordCounter, LeavesOutRareWords) {
  WordCounter counter;
  counter.add(Words{"a", "a", "a", "b", "b", "c"});
  EXPECT_THAT(words_of(counter.make_vocabulary({.min_count = 2})), ElementsAre("a", "b"));
}

TEST(WordCounter, KeepsTheMostFrequentVocabMaxWords) {
  WordCounter counter;
  counter.add(Words{"a", "a", "a", "b", "b", "c", "c", "d"});
  EXPECT_THAT(words_of(counter.make_vocabulary({.min_count = 1, .vocab_max = 2})), ElementsAre("a", "b"));
}

TEST(WordCounter, MergedThreadsCountAsOne) {
  const std::vector<std::string> text = zipfian_text(30'000, 1);
  WordCounter whole, left, right;
  for (size_t i = 0; i < text.size(); ++i) {
    whole.add(text[i]);
    (i % 3 == 0 ? left : right).add(text[i]);
  }
  left.merge(right);
  const Vocabulary expected = whole.make_vocabulary({.min_count = 2});
  const Vocabulary merged = left.make_vocabulary({.min_count = 2});
  ASSERT_EQ(words_of(merged), words_of(expected));
  for (Slot slot = 0; slot < merged.size(); ++slot) ASSERT_EQ(merged.count(slot), expected.count(slot));
  EXPECT_EQ(left.tokens(), whole.tokens());
}

TEST(WordCounter, IgnoresEmptyAndOverlongWords) {
  WordCounter counter;
  const std::string overlong(WordTable::kWordBytesMax + 1, 'x');
  counter.add(Words{"", overlong, "a"});
  EXPECT_EQ(counter.types(), 1);
  EXPECT_EQ(counter.tokens(), 1);
}

TEST(WordCounter, AnEmptyTextGivesAnEmptyVocabulary) {
  EXPECT_EQ(WordCounter().make_vocabulary({}).size(), 0);
}

TEST(WordCounter, BoundedCountsKeepTheirGuarantees) {
  constexpr int64_t kTypesMax = 2'000;
  const std::vector<std::string> text = zipfian_text(200'000, 2);
  std::map<std::string, int64_t> exact;
  for (const std::string& word : text) ++exact[word];
  const Words views(text.begin(), text.end());
  WordCounter counter(kTypesMax);
  for (size_t i = 0; i < views.size(); i += 1'000) {
    counter.add(std::span(views).subspan(i, 1'000));
    ASSERT_LE(counter.types(), kTypesMax);
  }
  const int64_t error_max = counter.count_error_max();
  EXPECT_GT(error_max, 0);
  EXPECT_LE(error_max, 2 * 200'000 / kTypesMax);
  EXPECT_EQ(counter.tokens(), 200'000);
  for (const auto& [word, count] : exact) {
    ASSERT_LE(counter.count(word), count) << word;
    ASSERT_GE(counter.count(word), count - error_max) << word;
  }
}

TEST(WordCounter, BoundedCountsMergedKeepTheirGuarantees) {
  const std::vector<std::string> text = zipfian_text(100'000, 3);
  std::map<std::string, int64_t> exact;
  WordCounter left(2'000), right(2'000);
  for (size_t i = 0; i < text.size(); ++i) {
    ++exact[text[i]];
    (i % 2 == 0 ? left : right).add(text[i]);
  }
  left.merge(right);
  EXPECT_LE(left.types(), 2'000);
  EXPECT_LE(left.count_error_max(), 2 * 100'000 / 2'000);
  for (const auto& [word, count] : exact) {
    ASSERT_LE(left.count(word), count) << word;
    ASSERT_GE(left.count(word), count - left.count_error_max()) << word;
  }
}

TEST(WordCounter, MergingRemembersWhatEitherSideMayHaveForgotten) {
  WordCounter left(4), right;
  for (const char* word : {"x", "a", "b", "c"}) left.add(word, 5);
  left.add("d");  // one type too many: all five leave
  ASSERT_EQ(left.count("x"), 0);
  for (const char* word : {"p", "q", "r"}) left.add(word, 3);
  right.add("x", 6);
  right.add("s");
  left.merge(right);  // "x" occurred 11 times, more than any other word may have
  EXPECT_GE(left.count("x"), 11 - left.count_error_max());
}

TEST(WordCounter, BoundedCountingAgreesWithExactOnTheFrequentWords) {
  const std::vector<std::string> text = zipfian_text(200'000, 4);
  WordCounter exact, bounded(4'000);
  for (const std::string& word : text) {
    exact.add(word);
    bounded.add(word);
  }
  EXPECT_EQ(words_of(bounded.make_vocabulary({.vocab_max = 10})), words_of(exact.make_vocabulary({.vocab_max = 10})));
}

TEST(WordCounter, TheBoundForVocabMaxLeavesRoom) {
  EXPECT_EQ(WordCounter::types_max_for(0), 0);
  EXPECT_EQ(WordCounter::types_max_for(10), int64_t{1} << 18);
  EXPECT_EQ(WordCounter::types_max_for(1'000'000), 8'000'000);
}

TEST(WordCounterForms, SpellingsCountForTheirFormAndLeadToItsSlot) {
  WordCounter counter;
  counter.add(Words{"dogs", "dog", "cats", "dogs", "the", "the", "the"});
  const Vocabulary vocabulary = counter.make_vocabulary({.min_count = 2}, strip_s);
  ASSERT_THAT(words_of(vocabulary), ElementsAre("dog"));
  EXPECT_EQ(vocabulary.count(0), 3);
  EXPECT_EQ(vocabulary.find("dogs"), 0);
  EXPECT_EQ(vocabulary.find("the"), kNoSlot);
  EXPECT_EQ(vocabulary.find("cats"), kNoSlot);
}

TEST(WordCounterForms, AFormThatIsLeftOutTakesItsSpellingsWithIt) {
  WordCounter counter;
  counter.add(Words{"been", "been", "a"});
  EXPECT_THAT(words_of(counter.make_vocabulary({.min_count = 1}, strip_s)), ElementsAre("a"));
}

TEST(WordCounterForms, ATypeThatIsTheFormOfAnotherCountsForItsOwnForm) {
  WordCounter counter;  // "ass" is the form of "asss", and its own form is "as"
  counter.add(Words{"asss", "ass", "ass", "as", "a"});
  const Vocabulary vocabulary = counter.make_vocabulary({.min_count = 1}, strip_s);
  EXPECT_THAT(words_of(vocabulary), ElementsAre("a", "as", "ass"));
  EXPECT_THAT(vocabulary.counts(), ElementsAre(2, 2, 1));
  EXPECT_EQ(vocabulary.find_token("ass"), vocabulary.find("as"));
  EXPECT_EQ(vocabulary.find_token("asss"), vocabulary.find("ass"));
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) EXPECT_EQ(vocabulary.find(vocabulary.word(slot)), slot);
}

TEST(WordCounterForms, AliasesDoNotDependOnTheOrderOfTheText) {
  WordCounter forward, backward;
  forward.add(Words{"bs", "as", "a", "b"});
  backward.add(Words{"b", "a", "as", "bs"});
  const Vocabulary one = forward.make_vocabulary({.min_count = 1}, strip_s);
  const Vocabulary other = backward.make_vocabulary({.min_count = 1}, strip_s);
  ASSERT_EQ(one.alias_count(), 2);
  ASSERT_EQ(other.alias_count(), 2);
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(one.alias(i).spelling, other.alias(i).spelling);
}

TEST(WordCounterExtend, AddsCountsToKnownWordsAndAppendsNewOnes) {
  Vocabulary vocabulary;
  vocabulary.add("rare", 1);
  WordCounter counter;
  counter.add(Words{"new", "rare", "new", "new", "newer", "newer"});
  counter.extend(vocabulary, {.min_count = 2});
  EXPECT_THAT(words_of(vocabulary), ElementsAre("rare", "new", "newer"));
  EXPECT_EQ(vocabulary.count(0), 2);
  EXPECT_EQ(vocabulary.count(1), 3);
}

TEST(WordCounterExtend, NeverPassesVocabMax) {
  Vocabulary vocabulary;
  for (const char* word : {"a", "b", "c"}) vocabulary.add(word, 1);
  WordCounter counter;
  counter.add(Words{"x", "x", "y"});
  counter.extend(vocabulary, {.min_count = 1, .vocab_max = 4});
  EXPECT_THAT(words_of(vocabulary), ElementsAre("a", "b", "c", "x"));
  counter.extend(vocabulary, {.min_count = 1, .vocab_max = 2});
  EXPECT_EQ(vocabulary.size(), 4);
}

TEST(WordCounterExtend, AKnownWordCountsForItsFormFromThenOn) {
  Vocabulary vocabulary;
  vocabulary.add("dogs", 1);
  WordCounter counter;
  counter.add(Words{"dogs", "dogs", "dog"});
  for (int i = 0; i < 2; ++i) counter.extend(vocabulary, {.min_count = 3}, strip_s);
  EXPECT_THAT(words_of(vocabulary), ElementsAre("dogs", "dog"));
  EXPECT_THAT(vocabulary.counts(), ElementsAre(1, 6));
}

TEST(WordCounterExtend, NewSpellingsOfKnownFormsBecomeAliases) {
  Vocabulary vocabulary;
  vocabulary.add("dog", 4);
  WordCounter counter;
  counter.add(Words{"dogs"});
  counter.extend(vocabulary, {.min_count = 3}, strip_s);
  EXPECT_EQ(vocabulary.find("dogs"), 0);
  EXPECT_EQ(vocabulary.count(0), 5);
}

}  // namespace
}  // namespace streamvec
