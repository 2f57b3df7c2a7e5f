#include "streamvec/train/source_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSettings dividing(int32_t nodes, int32_t ingest = 0, int32_t servers = 0) {
  ClusterSettings cluster;
  cluster.nodes.resize(static_cast<size_t>(nodes));
  cluster.ingest = ingest;
  cluster.servers = servers;
  cluster.divide = true;
  return cluster;
}

std::vector<std::string> own_of(ClusterSettings cluster, int32_t rank, const std::vector<std::string>& sources) {
  cluster.rank = rank;
  return own_sources(cluster, sources).value();
}

TEST(OwnSources, EachHasOneReader) {
  const std::vector<std::string> sources = {"a", "b", "c", "d", "e"};
  EXPECT_THAT(own_of(dividing(2), 0, sources), ElementsAre("a", "c", "e"));
  EXPECT_THAT(own_of(dividing(2), 1, sources), ElementsAre("b", "d"));
}

TEST(OwnSources, AreOfThoseThatReadForTheOthers) {
  const ClusterSettings cluster = dividing(5, 2, 1);  // 0 and 1 train, 2 and 3 read, 4 owns rows
  EXPECT_THAT(own_of(cluster, 2, {"a", "b", "c"}), ElementsAre("a", "c"));
  EXPECT_THAT(own_of(cluster, 3, {"a", "b", "c"}), ElementsAre("b"));
  for (const int32_t rank : {0, 1, 4}) EXPECT_THAT(own_of(cluster, rank, {"a", "b", "c"}), ElementsAre("a", "b", "c"));
}

TEST(OwnSources, ThoseThatDivideThemselvesAreEveryReaders) {
  const std::vector<std::string> sources = {"nats://h/s?shared=1", "a"};
  EXPECT_THAT(own_of(dividing(2), 0, sources), ElementsAre("nats://h/s?shared=1", "a"));
  EXPECT_THAT(own_of(dividing(2), 1, sources), ElementsAre("nats://h/s?shared=1"));
}

TEST(OwnSources, TooFewAreRefusedByAllNodesWithWhatToTry) {
  for (const int32_t rank : {0, 1, 2}) {
    ClusterSettings cluster = dividing(3);
    cluster.rank = rank;
    const Status refused = own_sources(cluster, {"a", "b"}).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("--ingest 2"));
  }
}

TEST(OwnSources, ANameThatOnlyLooksSharedHasOneReader) {
  const std::vector<std::string> sources = {"x-shared=1.txt", "https://host/feed?shared=1"};
  EXPECT_THAT(own_of(dividing(2), 0, sources), ElementsAre("x-shared=1.txt"));
  EXPECT_THAT(own_of(dividing(2), 1, sources), ElementsAre("https://host/feed?shared=1"));
}

TEST(OwnSources, WhereNobodyReadsThatIsSaid) {
  EXPECT_EQ(own_sources(dividing(2, 0, 2), {"a"}).status().code(), Code::kInvalidArgument);
}

TEST(OwnSources, AnotherListOrOrderIsAnotherDivision) {
  const ClusterSettings cluster = dividing(2);
  EXPECT_EQ(division_text(cluster, {"a", "b"}), division_text(cluster, {"a", "b"}));
  EXPECT_NE(division_text(cluster, {"a", "b"}), division_text(cluster, {"b", "a"}));
  EXPECT_NE(division_text(cluster, {"a", "b"}), division_text(cluster, {"a", "c"}));
  EXPECT_NE(division_text(cluster, {"a"}), division_text(ClusterSettings(), {"a"}));
}

TEST(OwnSources, AreAllWhereNothingIsDivided) {
  ClusterSettings cluster = dividing(3);
  cluster.divide = false;
  EXPECT_THAT(own_of(cluster, 1, {"a"}), ElementsAre("a"));
  EXPECT_THAT(own_sources(ClusterSettings(), {"a"}).value(), ElementsAre("a"));
}

}  // namespace
}  // namespace streamvec
