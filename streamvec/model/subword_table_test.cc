#include "streamvec/model/subword_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "streamvec/core/memory.h"
#include "streamvec/model/subword_vectors.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

SubwordTable make_table(const NgramOptions& ngrams = {3, 6, 1000}) {
  return std::move(SubwordTable::make({.ngrams = ngrams, .dim = 8, .words_max = 100})).value();
}

std::vector<uint32_t> copy_of(std::span<const SubwordTable::Row> values) {
  return {values.begin(), values.end()};
}

TEST(SubwordTable, AWordHasTheRowsOfItsBuckets) {
  SubwordTable table = make_table();
  table.set_word(3, "where");
  std::vector<uint32_t> wanted;
  append_ngram_buckets("where", {3, 6, 1000}, wanted);
  std::vector<uint32_t> found;
  for (const uint32_t row : table.rows_of(3)) found.push_back(table.buckets()[row]);
  EXPECT_EQ(found, wanted);
  EXPECT_TRUE(table.rows_of(4).empty());
}

TEST(SubwordTable, HasRowsForTheBucketsThatWereMetAlone) {
  SubwordTable table = make_table({3, 3, 2'000'000});
  table.set_word(0, "abab");  // <ab aba bab ab>
  EXPECT_EQ(table.table.rows.rows(), 4);
  table.set_word(1, "abab");
  EXPECT_EQ(table.table.rows.rows(), 4);
  EXPECT_EQ(copy_of(table.rows_of(0)), copy_of(table.rows_of(1)));
}

TEST(SubwordTable, TakesMemoryForTheBucketsThatWereMetAlone) {
  const int64_t before = resident_memory();
  SubwordTable table = make_table({3, 6, kBucketMax});
  table.set_word(0, "where");
  EXPECT_EQ(table.table.rows.rows(), 14);
  EXPECT_LT(resident_memory() - before, 64 << 20);
  Matrix rows = std::move(Matrix::make(1, 8)).value();
  const auto vectors = SubwordVectors::make({{3, 6, kBucketMax}, false, {kBucketMax - 1}}, std::move(rows), Matrix());
  ASSERT_TRUE(vectors.ok()) << vectors.status().message();
  EXPECT_NE((*vectors)->row_of(kBucketMax - 1), nullptr);
  EXPECT_EQ((*vectors)->row_of(0), nullptr);
  EXPECT_LT(resident_memory() - before, 64 << 20);
}

