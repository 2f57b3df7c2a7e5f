#include "streamvec/serve/served_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "streamvec/model/common_part_testing.h"
#include "streamvec/serve/queries.h"
#include "streamvec/serve/test_models.h"

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words_of(const ServedModel& model, const std::vector<Neighbour>& found) {
  std::vector<std::string> words;
  for (const Neighbour& one : found) words.emplace_back(model.vocabulary().word(one.slot));
  return words;
}

TEST(ServedModel, AnswersManyAtOnceAsItAnswersEachAlone) {
  const auto model = served(grouped_snapshot(8, 40, 20));
  std::vector<SearchRequest> requests;
  for (int i = 0; i < 30; ++i) {
    const auto row = model->search_rows().row_span(i);
    requests.push_back({{row.begin(), row.end()}, {i}, 1 + i % 7});
  }
  const auto together = model->search(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = model->search({&requests[i], 1});
    EXPECT_EQ(words_of(*model, together[i]), words_of(*model, alone[0])) << i;
    EXPECT_EQ(together[i].size(), static_cast<size_t>(requests[i].k));
  }
}

TEST(ServedModel, GivesFewerWhereThereAreNoMore) {
  const auto model = served(grouped_snapshot(1, 3, 4));
  const auto row = model->search_rows().row_span(0);
  const SearchRequest request{{row.begin(), row.end()}, {0}, 10};
  EXPECT_EQ(model->search({&request, 1})[0].size(), 2u);
  const auto empty = served(grouped_snapshot(0, 0, 4));
  const SearchRequest nothing{std::vector<float>(4), {}, 10};
  EXPECT_TRUE(empty->search({&nothing, 1})[0].empty());
}

TEST(ServedModel, FindsWordsByPrefixMostFrequentFirst) {
  auto snapshot = std::make_shared<Snapshot>();
  for (const auto& [word, count] : std::vector<std::pair<std::string, int64_t>>{
           {"king", 5}, {"kingdom", 9}, {"kin", 9}, {"queen", 7}, {"ki", 1}, {"kj", 100}})
    snapshot->vocabulary.add(word, count);
  snapshot->input = Matrix::make(6, 4).value();
  const auto model = served(snapshot);
  const auto words = [&](std::string_view prefix, int64_t count) {
    std::vector<std::string> found;
    for (const Slot slot : model->words_with(prefix, count)) found.emplace_back(model->vocabulary().word(slot));
    return found;
  };
  EXPECT_THAT(words("ki", 3), ElementsAre("kin", "kingdom", "king"));
  EXPECT_THAT(words("KING", 9), ElementsAre("kingdom", "king"));
  EXPECT_THAT(words("", 2), ElementsAre("kj", "kingdom")) << "all words: ties by slot";
  EXPECT_THAT(words("kj", 9), ElementsAre("kj"));
  EXPECT_TRUE(words("z", 9).empty());
}

TEST(Queries, NearestToAWordLeavesItOut) {
  const auto model = served(grouped_snapshot(4, 10, 16));
  const auto planned = plan_nearest(*model, {{{"g2w3", 1}}, {}, 9});
  ASSERT_TRUE(planned.ok());
  EXPECT_TRUE(planned->words[0].seen);
  const auto found = words_of(*model, model->search({&planned->request, 1})[0]);
  EXPECT_THAT(found, testing::Each(testing::StartsWith("g2")));
  EXPECT_THAT(found, testing::Not(testing::Contains("g2w3")));
}

TEST(Queries, WeightedWordsAreASumOfUnitVectors) {
  const auto model = served(grouped_snapshot(4, 10, 16));
  const auto planned = plan_nearest(*model, {{{"g0w0", 2}, {"g1w0", -0.5}}, {}, 5});
  ASSERT_TRUE(planned.ok());
  std::vector<double> sum(16);
  double squares = 0;
  for (size_t j = 0; j < 16; ++j) {
    sum[j] = 2.0 * model->search_rows().row(0)[j] - 0.5 * model->search_rows().row(1)[j];
    squares += sum[j] * sum[j];
  }
  for (size_t j = 0; j < 16; ++j) EXPECT_NEAR(planned->request.unit[j], sum[j] / std::sqrt(squares), 1e-5);
}

