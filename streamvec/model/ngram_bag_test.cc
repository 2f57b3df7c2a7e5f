#include "streamvec/model/ngram_bag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kBagDim = 5, kWordsMax = 64;
const std::vector<std::string> kBagWords = {"walk",  "walked", "walking", "walks",   "talk",  "talked",
                                            "talks", "jump",   "jumped",  "jumping", "jumps", "unwalked"};

NgramBag new_bag(NgramBagOptions options = {}) {
  return std::move(NgramBag::make(options, kBagDim, kWordsMax)).value();
}

Matrix targets(uint64_t seed) {
  Matrix rows = std::move(Matrix::make(kWordsMax, kBagDim)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (float& value : rows.view().row_span(i)) value = random.uniform() - 0.5f;
  return rows;
}

float weight_of(Slot slot) {
  return 0.3f + 0.1f * static_cast<float>(slot % 5);
}

void tell(NgramBag& bag, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) bag.set_word(static_cast<Slot>(i), words[i]);
}

void fit(NgramBag& bag, const Matrix& rows, size_t words, int passes) {
  for (int pass = 0; pass < passes; ++pass)
    for (Slot slot = 0; slot < static_cast<Slot>(words); ++slot) bag.fit(slot, rows.row(slot), weight_of(slot));
}

std::vector<float> vector_of(const NgramBag& bag, std::string_view word) {
  Matrix row = std::move(Matrix::make(1, kBagDim)).value();
  bag.add_vector(word, row.row(0));
  return {row.row(0), row.row(0) + kBagDim};
}

// The n-grams of `words` that two or more of them have, by bucket, each with a number.
std::map<uint32_t, size_t> shared_ngrams(const std::vector<std::string>& words) {
  std::map<uint32_t, std::vector<size_t>> users;
  std::vector<NgramFeature> features;
  for (size_t i = 0; i < words.size(); ++i) {
    ngram_features(words[i], {}, features);
    for (const NgramFeature& feature : features)
      if (auto& list = users[feature.bucket]; list.empty() || list.back() != i) list.push_back(i);
  }
  std::map<uint32_t, size_t> shared;
  for (const auto& [bucket, list] : users)
    if (list.size() > 1) shared.emplace(bucket, shared.size());
  return shared;
}

// Row i: how word i is made of the shared n-grams.
std::vector<std::vector<double>> design(const std::vector<std::string>& words,
                                        const std::map<uint32_t, size_t>& shared) {
  std::vector<std::vector<double>> rows(words.size(), std::vector<double>(shared.size()));
  std::vector<NgramFeature> features;
  for (size_t i = 0; i < words.size(); ++i) {
    ngram_features(words[i], {}, features);
    for (const NgramFeature& feature : features)
      if (const auto found = shared.find(feature.bucket); found != shared.end())
        rows[i][found->second] += feature.weight;
  }
  return rows;
}

// x of a x = b, by elimination; a is positive definite.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k)
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

TEST(NgramBag, FindsTheRowsOfTheWeightedRidgeRegression) {
  NgramBag bag = new_bag();
  const Matrix rows = targets(1);
  tell(bag, kBagWords);
  fit(bag, rows, kBagWords.size(), 300);

  const auto shared = shared_ngrams(kBagWords);
  const auto x = design(kBagWords, shared);
  std::vector<std::vector<double>> gram(shared.size(), std::vector<double>(shared.size()));
  for (size_t a = 0; a < shared.size(); ++a) {
    gram[a][a] = bag.options().shrinkage;
    for (size_t b = 0; b < shared.size(); ++b)
      for (size_t i = 0; i < x.size(); ++i) gram[a][b] += weight_of(static_cast<Slot>(i)) * x[i][a] * x[i][b];
  }
  for (int64_t d = 0; d < kBagDim; ++d) {
    std::vector<double> moments(shared.size());
    for (size_t a = 0; a < shared.size(); ++a)
      for (size_t i = 0; i < x.size(); ++i)
        moments[a] += weight_of(static_cast<Slot>(i)) * x[i][a] * rows.row(static_cast<int64_t>(i))[d];
    const std::vector<double> z = solve(gram, moments);
    for (size_t row = 0; row < bag.buckets().size(); ++row)
      EXPECT_NEAR(bag.rows().row(static_cast<int64_t>(row))[d], z[shared.at(bag.buckets()[row])], 1e-4);
  }
  EXPECT_EQ(bag.buckets().size(), shared.size());
}

