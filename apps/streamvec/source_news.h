// What a run says at once of sources that have a fault, and not only when it ends.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "streamvec/eval/metrics_log.h"

namespace streamvec::cli {

class SourceNews {
 public:
  static constexpr int kTimesMax = 3;  // that a source's fault is told: one that comes and goes must not fill the log

  // What has come about since the last call, a line each: a source that cannot be read, one that is given up, one that
  // can be read again.
  std::vector<std::string> tell(std::span<const SourceMetrics> sources);

 private:
  struct Told {
    std::string state = "reading";
    int times = 0;
  };
  std::vector<Told> told_;  // by the source's place: names may be the same
};

}  // namespace streamvec::cli
