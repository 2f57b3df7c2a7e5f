// Follows a model directory that another process may be writing: each new checkpoint is shown to a service.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
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
    // Called on the follower's thread (the first snapshot: on the caller's of start()).
    std::function<void(std::shared_ptr<const Snapshot>)> on_snapshot;
    std::function<void(const std::string& text)> on_note;  // damaged checkpoints that were passed over, ...
    // Why what was shown is not the newest, or not sound, whenever that changes; "" once all is well.
    std::function<void(const std::string& text)> on_trouble;
  };
  // Loads the newest complete checkpoint first. Fails as load_snapshot() does when there is none.
  static Result<std::unique_ptr<DirectoryFollower>> start(Options options);
  ~DirectoryFollower();

 private:
  explicit DirectoryFollower(Options options) : options_(std::move(options)) {}
  Status load();
  void look();
  void run();

  const Options options_;
  std::string seen_;     // what told of the newest checkpoint when it was loaded
  std::string notes_;    // on that one
  std::string failure_;  // to load a newer one; "" none
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace streamvec
