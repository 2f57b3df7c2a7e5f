// A worker of a Sandblaster run: threads that take portions, fetch the rows that these look at, and bring what they add
// to the gradient to the rows' owners.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/sandblaster_message.h"
#include "streamvec/core/matrix.h"
#include "streamvec/optim/portioned_objective.h"

namespace streamvec {

// Thread-safe.
class SandblasterWorker {
 public:
  struct Options {
    NodeId coordinator = 0;
    RowKey row_end = 0;
    int64_t dim = 0;
    int32_t threads = 1;
  };
  // `objective` is borrowed.
  static Result<std::unique_ptr<SandblasterWorker>> make(const Options& options, const PortionedObjective& objective,
                                                         SandblasterPost post);
  ~SandblasterWorker();  // leaves what is in work

  // Portions, answers of owners, and sets of owners.
  void receive(NodeId from, const SandblasterMessage& message);

 private:
  struct Task {
    uint32_t epoch = 0;
    uint64_t evaluation = 0;
    uint32_t portion = 0;
  };
  struct Thread;  // what one of them has of its own

  SandblasterWorker(const Options& options, const PortionedObjective& objective, SandblasterPost post)
      : options_(options), objective_(objective), post_(std::move(post)), at_once_(rows_of_message(options.dim)) {}
  void run();
  bool await_task(Task& task);
  void work(const Task& task, Thread& own);
  bool fetch(const Task& task, Thread& own);
  bool bring(const Task& task, Thread& own);
  // Rows of another evaluation are other rows.
  bool is_current(const Task& task) const {
    return !stopping_ && task.epoch == epoch_ && task.evaluation == evaluation_;
  }

  const Options options_;
  const PortionedObjective& objective_;
  const SandblasterPost post_;
  const size_t at_once_;  // rows of a message

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  bool stopping_ = false;
  uint32_t epoch_ = 0;
  std::vector<NodeId> owners_;
  uint64_t evaluation_ = 0;  // the last that was heard of
  std::deque<Task> tasks_;
  uint64_t questions_ = 0;
  std::map<uint64_t, std::optional<std::vector<float>>> answers_;  // by question; nullopt: not there yet
  std::map<std::pair<uint64_t, uint32_t>, int64_t>
      owed_;                          // by evaluation and portion: parts that owners have to call "taken"
  Matrix rows_;                       // as of the evaluation that they were fetched in
  std::vector<uint64_t> fetched_in_;  // by row; 0 never
  std::vector<std::thread> threads_;
};

}  // namespace streamvec
