#include "streamvec/train/stream_cursors.h"

#include <gtest/gtest.h>

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
  std::string cursor_in(const json& state) { return state.at("sources").at(0).at("cursor"); }

  testing::Notebook notebook_;
};

TEST_F(StreamCursors, GoByRankWhereRanksAreGiven) {
  NodeCursors cursors;
  cursors.tell(json_text(named_cursors(node(1, {"a:1", "b:1"}, false), state_of("tail:b", "at 7"))));
  json saved = state_of("tail:a", "at 3");
  cursors.add_to(node(0, {"a:1", "b:1"}, false), saved);
  EXPECT_EQ(saved.at("nodes").at("1"), state_of("tail:b", "at 7"));
  EXPECT_EQ(cursor_in(cursors_of(node(1, {"c:1", "d:1"}, false), saved)), "at 7");
  EXPECT_EQ(cursors_of(node(0, {"c:1", "d:1"}, false), saved), state_of("tail:a", "at 3"));
  EXPECT_TRUE(cursors_of(node(2, {"c:1", "d:1", "e:1"}, false), saved).is_null());
}

TEST_F(StreamCursors, GoByAddressWhereNodesFindEachOtherWhoeverCameFirst) {
  NodeCursors cursors;
  cursors.tell(json_text(named_cursors(node(1), state_of("tail:log", "at 7"))));
  json saved = state_of("tail:log", "at 3");
  cursors.add_to(node(0), saved);
  EXPECT_EQ(cursor_in(cursors_of(node(0, {"b:1", "a:1"}), saved)), "at 7");
  EXPECT_EQ(cursor_in(cursors_of(node(1, {"b:1", "a:1"}), saved)), "at 3");
}

TEST_F(StreamCursors, OfANodeThatIsNewOnlyASourceThatOneAloneHadIsFound) {
  NodeCursors cursors;
  cursors.tell(json_text(named_cursors(node(1), state_of("kafka:b", "at 7"))));
  json saved = state_of("kafka:a", "at 3");
  cursors.add_to(node(0), saved);
  const json found = cursors_of(node(0, {"c:1", "d:1"}), saved);
  EXPECT_EQ(found.at("sources").size(), 2u);
  EXPECT_EQ(found.at("totals").at("tokens"), 0);
  cursors.tell(json_text(named_cursors(node(1), state_of("kafka:a", "at 7"))));
  cursors.add_to(node(0), saved);
  EXPECT_TRUE(cursors_of(node(0, {"c:1", "d:1"}), saved).at("sources").empty());
}

TEST_F(StreamCursors, WhatADeadLeaderHadSavedOfItselfAndOthersIsKept) {
  NodeCursors dead;
  dead.tell(json_text(named_cursors(node(1), state_of("tail:b", "at 7"))));
  json saved = state_of("tail:a", "at 3");
  dead.add_to(node(0), saved);
  NodeCursors next;
  next.keep(node(1), saved);
  json now = state_of("tail:b", "at 9");
  next.add_to(node(1), now);
  EXPECT_EQ(now.at("nodes").size(), 1u);
  EXPECT_EQ(cursor_in(cursors_of(node(0), now)), "at 3");
  EXPECT_EQ(cursor_in(cursors_of(node(1), now)), "at 9");
}

}  // namespace
}  // namespace streamvec
