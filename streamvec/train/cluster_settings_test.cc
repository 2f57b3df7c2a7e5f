#include "streamvec/train/cluster_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

using ::testing::HasSubstr;

TEST(ClusterSettings, ThatAreNoneAreRefused) {
  TrainOptions options;
  options.cluster.nodes = {"127.0.0.1:0"};
  EXPECT_TRUE(check_cluster(options).ok());
  options.cluster.shard = "row";
  EXPECT_EQ(check_cluster(options).code(), Code::kInvalidArgument);
  EXPECT_THAT(check_cluster(options).message(), HasSubstr("--shard is row"));
  options.cluster.shard = "no";
  options.cluster.sync = "sandblaster";
  EXPECT_TRUE(check_cluster(options).ok());
  for (const int32_t history : {0, -1, 101}) {
    options.cluster.lbfgs_history = history;
    EXPECT_EQ(check_cluster(options).code(), Code::kInvalidArgument) << history;
    EXPECT_THAT(check_cluster(options).message(), HasSubstr("--lbfgs-history is"));
  }
}

TEST(ClusterSettings, ToShareTablesOutNeedACluster) {
  TrainOptions options;
  EXPECT_TRUE(check_cluster(options).ok());
  options.cluster.shard = "rows";
  EXPECT_EQ(check_cluster(options).code(), Code::kInvalidArgument);
  EXPECT_THAT(check_cluster(options).message(), HasSubstr("give --nodes"));
}

TEST(ClusterSettings, NodesJoinOwnersAndRingsOfFiles) {
  const auto joins = [](bool stream, const std::string& sync, const std::string& model, const std::string& shard) {
    TrainOptions options;
    options.cluster.nodes = {"one", "another"};
    options.cluster.joins = true;
    options.cluster.sync = sync;
    options.cluster.shard = shard;
    options.stream.on = stream;
    options.model = model;
    options.vocab_max = 100;
    const Status checked = check_cluster(options);
    if (!checked.ok()) {
      EXPECT_THAT(checked.message(), HasSubstr("nobody in while it trains"));
    }
    return checked.ok();
  };
  EXPECT_TRUE(joins(false, "ssp", "sgns", "no") && joins(true, "ssp", "sgns", "no"));
  EXPECT_TRUE(joins(false, "ring", "cbow", "no") && joins(false, "hybrid", "sgns", "no"));
  EXPECT_TRUE(joins(false, "bsp", "hybrid", "no") && joins(false, "ring", "rbsg", "no"));
  EXPECT_FALSE(joins(true, "ring", "rbsg", "no"));
  EXPECT_FALSE(joins(false, "sandblaster", "sgns", "no") || joins(false, "bsp", "sgns", "rows"));
}

TEST(ClusterSettings, OnlyShortRowsWithoutACodecGivenFindIt) {
  const auto finds = [](const char* codec, int64_t dim) {
    ClusterSettings settings;
    settings.codec = codec;
    return scheme_of(settings, dim).value().finds_codec;
  };
  EXPECT_TRUE(finds("auto", 50) && finds("auto", 128));
  EXPECT_FALSE(finds("auto", 200));  // one bit from the first
  EXPECT_FALSE(finds("fourbit", 50) || finds("onebit", 50) || finds("fp32", 50));
}

TEST(ClusterSettings, ARunHasAboutAHundredPushesWhateverItsLength) {
  const ClusterSettings settings;
  EXPECT_EQ(push_interval(settings, 64'000'000).words_min, 640'000);
  EXPECT_EQ(push_interval(settings, 64'000'000).words_max, 1'920'000);
  EXPECT_EQ(push_interval(settings, 64'000'000'000).words_min, 1'000'000);  // about a second's, whatever is to come
  EXPECT_EQ(push_interval(settings, 5'000'000).words_min, 50'000);
  EXPECT_EQ(push_interval(settings, 5'000'000).words_max, 450'000);
}

TEST(ClusterSettings, ShortRunsAndStreamsPushEveryTenThousandWords) {
  const ClusterSettings settings;
  for (const int64_t words : {0, 1, 1'000'000}) {
    EXPECT_EQ(push_interval(settings, words).words_min, 10'000) << words;
    EXPECT_EQ(push_interval(settings, words).words_max, 450'000) << words;
  }
}

TEST(ClusterSettings, RulesThatDoNotKnowHowFarNodesWentPushEveryTenThousandWordsInRunsOfAnyLength) {
  ClusterSettings settings;
  for (const char* combine : {"adasum", "mean", "sum"}) {
    settings.combine = combine;
    EXPECT_EQ(push_interval(settings, 64'000'000).words_min, 10'000) << combine;
  }
}

TEST(ClusterSettings, WordsBetweenTwoPushesThatAreGivenHoldForRunsOfAnyLength) {
  ClusterSettings settings;
  settings.words_min = 20'000;
  for (const int64_t words : {int64_t{0}, int64_t{64'000'000}}) {
    EXPECT_EQ(push_interval(settings, words).words_min, 20'000) << words;
    EXPECT_EQ(push_interval(settings, words).words_max, 900'000) << words;
  }
}

}  // namespace
}  // namespace streamvec