void expect_rows_are_what_duals_say(const NgramBag& bag, const std::vector<std::string>& words) {
  std::vector<NgramFeature> features;
  for (size_t row = 0; row < bag.buckets().size(); ++row) {
    if (bag.buckets()[row] == NgramBag::kNoBucket) continue;
    for (int64_t d = 0; d < kBagDim; ++d) {
      double sum = 0;
      for (size_t i = 0; i < words.size(); ++i) {
        ngram_features(words[i], {}, features);
        for (const NgramFeature& feature : features)
          if (feature.bucket == bag.buckets()[row])
            sum += feature.weight * bag.duals().row(static_cast<int64_t>(i))[d] / bag.options().shrinkage;
      }
      EXPECT_NEAR(bag.rows().row(static_cast<int64_t>(row))[d], sum, 1e-4);
    }
  }
}

TEST(NgramBag, AWordThatGoesTakesBackWhatItHasSaid) {
  const Matrix rows = targets(2);
  NgramBag bag = new_bag();
  tell(bag, kBagWords);
  fit(bag, rows, kBagWords.size(), 3);
  bag.set_word(2, "unjumped");
  std::vector<std::string> words = kBagWords;
  words[2] = "unjumped";
  expect_rows_are_what_duals_say(bag, words);
  for (const float value : bag.duals().view().row_span(2)) EXPECT_EQ(value, 0);
}

TEST(NgramBag, AnNgramCountsAsOftenAsAWordHasIt) {
  const Matrix rows = targets(4);
  NgramBag bag = new_bag();
  bag.set_word(0, "banana");  // "ana" twice, with no row while the word is alone
  fit(bag, rows, 1, 1);
  EXPECT_EQ(bag.rows().rows(), 0);
  bag.set_word(1, "bananas");
  EXPECT_EQ(bag.cost(0), 14);  // of 18 all but the four with the end of the word
  expect_rows_are_what_duals_say(bag, {"banana", "bananas"});
  fit(bag, rows, 2, 2);
  expect_rows_are_what_duals_say(bag, {"banana", "bananas"});
  bag.set_word(1, "x");
  expect_rows_are_what_duals_say(bag, {"banana", "x"});
  bag.set_word(0, "y");
  for (const uint32_t bucket : bag.buckets()) EXPECT_EQ(bucket, NgramBag::kNoBucket);
}

TEST(NgramBag, RowsOfNgramsThatNobodyHasAnyMoreAreUsedAgain) {
  NgramBag bag = new_bag();
  int64_t most = 0;
  for (int round = 0; round < 50; ++round) {
    const std::string stem(1 + static_cast<size_t>(round % 7), static_cast<char>('a' + round % 26));
    bag.set_word(0, stem + "ness");
    bag.set_word(1, stem + "nesses");
    most = std::max<int64_t>(most, bag.rows().rows());
  }
  EXPECT_LT(most, 80);
  EXPECT_GT(most, 3);
}

TEST(NgramBag, GoesOnBitForBitAfterItWasRestored) {
  const Matrix rows = targets(3);
  NgramBag bag = new_bag();
  tell(bag, kBagWords);
  fit(bag, rows, kBagWords.size(), 2);
  NgramBag again = new_bag();
  ASSERT_TRUE(again.adopt(bag.buckets(), bag.rows().view(), bag.duals().view()).ok());
  tell(again, kBagWords);
  for (NgramBag* each : {&bag, &again}) {
    each->set_word(static_cast<Slot>(kBagWords.size()), "unjumping");
    fit(*each, rows, kBagWords.size() + 1, 2);
  }
  for (const std::string& word : kBagWords) EXPECT_EQ(vector_of(bag, word), vector_of(again, word)) << word;
  EXPECT_EQ(vector_of(bag, "unjumps"), vector_of(again, "unjumps"));
}

