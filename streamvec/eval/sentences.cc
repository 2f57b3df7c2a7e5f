#include "streamvec/eval/sentences.h"

#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {

Status check(const PairOptions& options) {
  if (options.window < 1 || options.window > 1000)
    return error(Code::kInvalidArgument, "window ", options.window, " is not between 1 and 1000");
  if (options.negatives < 1) return error(Code::kInvalidArgument, "negatives ", options.negatives, " is below 1");
  if (!(options.sample >= 0)) return error(Code::kInvalidArgument, "sample ", options.sample, " is below 0");
  if (!std::isfinite(options.smoothing))
    return error(Code::kInvalidArgument, "smoothing ", options.smoothing, " is not a number");
  return {};
}

Status visit_subsampled(const SentenceStream& stream, const Vocabulary& vocabulary, const PairOptions& options,
                        const std::function<Status(int64_t number, std::span<const Slot>)>& visitor) {
  const Subsampling subsampling(vocabulary, options.sample);
  std::vector<Slot> kept;
  int64_t number = 0;
  Status status;
  STREAMVEC_RETURN_IF_ERROR(stream([&](std::span<const Slot> sentence) {
    if (!status.ok()) return;
    Random random(mix(options.seed, static_cast<uint64_t>(number)));
    kept.clear();
    for (const Slot slot : sentence)
      if (slot != kNoSlot && subsampling.keep(slot, random.next_u32())) kept.push_back(slot);
    status = visitor(number++, kept);
  }));
  return status;
}

}  // namespace streamvec
