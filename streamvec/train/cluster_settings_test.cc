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

}  // namespace
}  // namespace streamvec