TEST(NgramBag, RefusesBucketsAndRowsThatDoNotBelongTogether) {
  const Matrix two = std::move(Matrix::make(2, kBagDim)).value(),
               other = std::move(Matrix::make(2, kBagDim + 1)).value();
  const Matrix none;
  const std::vector<uint32_t> twice = {7, 7}, far = {1, uint32_t{1} << 22}, one = {3}, fine = {3, NgramBag::kNoBucket};
  EXPECT_EQ(new_bag().adopt(twice, two.view(), none.view()).code(), Code::kDataLoss);
  EXPECT_EQ(new_bag().adopt(far, two.view(), none.view()).code(), Code::kDataLoss);
  EXPECT_EQ(new_bag().adopt(one, two.view(), none.view()).code(), Code::kDataLoss);
  EXPECT_EQ(new_bag().adopt(fine, other.view(), none.view()).code(), Code::kDataLoss);
  EXPECT_TRUE(new_bag().adopt(fine, two.view(), none.view()).ok());
}

TEST(NgramBag, SlotsByNgramsHaveWordsThatBeginAlikeTogether) {
  NgramBag bag = new_bag();
  tell(bag, {"walked", "jumped", "walks", "jumps", "walking", "jumping"});
  const std::vector<Slot> slots = bag.slots_by_ngrams();
  ASSERT_EQ(slots.size(), 6u);
  std::string parities;
  for (const Slot slot : slots) parities += slot % 2 == 0 ? 'w' : 'j';
  EXPECT_TRUE(parities == "wwwjjj" || parities == "jjjwww") << parities;
  EXPECT_EQ(std::set<Slot>(slots.begin(), slots.end()).size(), 6u);
}

TEST(NgramBag, WordsThatShareAStemHelpEachOther) {
  NgramBag bag = new_bag();
  std::vector<std::string> words;
  Matrix rows = std::move(Matrix::make(kWordsMax, kBagDim)).value();
  for (const char* stem : {"boat", "ship", "lamp", "tree"})
    for (const char* ending : {"", "s", "ing", "ed"}) {
      rows.row(static_cast<int64_t>(words.size()))[static_cast<int64_t>(words.size() / 4)] = 1;
      words.push_back(std::string(stem) + ending);
    }
  tell(bag, words);
  fit(bag, rows, words.size(), 5);
  const std::vector<float> unseen = vector_of(bag, "shippers");
  EXPECT_EQ(std::max_element(unseen.begin(), unseen.end()) - unseen.begin(), 1);
}

TEST(NgramFeatures, HaveWeightsWhoseSquaresSumToOneForAnyBytes) {
  std::vector<NgramFeature> features;
  for (const std::string word : {"a", "walking", "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4", "\xff\xfe\x80", "naïve"}) {
    ngram_features(word, {}, features);
    double squares = 0;
    for (const NgramFeature& feature : features) squares += double{feature.weight} * feature.weight;
    EXPECT_NEAR(squares, 1, 1e-5) << word;
  }
}

TEST(NgramFeatures, TakeHangulByJamo) {
  // Two syllables of three jamo each: with both marks 8 characters, 6 + 5 + 4 + 3 n-grams of 3 to 6.
  std::vector<NgramFeature> features;
  ngram_features("\xed\x95\x9c\xea\xb5\xad", {}, features);
  EXPECT_EQ(features.size(), 6u + 5u + 4u + 3u);
}

// How long the n-grams of a word are, marks included, by their number.
std::map<int32_t, int64_t> lengths_of(std::string_view word, const NgramBagOptions& options) {
  NgramBagOptions each_length = options;
  each_length.length_power = 1;
  std::vector<NgramFeature> features;
  ngram_features(word, each_length, features);
  float shortest = features.empty() ? 0 : features.front().weight, square = 0;
  for (const NgramFeature& feature : features) {
    shortest = std::min(shortest, feature.weight);
    square += feature.weight * feature.weight;
  }
  EXPECT_NEAR(square, features.empty() ? 0 : 1, 1e-5);
  std::map<int32_t, int64_t> counts;
  for (const NgramFeature& feature : features)
    ++counts[static_cast<int32_t>(std::lround(100 * feature.weight / shortest))];
  return counts;
}

TEST(NgramFeatures, MayHaveEverySecondLengthAndShortWordsShorterOnes) {
  const NgramBagOptions options{.minn = 4, .maxn = 6, .length_step = 2};
  EXPECT_EQ(lengths_of("walking", options), (std::map<int32_t, int64_t>{{100, 6}, {150, 4}})) << "of 4 and of 6";
  EXPECT_EQ(lengths_of("walk", options), (std::map<int32_t, int64_t>{{100, 3}, {150, 1}}));
  EXPECT_EQ(lengths_of("the", options), (std::map<int32_t, int64_t>{{100, 3}, {133, 2}})) << "of 3 and of 4";
  EXPECT_EQ(lengths_of("a", options), (std::map<int32_t, int64_t>{{100, 1}}));
}

