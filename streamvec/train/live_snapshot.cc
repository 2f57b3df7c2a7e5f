#include "streamvec/train/live_snapshot.h"

#include <algorithm>
#include <mutex>

namespace streamvec {

Result<Snapshot> copy_model(const std::string& model, int64_t step, const Vocabulary& vocabulary, const ModelState& own,
                            Parameters& parameters) {
  STREAMVEC_RETURN_IF_ERROR(parameters.fetch_rows());
  Snapshot snapshot;
  snapshot.model = model;
  snapshot.step = step;
  snapshot.vocabulary = vocabulary;
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, own.input_rows(parameters, snapshot.vocabulary.size()));
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.generator,
                             own.spellings(parameters, [] { return std::unique_lock<std::mutex>(); }));
  return snapshot;
}

void SnapshotShow::show_if_due(const std::function<Result<Snapshot>()>& copy) {
  if (hooks_.snapshot && Clock::now() >= next_) show(copy);
}

void SnapshotShow::show(const std::function<Result<Snapshot>()>& copy) {
  if (!hooks_.snapshot) return;
  constexpr int kShareMost = 20;
  const Clock::time_point begin = Clock::now();
  auto copied = copy();
  if (copied.ok() && copied->vocabulary.size() > 0)
    hooks_.snapshot(std::make_shared<const Snapshot>(std::move(*copied)));
  const auto every =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(hooks_.snapshot_every_s));
  const Clock::time_point now = Clock::now();
  next_ = now + std::max(every, kShareMost * (now - begin));
}

}  // namespace streamvec
