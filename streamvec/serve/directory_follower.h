// Follows a model directory that another process may be writing: each new checkpoint is shown to a service, and each
// line of its metrics.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

class DirectoryFollower {
 public:
  struct Options {
    std::string directory;
    std::chrono::milliseconds look_every{500};
    int64_t lines_first = 500;  // of metrics that were there before
    // Called on the follower's thread (the first snapshot: on the caller's of start()).
    std::function<void(std::shared_ptr<const Snapshot>)> on_snapshot;
    std::function<void(const std::string& line)> on_metrics;
    std::function<void(const std::string& text)> on_note;  // damaged checkpoints that were passed over, ...
  };
  // Loads the newest complete checkpoint first. Fails as load_snapshot() does when there is none.
  static Result<std::unique_ptr<DirectoryFollower>> start(Options options);
  ~DirectoryFollower();

 private:
  explicit DirectoryFollower(Options options) : options_(std::move(options)) {}
  Status load();
  void run();
  void read_metrics();

  const Options options_;
  std::string seen_;         // what told of the newest checkpoint when it was loaded
  int64_t step_ = -1;        // of the one shown last
  int64_t metrics_at_ = -1;  // bytes of metrics.jsonl read; -1 before the first look
  uint64_t metrics_file_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace streamvec
