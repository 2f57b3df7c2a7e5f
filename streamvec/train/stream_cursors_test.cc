#include "streamvec/train/stream_cursors.h"

#include <gtest/gtest.h>

#include <utility>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using nlohmann::json;

// As an intake of one source tells it.
json state_of(const std::string& source, const std::string& cursor) {
  return {{"sources", {{{"name", source}, {"cursor", cursor}, {"documents", 3}}}},
          {"clock", 7.5},
          {"totals", {{"documents", 3}, {"tokens", 30}}}};
}

class StreamCursors : public ::testing::Test {
 protected:
  ClusterSettings node(int32_t rank, const std::vector<std::string>& addresses = {"a:1", "b:1"}, bool found = true) {
    ClusterSettings cluster;
    cluster.nodes = addresses;
    cluster.rank = rank;
    cluster.registry = found ? &notebook_.page(1) : nullptr;
    return cluster;
  }
  static std::string told_by(const ClusterSettings& cluster, const json& state) {
    return json_text(NodeCursors().named(cluster, state));
  }
  std::string cursor_in(const json& state) { return state.at("sources").at(0).at("cursor"); }

  testing::Notebook notebook_;
};

TEST_F(StreamCursors, GoByRankWhereRanksAreGiven) {
  NodeCursors cursors;
  cursors.tell(told_by(node(1, {"a:1", "b:1"}, false), state_of("tail:b", "at 7")));
  json saved = state_of("tail:a", "at 3");
  cursors.add_to(node(0, {"a:1", "b:1"}, false), saved);
  EXPECT_EQ(saved.at("nodes").at("1"), state_of("tail:b", "at 7"));
  EXPECT_EQ(cursor_in(cursors_of(node(1, {"c:1", "d:1"}, false), saved)), "at 7");
  EXPECT_EQ(cursor_in(cursors_of(node(0, {"c:1", "d:1"}, false), saved)), "at 3");
}

TEST_F(StreamCursors, HaveTheRecordsWhoseWithdrawalIsOnItsWay) {
  constexpr uint64_t kRecord = (uint64_t{1} << 63) + 5;
  for (const bool found : {false, true}) {
    NodeCursors cursors;
    cursors.tell(
        json_text(NodeCursors().named(node(1, {"a:1", "b:1"}, found), state_of("tail:b", "at 7"), {3, kRecord})));
    json saved = state_of("tail:a", "at 3");
    cursors.add_to(node(0, {"a:1", "b:1"}, found), saved);
    EXPECT_EQ(withdrawn_records(parse_json(json_text(saved))), (std::vector<uint64_t>{3, kRecord}));
    EXPECT_TRUE(withdrawn_records(state_of("tail:a", "at 3")).empty());
    NodeCursors next;  // of the run that goes on, which has taken them out of its replay
    next.begin(node(0, {"a:1"}, found), saved);
    json later = state_of("tail:a", "at 4");
    next.add_to(node(0, {"a:1"}, found), later);
    EXPECT_TRUE(withdrawn_records(parse_json(json_text(later))).empty());
  }
  EXPECT_EQ(withdrawn_records({{"nodes", {{"1", {{"withdrawn", {-1, "two", 4u}}}}}}}), std::vector<uint64_t>{4});
}

TEST_F(StreamCursors, OfARankThatIsGoneAreKeptUntilItComesAgain) {
  const ClusterSettings first = node(0, {"a:1", "b:1"}, false);
  json saved = state_of("tail:a", "at 3");
  saved["nodes"]["1"] = state_of("tail:b", "at 7");
  for (const char* at : {"at 5", "at 9"}) {  // in two runs the second node says nothing
    NodeCursors cursors;
    cursors.begin(first, saved);
    saved = state_of("tail:a", at);
    cursors.add_to(first, saved);
  }
  EXPECT_EQ(cursor_in(cursors_of(node(1, {"a:1", "b:1"}, false), saved)), "at 7");
}

