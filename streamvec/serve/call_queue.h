// Calls wait here for a thread. Clients take turns, so that one who asks a thousand things does not delay one who asks
// one; calls that need a search over all rows are taken together and answered by one pass.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "streamvec/serve/served_model.h"

namespace streamvec {

// One call on its way. begin() is called once, then finish() if it asked for a search. Both on a thread of the queue.
class Call {
 public:
  virtual ~Call() = default;
  // Answers, or returns what is to be sought first.
  virtual std::optional<SearchRequest> begin(const std::shared_ptr<const ServedModel>& model) = 0;
  virtual void finish(const std::shared_ptr<const ServedModel>& model, const std::vector<Neighbour>& found) = 0;
};

class CallQueue {
 public:
  struct Options {
    int32_t threads = 1;
    int64_t waiting_max = 4'096;         // calls of all clients; more are refused
    int64_t client_waiting_max = 1'024;  // of one client
    int64_t together_max = 16;           // calls that one pass answers; more: fewer passes, and the first waits longer
    std::string name = "calls";          // of its threads
  };
  // `current` gives the model that calls are answered from, or nullptr; called once for each pass.
  CallQueue(const Options& options, std::function<std::shared_ptr<const ServedModel>()> current);
  ~CallQueue();  // calls that wait are dropped

  // False, and the call is dropped, when too many wait. Thread-safe.
  bool push(const std::string& client, std::unique_ptr<Call> call);
  int64_t waiting() const;

 private:
  struct Line {
    std::string client;
    std::deque<std::unique_ptr<Call>> calls;
  };
  void run();
  std::vector<std::unique_ptr<Call>> take();

  const Options options_;
  const std::function<std::shared_ptr<const ServedModel>()> current_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::list<Line> lines_;  // of clients with calls that wait; the first is next
  std::unordered_map<std::string, std::list<Line>::iterator> line_of_;
  int64_t waiting_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace streamvec
