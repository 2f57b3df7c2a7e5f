#include "streamvec/train/run_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

TEST(RunState, ComesBackAsItWasSaved) {
  RunState state;
  state.epoch = 2;
  state.tokens = int64_t{1} << 40;
  state.loss = 0.25;
  state.epoch_tokens = -1;
  state.finished_ahead = {{0, 2}, {5, 6}};
  const Result<RunState> again = run_state_from_json(to_json(state), {{"sources", "there"}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_json(*again), to_json(state));
  EXPECT_EQ(again->cursor, "there");
  EXPECT_EQ(again->finished_ahead, state.finished_ahead);
}

TEST(RunState, OfAnOlderVersionHasNothingFinishedAhead) {
  nlohmann::json state = to_json(RunState());
  state.erase("finished_ahead");
  const Result<RunState> run = run_state_from_json(state, {{"sources", ""}});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->finished_ahead.empty());
}

TEST(RunState, WhatIsFinishedAheadHasToBeRangesThatRise) {
  const nlohmann::json cursors = {{"sources", ""}};
  nlohmann::json state = to_json(RunState());
  for (const char* damaged : {"null",
                              "7",
                              "\"a\"",
                              "{}",
                              "{\"0\":[1,2]}",
                              "[7]",
                              "[[]]",
                              "[[1]]",
                              "[[1,2,3]]",
                              "[[1,\"2\"]]",
                              "[[1,2.5]]",
                              "[[1,1e300]]",
                              "[[2,1]]",
                              "[[1,1]]",
                              "[[-1,2]]",
                              "[[5,6],[1,2]]",
                              "[[1,3],[2,4]]",
                              "[[1,2],[2,3]]",
                              "[[0,9223372036854775807]]",
                              "[[0,18446744073709551615]]",
                              "[[18446744073709551615,3]]"}) {
    state["finished_ahead"] = nlohmann::json::parse(damaged);
    EXPECT_EQ(run_state_from_json(state, cursors).status().code(), Code::kDataLoss) << damaged;
  }
}

TEST(RunState, AFieldThatIsMissingOrNoWholeNumberIsDataLoss) {
  const nlohmann::json cursors = {{"sources", ""}};
  for (const char* field : {"epoch", "tokens", "epoch_tokens", "updates_refused"}) {
    nlohmann::json state = to_json(RunState());
    state[field] = 1e300;
    EXPECT_EQ(run_state_from_json(state, cursors).status().code(), Code::kDataLoss) << field;
    state.erase(field);
    EXPECT_EQ(run_state_from_json(state, cursors).status().code(), Code::kDataLoss) << field;
  }
}

}  // namespace
}  // namespace streamvec
