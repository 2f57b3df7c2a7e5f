// What a stream's run tells of itself, on the way and at the end, together with the runs before it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/clock.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/model/parameters.h"
#include "streamvec/replay/table.h"
#include "streamvec/train/stream_cluster.h"
#include "streamvec/train/stream_learner.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// Called by the thread that watches the run.
class StreamProgress {
 public:
  // All borrowed.
  struct Parts {
    const Parameters& parameters;
    const ReplayTable& replay;
    Intake& intake;  // whose lock is taken
    const StreamLearner& learner;
    const StreamCluster* cluster = nullptr;  // of a node of one
    std::string model;
    double lr = 0;
  };

  // The runs before this one, as the state() of the last was saved.
  void restore(const nlohmann::json& state);
  void begin(Parts parts);  // its time counts from now on
  void end();               // until now

  // REQUIRES, of what follows: begin().
  TrainProgress total() const;  // with losses since it began; of a cluster's leader that has parted, of all nodes
  TrainProgress take_report();  // with losses, sources and replay since the last one
  // What a checkpoint has of it, after `learned`.
  nlohmann::json state(const LearnerTotals& learned) const;

 private:
  double seconds() const;
  TrainProgress progress(const LearnerTotals& last) const;
  void add_flow(TrainProgress& told);

  std::optional<Parts> parts_;
  LearnerTotals before_, reported_;
  ReplayTable::Statistics reported_replay_;
  std::vector<SourceStatistics> reported_sources_;
  double reported_s_ = 0;
  double seconds_before_ = 0;
  std::optional<double> seconds_;  // of this run, once it is over
  Clock::time_point begin_;
};

}  // namespace streamvec
