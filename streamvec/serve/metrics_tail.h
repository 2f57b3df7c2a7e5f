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

  // `again`: the file became another one and is read from its beginning, so that the line may have been given before.
  using Take = std::function<void(const std::string& line, bool again)>;
  // Gives `take` the whole lines that have come since the last look, oldest first; the first time all there are, those
  // of the file before (metrics.jsonl.1) included.
  void read(const Take& take);

 private:
  const std::string path_;
  int64_t at_ = -1;    // bytes read; -1 before the first look
  int64_t size_ = 0;   // when they were
  uint64_t file_ = 0;  // its inode
};

}  // namespace streamvec
