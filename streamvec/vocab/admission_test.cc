#include "streamvec/vocab/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string_view>;

std::vector<Slot> admit(Admission& admission, Vocabulary& vocabulary, const Words& words) {
  std::vector<Slot> slots(words.size());
  const int32_t size_before = vocabulary.size();
  const int32_t gained = admission.admit(words, vocabulary, slots);
  EXPECT_EQ(gained, vocabulary.size() - size_before);
  return slots;
}

TEST(Admission, AdmitsAWordAtItsMinCountthOccurrence) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 3});
  EXPECT_THAT(admit(admission, vocabulary, {"a", "b", "a"}), ElementsAre(kNoSlot, kNoSlot, kNoSlot));
  EXPECT_THAT(admit(admission, vocabulary, {"a", "a", "b", "b"}), ElementsAre(0, 0, kNoSlot, 1));
  EXPECT_EQ(vocabulary.count(0), 4);
  EXPECT_EQ(vocabulary.count(1), 3);
}

TEST(Admission, WithMinCountOneEveryWordIsAdmittedAtOnce) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 1});
  EXPECT_THAT(admit(admission, vocabulary, {"a", "b", "a", ""}), ElementsAre(0, 1, 0, kNoSlot));
  EXPECT_EQ(admission.candidates(), 0);
}

TEST(Admission, GivesTheCountsOfACountingPassWhenItIsNotBounded) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 2});
  WordCounter counter;
  std::vector<std::string> text;
  for (int i = 0; i < 5'000; ++i) text.push_back("w" + std::to_string(i * i % 977));
  const Words words(text.begin(), text.end());
  admit(admission, vocabulary, words);
  counter.add(words);
  const Vocabulary counted = counter.make_vocabulary({.min_count = 2});
  ASSERT_EQ(vocabulary.size(), counted.size());
  for (Slot slot = 0; slot < counted.size(); ++slot)
    ASSERT_EQ(vocabulary.count(vocabulary.find(counted.word(slot))), counted.count(slot));
}

TEST(Admission, AdmitsNobodyPastVocabMaxAndLetsTheCandidatesGo) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 2, .vocab_max = 1});
  EXPECT_THAT(admit(admission, vocabulary, {"a", "b", "a", "b", "a"}), ElementsAre(kNoSlot, kNoSlot, 0, kNoSlot, 0));
  EXPECT_EQ(vocabulary.size(), 1);
  EXPECT_EQ(admission.candidates(), 0);
}

TEST(Admission, BoundedCandidatesAreNeverAdmittedEarly) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 3, .candidates_max = 100});
  std::vector<std::string> text;
  for (int i = 0; i < 20'000; ++i) {
    text.push_back("once" + std::to_string(i));
    if (i % 10 == 0) text.push_back("often");
  }
  for (const std::string& word : text) {
    admit(admission, vocabulary, {word});
    ASSERT_LE(admission.candidates(), 100);
  }
  ASSERT_EQ(vocabulary.size(), 1);
  EXPECT_EQ(vocabulary.word(0), "often");
  EXPECT_LE(vocabulary.count(0), 2'000);
  EXPECT_GT(vocabulary.count(0), 1'900);
}

TEST(Admission, SpellingsCountForTheirFormAndBecomeAliases) {
  int asked = 0;
  const auto form_of = [&](std::string_view word) -> std::optional<std::string> {
    ++asked;
    if (word == "the") return std::nullopt;
    return std::string(word.ends_with('s') ? word.substr(0, word.size() - 1) : word);
  };
  Vocabulary vocabulary;
  Admission admission({.min_count = 2, .form_of = form_of});
  EXPECT_THAT(admit(admission, vocabulary, {"dogs", "the", "dog", "dogs", "dogs"}),
              ElementsAre(kNoSlot, kNoSlot, 0, 0, 0));
  EXPECT_EQ(vocabulary.word(0), "dog");
  EXPECT_EQ(vocabulary.find("dogs"), 0);
  EXPECT_EQ(vocabulary.count(0), 4);
  asked = 0;
  EXPECT_THAT(admit(admission, vocabulary, {"the", "dogs", "the"}), ElementsAre(kNoSlot, 0, kNoSlot));
  EXPECT_EQ(asked, 0) << "stop words and aliases are decided once per type";
}

TEST(Admission, EndlessSpellingsOfOneFormTakeBoundedMemory) {
  Vocabulary vocabulary;
  Admission admission({.min_count = 1, .form_of = [](std::string_view) { return "<number>"; }});
  for (int i = 0; i < 1'000; ++i) {
    const std::string spelling = std::to_string(i);
    EXPECT_THAT(admit(admission, vocabulary, {spelling}), ElementsAre(0));
  }
  EXPECT_EQ(vocabulary.count(0), 1'000);
  EXPECT_LE(vocabulary.alias_count(), 16);
}

TEST(Admission, GoesOnWithAVocabularyThatIsThereAlready) {
  Vocabulary vocabulary;
  vocabulary.add("known", 10);
  Admission admission({.min_count = 2});
  EXPECT_THAT(admit(admission, vocabulary, {"known", "new", "new"}), ElementsAre(0, kNoSlot, 1));
  EXPECT_EQ(vocabulary.count(0), 11);
}

}  // namespace
}  // namespace streamvec
