// Copies of a model that is being trained, for those who watch it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/train/model_state.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// The model as it is now, with what makes vectors of spellings. Threads may be training meanwhile; nobody may change
// the vocabulary. kResourceExhausted when there is no memory for it.
Result<Snapshot> copy_model(const std::string& model, int64_t step, const Vocabulary& vocabulary, const ModelState& own,
                            Parameters& parameters);

// Shows copies to TrainHooks::snapshot when they are due: the first after a second, then every snapshot_every_s, and
// less often where copying would take more than a twentieth of the time.
class SnapshotShow {
 public:
  explicit SnapshotShow(const TrainHooks& hooks) : hooks_(hooks) {}
  // Nothing happens unless it is due. What copy() fails with is passed over: the next one may succeed.
  void show_if_due(const std::function<Result<Snapshot>()>& copy);
  void show(const std::function<Result<Snapshot>()>& copy);

 private:
  using Clock = std::chrono::steady_clock;
  const TrainHooks& hooks_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

}  // namespace streamvec