TEST_F(StreamCursors, ASourceThatAnotherRankHadIsFoundByItsNameAndIsThatOnesNoMore) {
  json saved = state_of("tail:a", "at 3");
  saved["nodes"]["1"] = state_of("tail:b", "at 7");
  saved["nodes"]["2"] = state_of("tail:c", "at 8");
  const ClusterSettings first = node(0, {"a:1", "b:1"}, false), second = node(1, {"a:1", "b:1"}, false);
  const json found = cursors_of(second, saved);
  ASSERT_EQ(found.at("sources").size(), 2u);
  EXPECT_EQ(cursor_in(found), "at 7") << "its own first";
  EXPECT_EQ(found.at("sources").at(1).at("cursor"), "at 8") << "of the one that is gone";
  EXPECT_EQ(cursors_of(node(0, {}, false), saved).at("sources").size(), 3u) << "one process has them all";
  const json new_one = cursors_of(node(3, {"a:1", "b:1", "c:1", "d:1"}, false), saved);
  EXPECT_TRUE(new_one.at("sources").empty()) << "those that are there may have a source of that name, too";
  EXPECT_EQ(new_one.at("totals").at("tokens"), 0);
  NodeCursors writing, reading;
  writing.begin(first, saved);
  reading.begin(second, saved);
  writing.tell(json_text(reading.named(second, state_of("tail:c", "at 9"))));
  json now = state_of("tail:a", "at 5");
  writing.add_to(first, now);
  EXPECT_EQ(now.at("nodes").size(), 1u) << now;
  EXPECT_EQ(cursor_in(now.at("nodes").at("1")), "at 9");
}

TEST_F(StreamCursors, WhatTheFirstOnlyKeepsIsForWhoeverReadsItNow) {
  json saved = state_of("tail:a", "at 3");
  saved["sources"].push_back({{"name", "tail:b"}, {"cursor", "at 7"}, {"documents", 3}, {"other", true}});
  const ClusterSettings first = node(0, {"a:1", "b:1"}, false), second = node(1, {"a:1", "b:1"}, false);
  const json found = cursors_of(second, saved);
  ASSERT_EQ(found.at("sources").size(), 1u);
  EXPECT_EQ(cursor_in(found), "at 7");
  EXPECT_EQ(cursors_of(first, saved).at("sources").size(), 2u);
  NodeCursors cursors;
  cursors.begin(first, saved);
  json now = saved;
  cursors.add_to(first, now);
  EXPECT_EQ(now.at("sources").size(), 2u) << "until another one has told of it";
  cursors.tell(told_by(second, state_of("tail:b", "at 9")));
  cursors.add_to(first, now);
  EXPECT_EQ(now.at("sources").size(), 1u);
}

TEST_F(StreamCursors, OfASharedSourceAreTheFurthestOfAllNodesWhoeverGoesOn) {
  const auto shared = [](const char* places) {
    return state_of("nats://h/NEWS?shared=1", "{\"shared\":" + std::string(places) + ",\"bytes\":1}");
  };
  for (const bool found : {false, true}) {
    const std::vector<std::string> three = {"a:1", "b:1", "c:1"};
    NodeCursors cursors;
    cursors.tell(told_by(node(1, three, found), shared("[3,9,3]")));
    cursors.tell(told_by(node(2, three, found), shared("[3,3,7]")));
    json saved = shared("[5,3,3]");
    cursors.add_to(node(0, three, found), saved);
    const std::string all = "{\"shared\":[5,9,7],\"bytes\":1}";
    EXPECT_EQ(shared_cursors(saved).at("nats://h/NEWS?shared=1"), all);
    for (const ClusterSettings& cluster :
         {node(0, three, found), node(2, three, found), node(3, {"a:1", "d:1", "e:1", "f:1"}, found)}) {
      const json state = cursors_of(cluster, saved);
      ASSERT_EQ(state.at("sources").size(), 1u);
      EXPECT_EQ(cursor_in(state), all) << cluster.rank;
    }
    EXPECT_EQ(cursor_in(cursors_of(ClusterSettings(), saved)), all) << "one process";
  }
}

TEST_F(StreamCursors, GoByAddressWhereNodesFindEachOtherWhoeverCameFirst) {
  NodeCursors cursors;
  cursors.tell(told_by(node(1), state_of("tail:log", "at 7")));
  json saved = state_of("tail:log", "at 3");
  cursors.add_to(node(0), saved);
  EXPECT_EQ(cursor_in(cursors_of(node(0, {"b:1", "a:1"}), saved)), "at 7");
  EXPECT_EQ(cursor_in(cursors_of(node(1, {"b:1", "a:1"}), saved)), "at 3");
}

