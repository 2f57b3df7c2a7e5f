// How near the extractor comes to what people would copy from a page: tests/pages has pages of many kinds (own prose),
// each NAME.html with NAME.txt beside it. The gold text has sub-headings, lists, tables and leads, but not the title,
// captions, bylines and dates. Measured as F1 over runs of four words, counted as often as they stand in the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "streamvec/text/article.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {
namespace {

using Shingles = std::map<std::string, int>;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Shingles shingles_of(const std::string& text, Tokenizer& tokenizer) {
  Tokens tokens;
  tokenizer.tokenize(text, tokens);
  const size_t size = std::min<size_t>(4, std::max<size_t>(1, tokens.words.size()));
  Shingles shingles;
  for (size_t i = 0; i + size <= tokens.words.size(); ++i) {
    std::string shingle;
    for (size_t k = 0; k < size; ++k) shingle.append(tokens.words[i + k]) += ' ';
    ++shingles[shingle];
  }
  return shingles;
}

int count(const Shingles& shingles) {
  int sum = 0;
  for (const auto& [shingle, times] : shingles) sum += times;
  return sum;
}

double f1(const Shingles& found, const Shingles& gold) {
  int common = 0;
  for (const auto& [shingle, times] : gold) {
    const auto at = found.find(shingle);
    if (at != found.end()) common += std::min(times, at->second);
  }
  const int all = count(found) + count(gold);
  return all == 0 ? 1 : 2.0 * common / all;
}

TEST(ArticlePages, F1OverAllPagesIsAtLeastNinetyThreePercent) {
  struct Score {
    double f1;
    std::string name;
  };
  std::vector<Score> scores;
  ArticleExtractor extractor;
  Article article;
  Tokenizer tokenizer;
  double sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STREAMVEC_TEST_PAGES)) {
    if (entry.path().extension() != ".html") continue;
    extractor.extract(read_file(entry.path()), article);
    const std::string gold = read_file(std::filesystem::path(entry.path()).replace_extension(".txt"));
    ASSERT_FALSE(gold.empty()) << entry.path();
    scores.push_back({f1(shingles_of(article.text, tokenizer), shingles_of(gold, tokenizer)), entry.path().stem()});
    sum += scores.back().f1;
  }
  ASSERT_GE(scores.size(), 60u);
  std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) { return a.f1 < b.f1; });
  const double mean = sum / static_cast<double>(scores.size());
  std::cout << scores.size() << " pages, mean F1 " << mean << "; the worst:";
  for (size_t i = 0; i < 5; ++i) std::cout << ' ' << scores[i].name << ' ' << scores[i].f1;
  std::cout << '\n';
  EXPECT_GE(mean, 0.93);
  EXPECT_GE(scores.front().f1, 0.6) << scores.front().name;
}

}  // namespace
}  // namespace streamvec
