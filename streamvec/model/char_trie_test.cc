#include "streamvec/model/char_trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

Spelling letters(const std::string& word) {
  return Spelling(word.begin(), word.end());
}

CharTrie built(const std::vector<std::string>& words) {
  std::vector<Spelling> spellings;
  for (const std::string& word : words) spellings.push_back(letters(word));
  const std::vector<std::span<const CharacterId>> views(spellings.begin(), spellings.end());
  CharTrie trie;
  trie.build(views);
  return trie;
}

// The beginning a node stands for, by following parents.
std::string beginning(const CharTrie& trie, int32_t node) {
  std::string word;
  for (; node > 0; node = trie.parents()[static_cast<size_t>(node)])
    word.insert(word.begin(), static_cast<char>(trie.alphabet()[static_cast<size_t>(trie.characters()[node])]));
  return word;
}

void expect_trie_of(const CharTrie& trie, const std::vector<std::string>& words) {
  std::set<std::string> beginnings{""}, followed{""};
  for (const std::string& word : words)
    for (size_t length = 1; length <= word.size(); ++length) {
      beginnings.insert(word.substr(0, length));
      followed.insert(word.substr(0, length - 1));
    }
  std::set<std::string> found;
  const auto visit = [&](int32_t length, int32_t node) {
    const std::string text = beginning(trie, node);
    EXPECT_EQ(static_cast<int32_t>(text.size()), length);
    EXPECT_EQ(followed.contains(text), node < trie.inner()) << text;
    EXPECT_TRUE(found.insert(text).second) << text << " is there twice";
    if (length == 0) return;
    const int32_t parent = trie.parents()[static_cast<size_t>(node)];
    EXPECT_GE(parent, trie.level(length - 1).inner_begin);
    EXPECT_LT(parent, trie.level(length - 1).inner_end);
  };
  for (int32_t length = 0; length < trie.levels(); ++length) {
    const CharTrie::Level& level = trie.level(length);
    for (int32_t node = level.inner_begin; node < level.inner_end; ++node) visit(length, node);
    for (int32_t node = level.leaf_begin; node < level.leaf_end; ++node) visit(length, node);
  }
  EXPECT_EQ(found, beginnings);
  EXPECT_EQ(trie.nodes(), static_cast<int32_t>(beginnings.size()));
  EXPECT_EQ(trie.inner(), static_cast<int32_t>(followed.size()));
  ASSERT_EQ(trie.words(), static_cast<int32_t>(words.size()));
  for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(beginning(trie, trie.word_nodes()[i]), words[i]);
}

TEST(CharTrie, HoldsEachBeginningOnceLevelByLevelInnerNodesFirst) {
  const std::vector<std::string> words{"tea", "ten", "to", "t", "inn", "in", "tea", "zzzzzzz", ""};
  expect_trie_of(built(words), words);
}

TEST(CharTrie, OfNoWordsAndOfEmptyWordsHasTheEmptyBeginning) {
  expect_trie_of(built({}), {});
  expect_trie_of(built({"", ""}), {"", ""});
}

TEST(CharTrie, ListsEachCharacterOnce) {
  const CharTrie trie = built({"banana", "nab", "can"});
  std::string all(trie.alphabet().begin(), trie.alphabet().end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, "abcn");
}

TEST(CharTrie, RemembersNothingOfTheBatchBefore) {
  CharTrie trie;
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> words(random.below(60));
    for (std::string& word : words)
      for (uint32_t length = random.below(9); length > 0; --length) word += static_cast<char>('a' + random.below(3));
    std::vector<Spelling> spellings;
    for (const std::string& word : words) spellings.push_back(letters(word));
    const std::vector<std::span<const CharacterId>> views(spellings.begin(), spellings.end());
    trie.build(views);
    expect_trie_of(trie, words);
    if (HasFailure()) return;
  }
}

TEST(CharTrie, TakesTheLargestCharacterNumber) {
  const std::vector<Spelling> words{{65535, 0}, {65535, 65535}};
  const std::vector<std::span<const CharacterId>> views(words.begin(), words.end());
  CharTrie trie;
  trie.build(views);
  EXPECT_EQ(trie.nodes(), 4);
  EXPECT_EQ(trie.inner(), 2);
}

}  // namespace
}  // namespace streamvec
