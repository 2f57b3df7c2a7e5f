#include "streamvec/eval/analogy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/test_file.h"

namespace streamvec {
namespace {

using testing::HasSubstr;

// A plane of royalty and sex, and two words elsewhere.
Snapshot royals() {
  struct Row {
    const char* word;
    int64_t count;
    float values[3];
  };
  const Row rows[] = {{"man", 50, {1, 0, 0}},   {"woman", 40, {1, 1, 0}},     {"king", 30, {1, 0, 1}},
                      {"queen", 20, {1, 1, 1}}, {"apple", 10, {0, -1, 0.2f}}, {"Pear", 5, {0, 0.2f, -1}}};
  Snapshot snapshot;
  snapshot.input = Matrix::make(std::size(rows), 3).value();
  for (const Row& row : rows) {
    const Slot slot = snapshot.vocabulary.add(row.word, row.count);
    std::copy_n(row.values, 3, snapshot.input.row(slot));
  }
  return snapshot;
}

TEST(ReadAnalogySet, ReadsSectionsAndQuestions) {
  const TestFile file("a b c d\n: royal family\nman woman king queen\n# note\n:empty\n: last\r\nx\ty\tz\tw\r\n");
  const AnalogySet set = read_analogy_set(file.path()).value();
  ASSERT_EQ(set.sections.size(), 3u);
  EXPECT_EQ(set.sections[0].name, "");
  EXPECT_EQ(set.sections[1].name, "royal family");
  EXPECT_EQ(set.sections[2].name, "last");
  EXPECT_THAT(set.sections[2].questions, testing::ElementsAre(std::array<std::string, 4>{"x", "y", "z", "w"}));
}

TEST(ReadAnalogySet, ABadLineIsNamedWithPathAndNumber) {
  const TestFile file(": s\na b c d\na b c\n");
  EXPECT_THAT(read_analogy_set(file.path()).status().message(), HasSubstr(file.path() + ":3: 3 words"));
}

TEST(ReadAnalogySet, RefusesMissingEmptyAndQuestionlessFiles) {
  EXPECT_EQ(read_analogy_set("/no/such/file").status().code(), Code::kNotFound);
  EXPECT_THAT(read_analogy_set(TestFile("").path()).status().message(), HasSubstr("is empty"));
  EXPECT_THAT(read_analogy_set(TestFile(": a\n: b\n").path()).status().message(), HasSubstr("holds no questions"));
}

TEST(MeasureAnalogy, AddsAndMultipliesCosinesPerSection) {
  const AnalogySet set{"royals",
                       {{"right", {{"man", "woman", "king", "queen"}, {"King", "queen", "MAN", "woman"}}},
                        {"wrong", {{"man", "woman", "king", "apple"}}}}};
  const AnalogyResult result = measure_analogy(royals(), set).value();
  EXPECT_EQ(result.total.name, "royals");
  EXPECT_EQ(result.total.covered, 3);
  EXPECT_DOUBLE_EQ(result.total.cos_add_accuracy(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.total.cos_mul_accuracy(), 2.0 / 3);
  ASSERT_EQ(result.sections.size(), 2u);
  EXPECT_DOUBLE_EQ(result.sections[0].cos_add_accuracy(), 1);
  EXPECT_DOUBLE_EQ(result.sections[1].cos_mul_accuracy(), 0);
}

TEST(MeasureAnalogy, AccuracyIsOfTheCoveredQuestions) {
  const AnalogySet set{"s", {{"", {{"man", "woman", "king", "queen"}, {"man", "woman", "king", "princess"}}}}};
  const AnalogyResult result = measure_analogy(royals(), set).value();
  EXPECT_EQ(result.total.questions, 2);
  EXPECT_EQ(result.total.covered, 1);
  EXPECT_DOUBLE_EQ(result.total.cos_add_accuracy(), 1);
}

TEST(MeasureAnalogy, NothingCoveredHasNoAccuracy) {
  const AnalogyResult result = measure_analogy(royals(), {"s", {{"", {{"i", "j", "k", "l"}}}}}).value();
  EXPECT_TRUE(std::isnan(result.total.cos_add_accuracy()));
  EXPECT_TRUE(std::isnan(result.sections[0].cos_mul_accuracy()));
}

TEST(MeasureAnalogy, WordsOutsideTheMostFrequentAreNeitherAskedNorAnswered) {
  // Slots in another order than the counts: the two most frequent are man and woman.
  const Snapshot ordered = royals();
  Snapshot snapshot;
  snapshot.input = Matrix::make(6, 3).value();
  for (Slot slot = 0; slot < 6; ++slot) {
    snapshot.vocabulary.add(ordered.vocabulary.word(5 - slot), ordered.vocabulary.count(5 - slot));
    std::copy_n(ordered.input.row(5 - slot), 3, snapshot.input.row(slot));
  }
  const AnalogySet set{"s", {{"", {{"man", "woman", "king", "queen"}}}}};
  EXPECT_EQ(measure_analogy(snapshot, set, {4})->total.cos_add_correct, 1);
  EXPECT_EQ(measure_analogy(snapshot, set, {3})->total.covered, 0);
  EXPECT_EQ(measure_analogy(snapshot, set, {0})->total.covered, 1);
}

}  // namespace
}  // namespace streamvec
