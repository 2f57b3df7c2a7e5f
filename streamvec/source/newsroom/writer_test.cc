#include "streamvec/source/newsroom/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "streamvec/source/newsroom/coinage.h"
#include "streamvec/source/planted_words.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec::newsroom {
namespace {

constexpr int64_t kStories = 1'000;

std::vector<std::string> words_of(const std::string& text) {
  Tokenizer tokenizer;
  Tokens tokens;
  tokenizer.tokenize(text, tokens);
  return {tokens.words.begin(), tokens.words.end()};
}

using Counts = std::map<std::string, int>;
Counts counts(const Writer& writer, int64_t begin, int64_t end) {
  Counts counts;
  for (int64_t number = begin; number < end; ++number)
    for (const std::string& word : words_of(writer.story(number).text())) ++counts[word];
  return counts;
}

bool has(const Counts& counts, const std::string& word) {
  return counts.contains(word);
}

// How often the word before `word` is one that describes that class.
int described_as(const Writer& writer, int64_t begin, int64_t end, const std::string& word, const std::string& name) {
  std::set<std::string> describing;
  for (const planted::ClassWords& list : planted::class_words())
    if (list.name == name)
      for (const std::string& other : words_of(std::string(list.before))) describing.insert(other);
  int count = 0;
  for (int64_t number = begin; number < end; ++number) {
    const std::vector<std::string> words = words_of(writer.story(number).text());
    for (size_t i = 1; i < words.size(); ++i) count += words[i] == word && describing.contains(words[i - 1]);
  }
  return count;
}

TEST(NewsWriter, AStoryDependsOnSeedAndNumberAlone) {
  const Writer writer({.seed = 3}), same({.seed = 3}), other({.seed = 4});
  EXPECT_EQ(writer.story(17).text(), same.story(17).text());
  EXPECT_NE(writer.story(17).text(), other.story(17).text());
  EXPECT_NE(writer.story(17).text(), writer.story(18).text());
  EXPECT_EQ(writer.story(17).title, writer.title(17));
}

TEST(NewsWriter, StoriesHaveAboutThreeHundredWords) {
  const Writer writer({});
  size_t words = 0;
  for (int64_t number = 0; number < 200; ++number) words += words_of(writer.story(number).text()).size();
  EXPECT_NEAR(static_cast<double>(words) / 200, 300, 50);
}

TEST(NewsWriter, AWordChangesItsCompanyAtTheChange) {
  const Writer writer({.seed = 2, .change_at = kStories / 2});
  ASSERT_GE(truth().changes.size(), 1U);
  for (const Truth::Change& change : truth().changes) {
    const auto described = [&](int64_t begin, int64_t end, const std::string& name) {
      return described_as(writer, begin, end, change.word, name);
    };
    EXPECT_GE(described(0, kStories / 2, change.class_before), 30) << change.word;
    EXPECT_EQ(described(0, kStories / 2, change.class_after), 0) << change.word;
    EXPECT_EQ(described(kStories / 2, kStories, change.class_before), 0) << change.word;
    EXPECT_GE(described(kStories / 2, kStories, change.class_after), 30) << change.word;
  }
}

TEST(NewsWriter, CoinedWordsAreRareAndNewAndOthersAreNeverUsed) {
  const Writer writer({.seed = 1, .change_at = kStories / 2});
  const Counts before = counts(writer, 0, kStories / 2), after = counts(writer, kStories / 2, kStories);
  int used = 0, occurrences = 0;
  for (const Truth::Coined& coined : truth().coined) {
    EXPECT_FALSE(has(before, coined.word)) << coined.word;
    EXPECT_TRUE(coined.used || !has(after, coined.word)) << coined.word;
    if (!has(after, coined.word)) continue;
    ++used;
    occurrences += after.at(coined.word);
    EXPECT_LE(after.at(coined.word), 30) << coined.word;
  }
  EXPECT_GE(used, 40);
  EXPECT_GE(occurrences, 3 * used / 2);
}

TEST(NewsWriter, ThePartsOfACoinedWordAreKnownFromOtherWordsOfItsClass) {
  for (const ClassCoinage& words : coinage())
    for (const auto* list : {&words.coined, &words.unseen})
      for (const std::string& word : *list) {
        int first = 0, last = 0;
        for (const ClassCoinage& others : coinage())
          for (const std::string& known : others.known) {
            first += known.starts_with(word.substr(0, 3));
            last += &others == &words && known.ends_with(word.substr(word.size() - 3));
          }
        EXPECT_GE(first, 5) << word;
        EXPECT_GE(last, 10) << word;
      }
}

TEST(NewsWriter, NoWordOfTheTruthHasTwoRoles) {
  std::multiset<std::string> words;
  for (const auto& word_class : truth().classes) words.insert(word_class.words.begin(), word_class.words.end());
  for (const auto& relation : truth().relations)
    for (const auto& [a, b] : relation.pairs) words.insert({a, b});
  for (const auto& change : truth().changes) words.insert(change.word);
  for (const auto& coined : truth().coined) words.insert(coined.word);
  for (const std::string& word : words) EXPECT_EQ(words.count(word), 1U) << word;
}

TEST(NewsWriter, TheTruthNamesWordsThatOccurOften) {
  const Counts counted = counts(Writer({}), 0, kStories);
  for (const auto& word_class : truth().classes)
    for (const std::string& word : word_class.words) EXPECT_GE(has(counted, word) ? counted.at(word) : 0, 5) << word;
}

TEST(NewsTruth, MembershipFollowsTheChange) {
  EXPECT_TRUE(truth().is_member("tiger", "animals"));
  EXPECT_FALSE(truth().is_member("tiger", "foods"));
  EXPECT_TRUE(truth().is_member("jaguar", "vehicles"));
  EXPECT_FALSE(truth().is_member("jaguar", "animals"));
  EXPECT_TRUE(truth().is_member("jaguar", "animals", /*after_change=*/false));
  const Truth::Coined& coined = truth().coined.front();
  EXPECT_TRUE(truth().is_member(coined.word, coined.word_class));
}

TEST(NewsWriter, TheTrapWordStandsInTrapsAndNowhereElse) {
  const Writer writer({});
  EXPECT_FALSE(has(counts(writer, 0, kStories), kTrapWord));
  for (const std::string& paragraph : writer.trap(50).paragraphs) {
    const std::vector<std::string> words = words_of(paragraph);
    EXPECT_GE(std::count(words.begin(), words.end(), kTrapWord), 4);
  }
}

}  // namespace
}  // namespace streamvec::newsroom