TEST(Queries, NeighboursAreSoughtWithoutTheCommonPartExactlyAndByTheIndex) {
  const auto plain = grouped_snapshot(4, 10, 16);
  auto snapshot = grouped_snapshot(4, 10, 16);
  std::vector<float> faint(plain->input.row(3), plain->input.row(3) + 16);  // of group 3
  for (float& value : faint) value *= 0.01f;
  add_common_part(*snapshot, std::vector<float>(16, 5), {{"unseen", faint}});
  const auto exact = served(snapshot);
  const std::atomic<bool> stop{false};
  const auto indexed = exact->with_index(HnswIndex::build(exact->search_rows(), {}, stop).value());
  const std::vector<float> whole(snapshot->input.view().row_span(7).begin(), snapshot->input.view().row_span(7).end());
  for (const NearestQuery& query :
       {NearestQuery{{{"unseen", 1}}, {}, 10}, NearestQuery{{{"g3w0", 2}}, {}, 9}, NearestQuery{{}, whole, 10}}) {
    const auto planned = plan_nearest(*exact, query);
    ASSERT_TRUE(planned.ok());
    for (const auto& model : {exact, indexed})
      EXPECT_THAT(words_of(*model, model->search({&planned->request, 1})[0]), testing::Each(testing::StartsWith("g3")));
  }
  EXPECT_GT(find_similarity(*exact, "unseen", "g0w0")->cosine, 0.9) << "of whole vectors";
}

TEST(Queries, WordsThatCancelEachOtherOutHaveNoNeighbours) {
  const auto model = served(grouped_snapshot(2, 5, 8));
  for (const std::vector<WeightedWord>& words : {std::vector<WeightedWord>{{"g0w0", 1}, {"g0w0", -1}},
                                                 {{"g0w0", 0}},
                                                 {{"g0w0", 0}, {"g1w0", 0}},
                                                 {{"g0w0", 0.1}, {"g0w0", 0.2}, {"g0w0", -0.3}}}) {
    const Status status = plan_nearest(*model, {words, {}, 5}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("has no direction, so nothing is near to it"));
  }
  EXPECT_TRUE(plan_nearest(*model, {{{"g0w0", 1e-5}}, {}, 5}).ok());
  EXPECT_TRUE(plan_nearest(*model, {{{"g0w0", 1}, {"g0w0", -0.99}}, {}, 5}).ok());
}

TEST(Queries, RefuseWhatCannotBeAnswered) {
  const auto model = served(grouped_snapshot(2, 5, 8));
  EXPECT_EQ(plan_nearest(*model, {{{"nowhere", 1}}, {}, 5}).status().code(), Code::kNotFound);
  EXPECT_EQ(plan_nearest(*model, {{}, {}, 5}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(plan_nearest(*model, {{{"g0w0", 1}}, {}, 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(plan_nearest(*model, {{{"g0w0", NAN}}, {}, 5}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(plan_nearest(*model, {{}, std::vector<float>(7, 1), 5}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(plan_nearest(*model, {{}, std::vector<float>(8, INFINITY), 5}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(plan_nearest(*model, {std::vector<WeightedWord>(1'001, {"g0w0", 1}), {}, 5}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(plan_analogy(*model, "g0w0", "g0w1", "nowhere", 5).status().code(), Code::kNotFound);
  EXPECT_EQ(find_similarity(*model, "g0w0", "nowhere").status().code(), Code::kNotFound);
  EXPECT_FALSE(find_vectors(*model, {"nowhere"}).value()[0].found);
}

}  // namespace
}  // namespace streamvec
