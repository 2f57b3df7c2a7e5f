// Where a training run stands: all that a checkpoint must hold, besides the model itself, to go on exactly.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "streamvec/cluster/piece_ranges.h"
#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

struct RunState {
  int64_t step = 0;    // pieces of text trained on up to `cursor`, over all runs: names the checkpoint, seeds the draws
  int32_t epoch = 0;   // of this run, from 0
  int64_t tokens = 0;  // raw tokens of this run
  int64_t pairs = 0;
  double seconds = 0;  // spent training
  double loss = 0;     // summed over the pairs of this epoch
  int64_t loss_pairs = 0;
  int64_t epoch_tokens = -1;  // raw tokens of one epoch; -1 when the source's length is unknown
  int64_t bytes_replaced = 0, words_dropped = 0, updates_refused = 0;
  bool finished = false;
  std::string cursor;  // of the last document handed out in this epoch; "" at its beginning
  // Pieces after that, of this epoch and later ones, that nodes have finished out of turn, and that are counted above.
  // By how many pieces lie between: 0 is the next one. As joined() has them.
  std::vector<PieceRange> finished_ahead;

  double fraction(int32_t epochs) const;  // 0 .. 1, or -1 when the length is unknown
  double mean_loss() const { return loss_pairs > 0 ? loss / static_cast<double>(loss_pairs) : 0; }
};

// The options that decide what a run computes, and its sources: two runs with equal descriptions are the same run.
nlohmann::json describe_run(const TrainOptions& options, double lr, const std::vector<std::string>& sources);
// The names of the fields in which two descriptions differ, for messages.
std::string differences(const nlohmann::json& a, const nlohmann::json& b);

nlohmann::json to_json(const RunState& state);
// kDataLoss when a field is missing or of another kind; `finished_ahead` may be missing.
Result<RunState> run_state_from_json(const nlohmann::json& state, const nlohmann::json& cursors);

}  // namespace streamvec
