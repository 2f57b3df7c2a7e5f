#include "streamvec/source/planted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "streamvec/source/planted_words.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

std::vector<std::vector<std::string>> sentences(int64_t tokens, uint64_t seed) {
  PlantedSource source({.tokens = tokens, .seed = seed});
  std::istringstream text(joined(read_all(source, 3).value()));
  std::vector<std::vector<std::string>> result;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    result.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return result;
}

// How often each word stands within two words of the words asked for.
using Surroundings = std::map<std::string, std::map<std::string, double>>;
Surroundings count_surroundings(const std::set<std::string>& asked) {
  Surroundings counts;
  for (const auto& line : sentences(300'000, 1))
    for (size_t i = 0; i < line.size(); ++i)
      for (size_t j = i < 2 ? 0 : i - 2; asked.contains(line[i]) && j < std::min(line.size(), i + 3); ++j)
        if (i != j) ++counts[line[i]][line[j]];
  return counts;
}

double cosine(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  double dot = 0, norm_a = 0, norm_b = 0;
  for (const auto& [word, count] : a) {
    norm_a += count * count;
    if (const auto found = b.find(word); found != b.end()) dot += count * found->second;
  }
  for (const auto& [word, count] : b) norm_b += count * count;
  return dot / std::sqrt(norm_a * norm_b);
}

TEST(Planted, GivesExactlyTheTokensAskedFor) {
  for (const int64_t tokens : {1, 100, 4'096, 10'000}) {
    size_t count = 0;
    for (const auto& line : sentences(tokens, 1)) count += line.size();
    EXPECT_EQ(count, static_cast<size_t>(tokens));
  }
}

TEST(Planted, OneSeedGivesOneTextAndAnotherAnother) {
  EXPECT_EQ(sentences(5'000, 7), sentences(5'000, 7));
  EXPECT_NE(sentences(5'000, 7), sentences(5'000, 8));
}

TEST(Planted, IsPlainLowerCaseText) {
  for (const auto& line : sentences(20'000, 1))
    for (const std::string& word : line)
      ASSERT_TRUE(std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; })) << word;
}

TEST(Planted, EveryListedWordStandsInOneListOnly) {
  std::multiset<std::string> words;
  const auto add = [&](std::string_view list) {
    std::istringstream in{std::string(list)};
    words.insert(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
  };
  add(planted::function_words());
  for (const auto& list : planted::class_words()) {
    for (const std::string_view part : {list.members, list.before, list.after}) add(part);
  }
  for (const auto& list : planted::relation_words()) {
    for (const std::string_view part : {list.pairs, list.first_side, list.second_side}) add(part);
  }
  for (const std::string& word : words) EXPECT_EQ(words.count(word), 1U) << word;
}

TEST(Planted, TheTruthNamesWordsThatOccurOften) {
  std::map<std::string, int> counts;
  for (const auto& line : sentences(200'000, 1))
    for (const std::string& word : line) ++counts[word];
  for (const auto& word_class : planted_truth().classes)
    for (const std::string& word : word_class.words) EXPECT_GE(counts[word], 20) << word;
  for (const auto& relation : planted_truth().relations) {
    EXPECT_GE(relation.pairs.size(), 20U);
    for (const auto& [a, b] : relation.pairs) EXPECT_GE(std::min(counts[a], counts[b]), 20) << a << " " << b;
  }
}

TEST(Planted, WordsOfAClassShareTheirSurroundingsAndOthersDoNot) {
  const auto& classes = planted_truth().classes;
  const std::string word = classes[0].words[0], kin = classes[0].words[1], stranger = classes[1].words[1];
  const Surroundings surroundings = count_surroundings({word, kin, stranger});
  EXPECT_GT(cosine(surroundings.at(word), surroundings.at(kin)),
            cosine(surroundings.at(word), surroundings.at(stranger)) + 0.2);
}

TEST(Planted, APairSharesItsNamesAndASideItsWords) {
  const auto& pairs = planted_truth().relations[0].pairs;
  const Surroundings surroundings =
      count_surroundings({pairs[0].first, pairs[0].second, pairs[1].first, pairs[1].second});
  const auto similarity = [&](const std::string& a, const std::string& b) {
    return cosine(surroundings.at(a), surroundings.at(b));
  };
  const double unrelated = similarity(pairs[0].first, pairs[1].second);
  EXPECT_GT(similarity(pairs[0].first, pairs[0].second), unrelated + 0.2);
  EXPECT_GT(similarity(pairs[0].first, pairs[1].first), unrelated + 0.05);
}

TEST(Planted, AnalogyQuestionsHaveTheUsualFormat) {
  const std::string questions = planted_truth().analogy_questions();
  EXPECT_THAT(questions, HasSubstr(": country-capital\nfrance paris japan tokyo\n"));
  EXPECT_EQ(questions.find("france paris france"), std::string::npos);
}

TEST(Planted, GoesOnAfterAnyDocument) {
  const PlantedSource::Options options = {.tokens = 20'000, .seed = 3};
  PlantedSource whole(options);
  const std::vector<Document> documents = read_all(whole).value();
  EXPECT_EQ(whole.bytes_read(), whole.bytes_total());
  PlantedSource resumed(options);
  ASSERT_TRUE(resumed.seek(documents[1].cursor).ok());
  std::vector<Document> next;
  ASSERT_EQ(resumed.read(1, Deadline::never(), next).value(), 1);
  EXPECT_EQ(next[0].text, documents[2].text);
}

TEST(Planted, RefusesACursorOfAnotherText) {
  PlantedSource one({.tokens = 5'000, .seed = 3}), other({.tokens = 5'000, .seed = 4});
  const std::string cursor = read_all(one).value()[0].cursor;
  EXPECT_EQ(other.seek(cursor).code(), Code::kFailedPrecondition);
  EXPECT_EQ(one.seek("rubbish").code(), Code::kInvalidArgument);
  EXPECT_EQ(one.seek(one.name() + "#99").code(), Code::kFailedPrecondition);
}

TEST(Planted, ItsNameGivesItsOptions) {
  EXPECT_EQ((*PlantedSource::open("planted:"))->name(), "planted:?tokens=1000000&seed=1");
  EXPECT_EQ((*PlantedSource::open("planted:?seed=9&tokens=50"))->name(), "planted:?tokens=50&seed=9");
  for (const char* name : {"planted:x", "planted:?tokens=0", "planted:?tokens=-5", "planted:?tokens=ten",
                           "planted:?size=5", "planted:?seed", "planted:?tokens=9223372036854775807"})
    EXPECT_EQ(PlantedSource::open(name).status().code(), Code::kInvalidArgument) << name;
}

}  // namespace
}  // namespace streamvec
