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
  const Result<RunState> again = run_state_from_json(to_json(state), {{"sources", "there"}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_json(*again), to_json(state));
  EXPECT_EQ(again->cursor, "there");
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
