#include "streamvec/train/slot_mapper.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

Tokens tokenize(const std::string& text) {
  Tokens tokens;
  Tokenizer().tokenize(text, tokens);
  return tokens;
}

TEST(FixedSlotMapper, LeavesUnknownWordsOutAndKeepsSentencesApart) {
  Vocabulary vocabulary;
  vocabulary.add("a", 5);
  vocabulary.add("b", 3);
  FixedSlotMapper mapper(vocabulary, 0, {.pace_max = 8, .passes = 10});
  const std::string text = "a x b\nx\nb a\n";
  Chunk chunk;
  const auto tables = mapper.map(tokenize(text), chunk);
  ASSERT_NE(tables, nullptr);
  EXPECT_NEAR(tables->pace.input(0), 4.472, 1e-3) << "of a word that will be met 50 times";
  EXPECT_EQ(chunk.slots, (std::vector<Slot>{0, 1, 1, 0}));
  EXPECT_EQ(chunk.sentence_ends, (std::vector<int32_t>{2, 2, 4}));
}

TEST(GrowingSlotMapper, GivesAWordARowWhenItHasBeenMetOftenEnough) {
  Parameters::Options shape;
  shape.rows_max = 10;
  shape.dim = 4;
  Parameters parameters = Parameters::make(shape).value();
  GrowingSlotMapper mapper(StreamVocabulary({.min_count = 2}), parameters, 0, {.pace_max = 5});
  Chunk chunk;
  const std::string first = "a b c", second = "b a d", third = "a a";
  EXPECT_EQ(mapper.map(tokenize(first), chunk), nullptr);  // nothing to draw from yet
  EXPECT_TRUE(chunk.slots.empty());
  const auto tables = mapper.map(tokenize(second), chunk);
  ASSERT_NE(tables, nullptr);
  EXPECT_EQ(chunk.slots, (std::vector<Slot>{0, 1}));
  EXPECT_EQ(tables->pace.input(0), 5);
  EXPECT_EQ(parameters.rows(), 2);
  EXPECT_EQ(mapper.slots(), 2);
  EXPECT_EQ(mapper.vocabulary().word(0), "b");
  ASSERT_NE(mapper.map(tokenize(third), chunk), nullptr);
  EXPECT_EQ(chunk.slots, (std::vector<Slot>{1, 1}));
  EXPECT_GT(*parameters.input.rows.row(1) * *parameters.input.rows.row(1), 0);
}

TEST(GrowingSlotMapper, GoesOnWithItsStateAsIfItHadNotStopped) {
  Parameters::Options shape;
  shape.rows_max = 10;
  shape.dim = 4;
  Parameters parameters = Parameters::make(shape).value();
  GrowingSlotMapper before(StreamVocabulary({.min_count = 2}), parameters, 0, {});
  Chunk chunk;
  const std::string first = "a b", second = "b c";
  before.map(tokenize(first), chunk);
  GrowingSlotMapper after(StreamVocabulary::restore({.min_count = 2}, before.state()).value(), parameters, 0, {});
  ASSERT_NE(after.map(tokenize(second), chunk), nullptr);
  EXPECT_EQ(chunk.slots, (std::vector<Slot>{0}));  // b, met before the stop
  EXPECT_EQ(after.vocabulary().word(0), "b");
}

}  // namespace
}  // namespace streamvec