TEST_F(StreamCursors, OfANodeThatIsNewOnlyASourceThatOneAloneHadIsFound) {
  NodeCursors cursors;
  cursors.tell(told_by(node(1), state_of("kafka:b", "at 7")));
  json saved = state_of("kafka:a", "at 3");
  cursors.add_to(node(0), saved);
  const json found = cursors_of(node(0, {"c:1", "d:1"}), saved);
  EXPECT_EQ(found.at("sources").size(), 2u);
  EXPECT_EQ(found.at("totals").at("tokens"), 0);
  cursors.tell(told_by(node(1), state_of("kafka:a", "at 7")));
  cursors.add_to(node(0), saved);
  EXPECT_TRUE(cursors_of(node(0, {"c:1", "d:1"}), saved).at("sources").empty());
}

TEST_F(StreamCursors, WhatADeadLeaderHadSavedOfItselfAndOthersIsKept) {
  NodeCursors dead;
  dead.tell(told_by(node(1), state_of("tail:b", "at 7")));
  json saved = state_of("tail:a", "at 3");
  dead.add_to(node(0), saved);
  NodeCursors next;
  next.keep(saved);
  json now = state_of("tail:b", "at 9");
  next.add_to(node(1), now);
  EXPECT_EQ(now.at("nodes").size(), 1u);
  EXPECT_EQ(cursor_in(cursors_of(node(0), now)), "at 3");
  EXPECT_EQ(cursor_in(cursors_of(node(1), now)), "at 9");
}

TEST_F(StreamCursors, ASourceThatMovesIsFoundEachTime) {
  json saved = state_of("tail:log", "at 3");
  NodeCursors().add_to(node(0, {"a:1"}), saved);
  for (const auto& [address, cursor] : {std::pair("b:1", "at 5"), std::pair("c:1", "at 7"), std::pair("d:1", "at 9")}) {
    const ClusterSettings next = node(0, {address});
    EXPECT_EQ(cursor_in(cursors_of(next, saved)), saved.at("sources").at(0).at("cursor"));
    NodeCursors cursors;
    cursors.begin(next, saved);
    saved = state_of("tail:log", cursor);
    cursors.add_to(next, saved);
    EXPECT_EQ(saved.count("nodes"), 0u) << saved;
  }
}

TEST_F(StreamCursors, ASourceThatMovedToANodeThatDoesNotWriteIsTheOtherOnesNoMore) {
  json saved = state_of("tail:log", "at 3");
  saved["sources"].push_back({{"name", "tail:news"}, {"cursor", "at 4"}, {"documents", 3}});
  NodeCursors().add_to(node(0, {"a:1"}), saved);
  const ClusterSettings writer = node(0, {"b:1", "c:1"}), reader = node(1, {"b:1", "c:1"});
  NodeCursors writing, reading;
  writing.begin(writer, saved);
  reading.begin(reader, saved);
  writing.tell(json_text(reading.named(reader, state_of("tail:log", "at 5"))));
  json now = state_of("tail:own", "at 1");
  writing.add_to(writer, now);
  EXPECT_EQ(now.at("nodes").at("c:1"), state_of("tail:log", "at 5"));
  EXPECT_EQ(now.at("nodes").at("a:1").at("sources").size(), 1u) << "the other one has not moved";
  EXPECT_EQ(cursor_in(now.at("nodes").at("a:1")), "at 4");
  // Whoever says itself where a source of that name stands has one of its own.
  writing.tell(told_by(node(2, {"b:1", "c:1", "a:1"}), state_of("tail:log", "at 8")));
  writing.tell(json_text(reading.named(reader, state_of("tail:log", "at 6"))));
  writing.add_to(writer, now);
  EXPECT_EQ(now.at("nodes").at("a:1"), state_of("tail:log", "at 8"));
}

TEST_F(StreamCursors, WhatARankHadIsTheNodesThatHasItNow) {
  NodeCursors by_rank;
  by_rank.tell(told_by(node(1, {"a:1", "b:1"}, false), state_of("tail:log", "at 7")));
  json saved = state_of("tail:own", "at 3");
  by_rank.add_to(node(0, {"a:1", "b:1"}, false), saved);
  NodeCursors writing, reading;
  writing.begin(node(0), saved);
  reading.begin(node(1), saved);
  EXPECT_EQ(cursor_in(cursors_of(node(1), saved)), "at 7");
  writing.tell(json_text(reading.named(node(1), state_of("tail:log", "at 9"))));
  json now = state_of("tail:own", "at 5");
  writing.add_to(node(0), now);
  EXPECT_EQ(now.at("nodes").size(), 1u);
  EXPECT_EQ(cursors_of(node(0, {"c:1"}), now).at("sources").size(), 2u);
}

}  // namespace
}  // namespace streamvec
