// Tells when something happens in a directory, so that nobody has to look all the time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/durable_file.h"

namespace streamvec {

// Uses inotify(7). Where there is none (its limits are reached, or a network's file system tells nothing), await()
// waits its time and the caller looks for itself: so callers give a short time and look after each wait. Not
// thread-safe.
class DirectoryWatch {
 public:
  struct Event {
    enum class Kind { kWritten, kComplete, kGone, kLost } kind;
    // kWritten: created or written to. kComplete: closed after writing, or moved here. kGone: removed or moved away.
    // kLost: events were lost, look at everything.
    std::string name;  // inside the directory
  };

  explicit DirectoryWatch(const std::string& directory);

  // Waits until something has happened, at most for `wait` and to the deadline; appends what it was.
  void await(Deadline deadline, std::chrono::milliseconds wait, std::vector<Event>& events);

 private:
  void drain(std::vector<Event>& events);

  FileHandle inotify_;
};

}  // namespace streamvec
