#include "streamvec/train/stream_replay.h"

#include <algorithm>

namespace streamvec {

Result<ReplaySelection> parse_replay(const std::string& name) {
  if (name == "once") return ReplaySelection{ReplaySelector::kInOrderOnce, ReplayPriority::kNone};
  if (name == "uniform") return ReplaySelection{ReplaySelector::kUniform, ReplayPriority::kNone};
  if (name == "loss") return ReplaySelection{ReplaySelector::kPrioritised, ReplayPriority::kLoss};
  if (name == "gradient") return ReplaySelection{ReplaySelector::kPrioritised, ReplayPriority::kGradient};
  return error(Code::kInvalidArgument, "no replay is called '", name, "'; try once, uniform, loss or gradient");
}

ReplayOptions replay_options(const TrainOptions& options, ReplaySelector selector) {
  const StreamOptions& stream = options.stream;
  ReplayOptions replay;
  replay.selector = selector;
  replay.capacity = stream.replay_chunks;
  replay.bytes_max = stream.replay_chunks * 4'096;
  replay.half_life = stream.half_life.value;
  replay.limiter.samples_per_insert = stream.replay_ratio;
  // Sampling starts with the first chunk: what there is to learn from a short stream is learnt.
  replay.limiter.size_min = 1;
  // Few, so that what is trained on is fresh and a snapshot is of the text read lately.
  replay.limiter.inserts_ahead_max = std::clamp<int64_t>(stream.replay_chunks / 4, 64, 1'024);
  replay.seed = options.seed;
  return replay;
}

ReplayOptions relay_options(const TrainOptions& options) {
  ReplayOptions replay = replay_options(options, ReplaySelector::kInOrderOnce);
  replay.capacity = replay.limiter.inserts_ahead_max = 64;
  replay.bytes_max = int64_t{1} << 24;
  return replay;
}

}  // namespace streamvec
