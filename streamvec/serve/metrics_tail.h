// The lines of DIR/metrics.jsonl (eval/metrics_log.h), as far as they are there and as they come.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace streamvec {

// Not thread-safe.
class MetricsTail {
 public:
  explicit MetricsTail(const std::string& directory) : path_(directory + "/metrics.jsonl") {}

  // Gives `take` the whole lines that have come since the last look, oldest first; the first time all there are, those
  // of the file before (metrics.jsonl.1) included. A file that became another one is read from its beginning.
  void read(const std::function<void(const std::string& line)>& take);

 private:
  const std::string path_;
  int64_t at_ = -1;    // bytes read; -1 before the first look
  uint64_t file_ = 0;  // its inode
};

}  // namespace streamvec