NgramBag moved_bag() {
  NgramBag bag = new_bag({.by_moves = true});
  tell(bag, kBagWords);
  return bag;
}

std::vector<float> composed_of(NgramBag& bag, Slot slot) {
  Matrix row = std::move(Matrix::make(1, kBagDim)).value();
  NgramBag::Scratch scratch;
  bag.compose(slot, scratch, row.row(0));
  return {row.row(0), row.row(0) + kBagDim};
}

// The n-grams that both words have and that have rows, by the product of their weights.
double in_common(const std::string& a, const std::string& b) {
  const std::map<uint32_t, size_t> shared = shared_ngrams(kBagWords);
  std::vector<NgramFeature> of_a, of_b;
  ngram_features(a, {}, of_a);
  ngram_features(b, {}, of_b);
  double sum = 0;
  for (const NgramFeature& x : of_a)
    for (const NgramFeature& y : of_b)
      if (x.bucket == y.bucket && shared.count(x.bucket) > 0) sum += x.weight * y.weight;
  return sum;
}

TEST(NgramBag, AWordIsWhereItHasMovedAndTakesWordsSpelledAlikeAlongByWhatTheyHaveInCommon) {
  NgramBag bag = moved_bag();
  const Matrix moves = targets(3);
  NgramBag::Scratch scratch;
  bag.move(1, moves.row(1), moves.row(1), scratch);
  const std::vector<float> itself = composed_of(bag, 1);
  for (int64_t d = 0; d < kBagDim; ++d) EXPECT_NEAR(itself[static_cast<size_t>(d)], moves.row(1)[d], 1e-6);
  for (const Slot other : {0, 2, 5, 7, 11}) {
    const double share = NgramBag::kShared * in_common("walked", kBagWords[static_cast<size_t>(other)]);
    const std::vector<float> moved = composed_of(bag, other);
    for (int64_t d = 0; d < kBagDim; ++d)
      EXPECT_NEAR(moved[static_cast<size_t>(d)], share * moves.row(1)[d], 1e-6) << other;
  }
  EXPECT_GT(in_common("walked", "walking"), 0.1);
}

TEST(NgramBag, WhatIsNotSharedOfAMoveStaysWithTheWord) {
  NgramBag bag = moved_bag();
  const Matrix moves = targets(3);
  NgramBag::Scratch scratch;
  Matrix none = std::move(Matrix::make(1, kBagDim)).value();
  bag.move(1, moves.row(1), none.row(0), scratch);
  const std::vector<float> itself = composed_of(bag, 1), other = composed_of(bag, 2);
  for (int64_t d = 0; d < kBagDim; ++d) {
    EXPECT_NEAR(itself[static_cast<size_t>(d)], moves.row(1)[d], 1e-6);
    EXPECT_EQ(other[static_cast<size_t>(d)], 0);
  }
}

TEST(NgramBag, SaysHowMuchOfASpellingIsNotKnown) {
  NgramBag bag = moved_bag();
  Matrix row = std::move(Matrix::make(1, kBagDim)).value();
  EXPECT_EQ(bag.add_vector("zzz", row.row(0)), 1);
  const float of_a_word = bag.add_vector("walked", row.row(0));
  EXPECT_NEAR(of_a_word, 1 - NgramBag::kShared * in_common("walked", "walked"), 1e-5);
  EXPECT_GT(bag.add_vector("walkedzzz", row.row(0)), of_a_word);
}

TEST(NgramBag, WhatAWordThatGoesHasMovedItsNgramsByStays) {
  NgramBag bag = moved_bag();
  const Matrix moves = targets(3);
  NgramBag::Scratch scratch;
  bag.move(1, moves.row(1), moves.row(1), scratch);
  const std::vector<float> before = vector_of(bag, "walk");
  bag.set_word(1, "zebra");
  EXPECT_EQ(composed_of(bag, 1), std::vector<float>(kBagDim)) << "nothing of it is the new word's";
  const std::vector<float> after = vector_of(bag, "walk");
  for (size_t d = 0; d < before.size(); ++d) EXPECT_NEAR(after[d], before[d], 1e-6);
}

}  // namespace
}  // namespace streamvec
