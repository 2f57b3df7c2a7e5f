// The training threads of a stream: take chunks from replay, leave out words that have lost their slot, train.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/model.h"
#include "streamvec/replay/table.h"
#include "streamvec/vocab/sampling_buffer.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// What a chunk's priority is, where replay goes by it: both per pair, as trained on last.
enum class ReplayPriority { kNone, kLoss, kGradient };

// All counts are since start(). "Fresh" chunks are trained on for the first time: a block's loss is taken before its
// step, so that theirs is the loss on text not seen yet (prequential; Dawid 1984).
struct LearnerTotals {
  int64_t batches = 0, samples = 0, tokens = 0, pairs = 0, refused = 0;
  int64_t stale_tokens = 0;  // left out, their words have lost their slots
  double loss = 0;
  int64_t fresh_pairs = 0;
  double fresh_loss = 0;
  double waiting_s = 0, working_s = 0;  // summed over the threads

  LearnerTotals& operator+=(const LearnerTotals& other);
};

class StreamLearner {
 public:
  struct Options {
    ModelOptions model;
    int32_t threads = 1;
    float lr = 0.05f;
    uint64_t seed = 1;
    int64_t first_batch = 0;  // the number of the first batch: seeds its draws
    ReplayPriority priority = ReplayPriority::kNone;
    int64_t samples_at_once = 16;
  };
  // All borrowed. `halves` are the models of the stream's two halves, or nullptr: every document is trained on by one
  // of them, too. `watch` is called by the training threads with every fresh chunk.
  struct Parts {
    const StreamVocabulary& vocabulary;  // only its births are looked at
    const SamplingTablesBuffer& tables;
    ReplayTable& replay;
    Parameters& parameters;
    std::array<Parameters*, 2> halves{};
    std::function<void(const Chunk& chunk, double t)> watch = {};
    // Called by the training threads between batches with the tokens of the last; false: training is to stop.
    std::function<bool(int64_t tokens)> trained = {};
  };

  static Result<std::unique_ptr<StreamLearner>> create(const Options& options, const Parts& parts);
  ~StreamLearner();

  void start();
  void stop();  // after the batches at hand; returns when the threads are gone
  // Waits until no thread is in a batch; none begins one until resume().
  void pause();
  void resume();
  // Replay has no more to give, or stop() was called, or a card or the cluster failed, which closes replay; and all
  // threads are gone.
  bool over() const;
  LearnerTotals totals() const;
  std::string kernel_name() const;
  // What threads have begun on a card or kept to themselves is finished, counted and in the tables; the error of a card
  // that failed, after which nothing is learnt. REQUIRES: pause(), or the threads are gone.
  Status settle();

 private:
  struct Thread;

  StreamLearner(const Options& options, const Parts& parts);
  void run(Thread& thread);
  void give_up();
  static bool has_failed(const Thread& thread);
  Status settle(Thread& thread, LearnerTotals& done);
  bool begin_batch();
  void end_batch(const LearnerTotals& done);
  LearnerTotals learn(Thread& thread, int64_t batch);
  LearnerTotals learn_together(Thread& thread, Random& random);
  LearnerTotals learn_singly(Thread& thread, Random& random);
  void learn_halves(Thread& thread, Random& random);
  void update_priorities(Thread& thread);
  void show_fresh(Thread& thread);
  void append(const ReplayItem& item, Chunk& chunk, int64_t& stale) const;

  const Options options_;
  const Parts parts_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<int64_t> next_batch_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  int32_t pauses_ = 0, working_ = 0, live_ = 0;
  LearnerTotals totals_;
};

}  // namespace streamvec