TEST(SubwordTable, MoreWordsOrBucketsThanThereIsMemoryForAreResourceExhausted) {
  const Status words = SubwordTable::make({.ngrams = {}, .dim = 8, .words_max = int64_t{1} << 40}).status();
  EXPECT_EQ(words.code(), Code::kResourceExhausted);
  EXPECT_NE(words.message().find("try a smaller --vocab-max"), std::string::npos) << words.message();
  const Status buckets = SubwordTable::make({.ngrams = {3, 6, kBucketMax}, .dim = 65'536}).status();
  EXPECT_EQ(buckets.code(), Code::kResourceExhausted);
  EXPECT_NE(buckets.message().find("--bucket"), std::string::npos) << buckets.message();
}

TEST(SubwordTable, ARowStartsFromItsBucketWhateverTheOrderOfWords) {
  SubwordTable one = make_table(), two = make_table();
  one.set_word(0, "where");
  one.set_word(1, "there");
  two.set_word(1, "there");
  two.set_word(0, "where");
  for (size_t i = 0; i < one.rows_of(0).size(); ++i) {
    const auto a = one.table.rows.view().row_span(one.rows_of(0)[i]);
    const auto b = two.table.rows.view().row_span(two.rows_of(0)[i]);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
    EXPECT_NE(a[0], 0);
    EXPECT_LE(std::abs(a[0]), 1.0f / 8);
  }
}

TEST(SubwordTable, GoesOnFromAdoptedRows) {
  SubwordTable before = make_table();
  before.set_word(0, "where");
  SubwordTable after = make_table();
  ASSERT_TRUE(after.adopt(before.buckets(), before.table.rows).ok());
  after.set_word(0, "where");
  EXPECT_EQ(copy_of(after.rows_of(0)), copy_of(before.rows_of(0)));
  EXPECT_EQ(values_of(after.table.rows), values_of(before.table.rows));
  after.set_word(1, "elsewhere");
  EXPECT_GT(after.table.rows.rows(), before.table.rows.rows());
}

TEST(SubwordTable, AWordThatTakesASlotOverHasItsOwnNgramsAlone) {
  SubwordTable table = make_table();
  table.set_word(0, "where");
  table.set_word(0, "cat");
  table.set_word(1, "where");
  std::vector<uint32_t> wanted;
  append_ngram_buckets("cat", {3, 6, 1000}, wanted);
  std::vector<uint32_t> found;
  for (const uint32_t row : table.rows_of(0)) found.push_back(table.buckets()[row]);
  EXPECT_EQ(found, wanted);
}

TEST(SubwordTable, ListsOfWordsThatComeAndGoTakeNoMoreMemory) {
  SubwordTable table = make_table();
  const auto pass = [&](int from) {
    for (int i = from; i < from + 20'000; ++i)
      table.set_word(i % 100, std::string(static_cast<size_t>(1 + i % 37), 'x') + std::to_string(i));
  };
  pass(0);
  const int64_t bytes = table.lists_bytes();
  for (int times = 1; times < 5; ++times) pass(20'000 * times);
  EXPECT_EQ(table.lists_bytes(), bytes);
}

TEST(SubwordTable, AListThatIsReadWhileItsSlotChangesHandsNamesRowsOnly) {
  SubwordTable table = make_table();
  table.set_word(0, "beginning");
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < 30'000; ++i) table.set_word(0, std::string(static_cast<size_t>(1 + i % 50), 'x') + "y");
    over = true;
  });
  while (!over)
    for (const uint32_t row : table.rows_of(0)) ASSERT_LT(row, 1000u);
  writer.join();
}

TEST(SubwordTable, BucketsGivenInAnOrderKeepItsRows) {
  SubwordTable one = make_table(), two = make_table();
  one.set_word(0, "where");
  one.set_word(1, "cat");
  two.add_buckets(one.buckets());
  two.set_word(1, "cat");
  EXPECT_EQ(copy_of(two.rows_of(1)), copy_of(one.rows_of(1)));
  EXPECT_EQ(values_of(two.table.rows), values_of(one.table.rows));
}

TEST(SubwordTable, RefusesRowsThatDoNotBelongToTheirBuckets) {
  const Matrix two = std::move(Matrix::make(2, 8)).value(), narrow = std::move(Matrix::make(2, 7)).value();
  const std::vector<uint32_t> good = {1, 2}, twice = {1, 1}, beyond = {1, 1000}, three = {1, 2, 3};
  EXPECT_TRUE(make_table().adopt(good, two).ok());
  EXPECT_EQ(make_table().adopt(good, narrow).code(), Code::kDataLoss);
  EXPECT_EQ(make_table().adopt(twice, two).code(), Code::kDataLoss);
  EXPECT_EQ(make_table().adopt(beyond, two).code(), Code::kDataLoss);
  EXPECT_EQ(make_table().adopt(three, two).code(), Code::kDataLoss);
}

TEST(SubwordTable, RefusesLengthsAndBucketsThatCannotBe) {
  for (const NgramOptions& bad : {NgramOptions{0, 6, 10}, NgramOptions{4, 3, 10}, NgramOptions{3, 65, 10},
                                  NgramOptions{3, 6, 0}, NgramOptions{3, 6, int64_t{1} << 31}})
    EXPECT_EQ(SubwordTable::make({.ngrams = bad}).status().code(), Code::kInvalidArgument);
}

TEST(SubwordIndex, ComesBackAsItWasSaved) {
  const SubwordIndex index{{2, 5, 900, true}, true, {5, 0, 899}};
  const auto read = SubwordIndex::decode(index.encode(), "file");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->ngrams, index.ngrams);
  EXPECT_EQ(read->fold_case, true);
  EXPECT_EQ(read->buckets, index.buckets);
}

TEST(SubwordIndex, ACutAnywhereOrAHugeCountIsAnError) {
  const std::string bytes = SubwordIndex{{2, 5, 900}, true, {5, 0, 899}}.encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(SubwordIndex::decode(bytes.substr(0, size), "file").status().code(), Code::kDataLoss) << size;
  EXPECT_EQ(SubwordIndex::decode(bytes + "x", "file").status().code(), Code::kDataLoss);
  for (size_t i = 0; i < 40; ++i) {
    std::string changed = bytes;
    changed[i] = '\x7f';
    const auto read = SubwordIndex::decode(changed, "file");
    if (read.ok()) continue;  // another setting that can be
    EXPECT_THAT(read.status().message(), ::testing::HasSubstr("file: byte "));
  }
}

TEST(SubwordVectors, BucketsWithoutARowCountAsZeros) {
  std::vector<uint32_t> buckets;
  append_ngram_buckets("ab", {3, 6, 1000}, buckets);  // three
  Matrix rows = std::move(Matrix::make(1, 4)).value();
  std::fill_n(rows.row(0), 4, 3.0f);
  const auto vectors = SubwordVectors::make({{3, 6, 1000}, false, {buckets[1]}}, std::move(rows), Matrix());
  ASSERT_TRUE(vectors.ok());
  std::vector<float> out(4, 7);
  ASSERT_TRUE((*vectors)->generate("ab", out).ok());
  EXPECT_THAT(out, ::testing::Each(1.0f));
}

TEST(SubwordVectors, EveryStringButTheEmptyOneHasAVectorOfItsOwn) {
  const auto vectors =
      SubwordVectors::make({{6, 6, 1000}, false, {7}}, std::move(Matrix::make(1, 4)).value(), Matrix());
  ASSERT_TRUE(vectors.ok());
  std::vector<std::vector<float>> seen;
  for (const char* word : {"x", "y", "unheard", "여왕", "\xFF\xC3", "\xE2\x82", " ", "</s>"}) {
    std::vector<float> out(4, 7), again(4);
    ASSERT_TRUE((*vectors)->generate(word, out).ok()) << word;
    ASSERT_TRUE((*vectors)->generate(word, again).ok()) << word;
    EXPECT_EQ(out, again);
    EXPECT_THAT(out, ::testing::Contains(::testing::Ne(0.0f))) << word;
    EXPECT_THAT(seen, ::testing::Not(::testing::Contains(out))) << word;
    seen.push_back(out);
  }
  std::vector<float> out(4);
  EXPECT_EQ((*vectors)->generate("", out).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
