// What a character model shows of itself where several nodes train it: slopes, and rows of characters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/model/rbsg_testing.h"

namespace streamvec {
namespace {

using testing::batch_of_pairs;
using testing::kSpelledWords;
using testing::Negatives;
using testing::spelled_model;
using testing::spelled_vectors;

RbsgBatch some_pairs(const RbsgBatch& batch, size_t begin, size_t end) {
  RbsgBatch some;
  some.form = batch.form;
  const size_t each = batch.negatives.size() / batch.centres.size();
  some.centres.assign(batch.centres.begin() + begin, batch.centres.begin() + end);
  some.contexts.assign(batch.contexts.begin() + begin, batch.contexts.begin() + end);
  some.negatives.assign(batch.negatives.begin() + begin * each, batch.negatives.begin() + end * each);
  return some;
}

// As they are summed up: of one pair, by how many there are.
std::vector<double> shared_slopes(const SharedSlopes& shared) {
  std::vector<double> all;
  for (const SharedSlopes::Table& table : shared.tables)
    for (int64_t row = 0; row < table.slopes->rows(); ++row)
      for (int64_t col = 0; col < table.slopes->cols(); ++col)
        all.push_back(double{table.slopes->row(row)[col]} * SharedSlopes::kUnit);
  return all;
}

TEST(RbsgShared, WhereSlopesAreSharedBatchesAddTheirsUpAndStepNothing) {
  const RbsgBatch batch = batch_of_pairs(60, Negatives::kPerPair);
  auto parts = spelled_model(2), stepped = spelled_model(1, false);
  const auto before = spelled_vectors(*parts, Rbsg::kCentre);
  SharedSlopes& shared = parts->share_slopes();
  parts->train_batch(some_pairs(batch, 0, 20), 0.01f);
  parts->train_batch(some_pairs(batch, 20, 60), 0.02f);
  EXPECT_EQ(spelled_vectors(*parts, Rbsg::kCentre), before);
  EXPECT_EQ(parts->steps(), 0);
  EXPECT_EQ(shared.pairs, 60);
  EXPECT_EQ(shared.rate, 0.02f);
  // Adam's mean after its first step is a tenth of the slope of the mean loss.
  stepped->train_batch(batch, 0.01f);
  const std::vector<double> slopes = shared_slopes(shared);
  size_t at = 0;
  double most = 0;
  for (const SharedSlopes::Table& table : stepped->share_slopes().tables)
    for (int64_t row = 0; row < table.mean->rows(); ++row)
      for (int64_t col = 0; col < table.mean->cols(); ++col, ++at) {
        ASSERT_NEAR(slopes.at(at) / 60, 10 * table.mean->row(row)[col], 1e-5) << "value " << at;
        most = std::max(most, std::abs(slopes[at]));
      }
  EXPECT_EQ(at, slopes.size());
  EXPECT_GT(most, 0.1);
}

// A run's words are told before its nodes find each other, and its first batch comes later.
TEST(RbsgShared, WhatIsSharedHasTheLettersOfTheWordsThatWereTold) {
  auto slopes = spelled_model(), values = spelled_model();
  EXPECT_GT(slopes->share_slopes().tables[0].values->rows(), CharacterTable::kFixed);
  EXPECT_GT(values->shared_tables()[0].values->rows(), CharacterTable::kFixed);
}

TEST(RbsgShared, WhereSlopesAreSharedThoseThatAreNotFiniteAreRefused) {
  auto model = spelled_model();
  SharedSlopes& shared = model->share_slopes();
  for (int64_t row = 0; row < shared.tables[0].values->rows(); ++row)
    shared.tables[0].values->row(row)[1] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(model->train_batch(batch_of_pairs(20, Negatives::kPool), 0.01f).refused);
  EXPECT_EQ(shared.pairs, 0);
  for (const double slope : shared_slopes(shared)) ASSERT_EQ(slope, 0);
}

// Nodes hear of the same characters, and not of the same words: one that came and went is known to some alone.
TEST(RbsgShared, WhereCharactersAreSharedTheirRowsGoByWhoWasToldThemFirstAndNotByWords) {
  auto one = spelled_model(), other = spelled_model();
  for (Rbsg* rbsg : {one.get(), other.get()}) rbsg->share_characters();
  const auto last = static_cast<Slot>(kSpelledWords.size());
  one->set_word(last, "яю");  // no row of it yet
  one->admit(U"λμ");
  one->admit(U"ж");
  one->set_word(last, "μж");
  other->admit(U"λμж");
  other->set_word(last, "μж");
  EXPECT_EQ(one->characters().size(), other->characters().size());
  RbsgBatch batch = batch_of_pairs(50, Negatives::kPool);
  batch.centres[3] = batch.contexts[5] = last;
  EXPECT_EQ(one->train_batch(batch, 1e-2f).loss, other->train_batch(batch, 1e-2f).loss);
  const std::vector<std::string_view> words = {"λ", "μж", "яю"};
  Matrix out[2];
  for (const auto& [rbsg, to] : {std::pair{one.get(), &out[0]}, std::pair{other.get(), &out[1]}}) {
    *to = std::move(Matrix::make(std::ssize(words), rbsg->options().dim)).value();
    ASSERT_TRUE(rbsg->embed(words, Rbsg::kCentre, 1, to->view()).ok());
  }
  for (int64_t i = 0; i < std::ssize(words); ++i)
    for (int64_t k = 0; k < out[0].cols(); ++k) EXPECT_EQ(out[0].row(i)[k], out[1].row(i)[k]) << words[i];
}

// What is exchanged of rows that will come is what they would have been drawn as.
TEST(RbsgShared, RowsOfSharedCharactersKeepWhatTheyWereGivenBeforeTheyCame) {
  auto drawn = spelled_model(), given = spelled_model();
  for (Rbsg* rbsg : {drawn.get(), given.get()}) rbsg->share_characters();
  Matrix &before = *given->shared_tables()[0].values, &alike = *drawn->shared_tables()[0].values;
  ASSERT_TRUE(given->shared_tables()[0].grows);
  const int64_t next = before.rows();
  drawn->admit(U"λ");
  EXPECT_EQ(drawn->characters().size(), next + 1);
  EXPECT_EQ(before.row(next)[2], alike.row(next)[2]) << "the first value, on all nodes";
  before.row(next)[2] += 1;
  given->admit(U"λ");
  EXPECT_EQ(given->characters().size(), next + 1);
  EXPECT_EQ(before.row(next)[2], alike.row(next)[2] + 1);
}

}  // namespace
}  // namespace streamvec
