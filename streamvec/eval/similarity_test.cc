#include "streamvec/eval/similarity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/test_file.h"

namespace streamvec {
namespace {

using testing::HasSubstr;

// Words a, b, c, d at 0, 30, 60 and 90 degrees.
Snapshot fan_of_four() {
  Snapshot snapshot;
  snapshot.input = Matrix::make(4, 2).value();
  for (int i = 0; i < 4; ++i) {
    snapshot.vocabulary.add(std::string(1, static_cast<char>('a' + i)), 10 - i);
    snapshot.input.row(i)[0] = static_cast<float>(std::cos(i * M_PI / 6));
    snapshot.input.row(i)[1] = static_cast<float>(std::sin(i * M_PI / 6));
  }
  return snapshot;
}

Status read_status(std::string_view text) {
  return read_similarity_set(TestFile(text).path()).status();
}

TEST(Spearman, IsOneForTheSameOrderAndMinusOneForTheReverse) {
  EXPECT_DOUBLE_EQ(spearman(std::vector<double>{1, 2, 3, 4}, std::vector<double>{0.1, 5, 6, 100}), 1);
  EXPECT_DOUBLE_EQ(spearman(std::vector<double>{1, 2, 3, 4}, std::vector<double>{4, 3, 2, 1}), -1);
}

TEST(Spearman, MatchesAPublishedExample) {
  // IQ against hours of television a week: rho = -29/165.
  const std::vector<double> iq = {106, 86, 100, 101, 99, 103, 97, 113, 112, 110};
  const std::vector<double> hours = {7, 0, 27, 50, 28, 29, 20, 12, 6, 17};
  EXPECT_NEAR(spearman(iq, hours), -29.0 / 165, 1e-12);
}

TEST(Spearman, EqualValuesShareTheAverageOfTheirRanks) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}), 4.5 / std::sqrt(22.5), 1e-12);
}

TEST(Spearman, IsNotDefinedForOnePairOrEqualScores) {
  EXPECT_TRUE(std::isnan(spearman(std::vector<double>{1}, std::vector<double>{1})));
  EXPECT_TRUE(std::isnan(spearman(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3})));
}

TEST(ReadSimilaritySet, ReadsTabsCommasAndSpacesAlike) {
  for (const char* text :
       {"a\tb\t1.5\r\nc\td\t2\r\n", "a,b,1.5\nc, d ,2\n", "a b 1.5\n\nc  d 2", "\xEF\xBB\xBF# note\na b 1.5\nc d +2"}) {
    const TestFile file(text, "WORDS-7.txt");
    const SimilaritySet set = read_similarity_set(file.path()).value();
    EXPECT_THAT(set.name, testing::EndsWith("WORDS-7"));
    ASSERT_EQ(set.pairs.size(), 2u) << text;
    EXPECT_EQ(set.pairs[0].b, "b");
    EXPECT_EQ(set.pairs[0].score, 1.5);
    EXPECT_EQ(set.pairs[1].b, "d");
    EXPECT_EQ(set.pairs[1].score, 2);
  }
}

TEST(ReadSimilaritySet, KeepsSpacesInsideTabbedFields) {
  const TestFile file("New York\tcity\t9\n");
  EXPECT_EQ(read_similarity_set(file.path())->pairs[0].a, "New York");
}

TEST(ReadSimilaritySet, AFirstLineWithoutANumberIsAHeader) {
  const TestFile file("Word 1,Word 2,Human (mean)\nlove,sex,6.77\n");
  const SimilaritySet set = read_similarity_set(file.path()).value();
  ASSERT_EQ(set.pairs.size(), 1u);
  EXPECT_EQ(set.pairs[0].a, "love");
}

TEST(ReadSimilaritySet, ABadLineIsNamedWithPathAndNumber) {
  const TestFile columns("a b 1\n\n# c\nc d\n");
  EXPECT_THAT(read_similarity_set(columns.path()).status().message(), HasSubstr(columns.path() + ":4: 2 columns"));
  const TestFile score("a b 1\nc d high\n");
  EXPECT_THAT(read_similarity_set(score.path()).status().message(), HasSubstr(score.path() + ":2: the score \"high\""));
}

TEST(ReadSimilaritySet, RefusesWhatIsNoNumber) {
  for (const char* bad : {"nan", "inf", "1e999", "1.5x", "--1", "1 000"})
    EXPECT_EQ(read_status(std::string("a\tb\t1\na\tb\t") + bad + "\n").code(), Code::kInvalidArgument) << bad;
}

TEST(ReadSimilaritySet, RefusesMissingEmptyAndPairlessFiles) {
  EXPECT_EQ(read_similarity_set("/no/such/file").status().code(), Code::kNotFound);
  EXPECT_EQ(read_similarity_set(testing::TempDir()).status().code(), Code::kInvalidArgument);
  EXPECT_THAT(read_status("").message(), HasSubstr("is empty"));
  EXPECT_THAT(read_status("# only\n\n").message(), HasSubstr("is empty"));
  EXPECT_THAT(read_status("one\ttwo\tscore\n").message(), HasSubstr("holds no word pairs"));
}

TEST(MeasureSimilarity, RanksCosinesAgainstScores) {
  const SimilarityResult result =
      measure_similarity(fan_of_four(), {"fan_of_four", {{"a", "b", 9}, {"a", "c", 5}, {"a", "d", 1}, {"b", "d", 5}}});
  EXPECT_EQ(result.set, "fan_of_four");
  EXPECT_NEAR(result.spearman, 1, 1e-12);
}

TEST(MeasureSimilarity, PairsWithAnUnknownWordAreCountedButLeftOut) {
  const SimilarityResult result =
      measure_similarity(fan_of_four(), {"fan_of_four", {{"a", "b", 9}, {"a", "zebra", 100}, {"a", "d", 1}}});
  EXPECT_EQ(result.pairs, 3);
  EXPECT_EQ(result.covered, 2);
  EXPECT_NEAR(result.spearman, 1, 1e-12);
}

TEST(MeasureSimilarity, WordsAreFoundAsWrittenElseCaseFolded) {
  Snapshot snapshot = fan_of_four();
  EXPECT_EQ(measure_similarity(snapshot, {"s", {{"A", "B", 1}, {"C", "d", 2}}}).covered, 2);
  snapshot.vocabulary = {};
  for (const char* word : {"A", "a",
                           "stra\xC3\x9F"
                           "e",
                           "strasse"})
    snapshot.vocabulary.add(word, 1);
  std::copy_n(snapshot.input.row(0), 2, snapshot.input.row(1));
  // "A" is slot 0 although "a" exists; the folded form of the capital spelling is "strasse".
  EXPECT_EQ(measure_similarity(snapshot, {"s",
                                          {{"A", "STRASSE", 1},
                                           {"a",
                                            "Stra\xC3\x9F"
                                            "e",
                                            2}}})
                .covered,
            2);
}

TEST(MeasureSimilarity, AVectorWithoutDirectionHasCosineZero) {
  Snapshot snapshot = fan_of_four();
  snapshot.input.row(0)[0] = snapshot.input.row(0)[1] = 0;
  snapshot.input.row(1)[0] = std::nanf("");
  const SimilarityResult result = measure_similarity(snapshot, {"s", {{"a", "b", 1}, {"c", "d", 2}, {"b", "c", 1}}});
  EXPECT_EQ(result.covered, 3);
  EXPECT_NEAR(result.spearman, 1, 1e-12);
}

}  // namespace
}  // namespace streamvec
