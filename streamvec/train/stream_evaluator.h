// Watches a stream while it learns: a thread that takes immutable snapshots, measures them, keeps a history of them and
// looks for words whose meaning has moved. Training and reading go on meanwhile.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/analogy.h"
#include "streamvec/eval/drift.h"
#include "streamvec/eval/history.h"
#include "streamvec/eval/metrics_log.h"
#include "streamvec/eval/probe_sppmi.h"
#include "streamvec/eval/similarity.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/model/parameters.h"
#include "streamvec/train/model_state.h"
#include "streamvec/train/stream_learner.h"

namespace streamvec {

class StreamEvaluator {
 public:
  struct Options {
    std::string dir;  // of the model: metrics.jsonl, tensorboard/ and history/ go there
    std::string model = "sgns";
    double every_s = 30;                 // between two lines of metrics; 0: only at the end
    int64_t snapshot_every = 5'000'000;  // tokens between two snapshots of the history; 0: no history
    std::vector<SimilaritySet> similarity;
    std::vector<AnalogySet> analogy;
    ProbeOptions probe;
    int64_t first_step = 0;  // of the learner's batches
    // Asked just before anything is written: of a cluster another node may lead by now. None: always.
    std::function<bool()> may_write = {};
    std::function<void(const StreamMetrics&)> on_metrics = {};  // every line of them, from the evaluator's thread
  };
  // Borrowed; all must outlive the evaluator's thread.
  struct Parts {
    StreamVocabulary& vocabulary;
    ReplayTable& replay;
    Parameters& parameters;
    const ModelState& own;  // what the model has beyond the parameters' tables
    std::array<Parameters*, 2> halves{};
    Intake* intake = nullptr;
    StreamLearner* learner = nullptr;
  };

  // kNotFound and the like when the directory cannot be written.
  static Result<std::unique_ptr<StreamEvaluator>> create(Options options);
  ~StreamEvaluator();

  void start(const Parts& parts);
  // Measures once more, where there is something new, and ends.
  void stop();

  // From the training threads: a chunk that passes for the first time. Thread-safe.
  void watch(const Chunk& chunk, double t, const Subsampling& subsampling);
  // From the intake: these slots have other words now. Thread-safe.
  void forget(std::span<const Slot> slots);

  // The newest measurements; nullopt before the first. Thread-safe.
  std::optional<StreamMetrics> latest() const;
  // What went wrong on the way (a full disk, say), a line each; training does not mind. Thread-safe.
  std::vector<std::string> notes() const;

  // Waits for the look under way; none begins while this is held. Looks and saves take memory for copies of the model:
  // one after the other they need less than together. Thread-safe.
  [[nodiscard]] std::unique_lock<std::mutex> between_looks() { return std::unique_lock(looking_); }

  // What goes on after a restart. Thread-safe, and before start().
  std::string save() const;
  Status restore(std::string_view bytes, int64_t vocabulary_size);
  // The stream goes on from the model of first_step: its history, too.
  Status go_on() { return history_.forget_after(options_.first_step); }

 private:
  explicit StreamEvaluator(Options options);
  void run();
  void follow_at_first();
  bool has_seen_all() const;
  int64_t tokens_in_history(int64_t tokens_read) const;
  void look(bool last);
  void measure(const Snapshot& snapshot, StreamMetrics& metrics);
  void remember(const Snapshot& snapshot, int64_t tokens, StreamMetrics& metrics);
  void find_moved_words(StreamMetrics& metrics);
  StreamMetrics gather();
  void note(const Status& status);

  const Options options_;
  std::mutex looking_;  // held during a look; taken before any other
  std::optional<Parts> parts_;
  History history_;
  std::optional<MetricsLog> log_;
  std::thread thread_;
  // Of the evaluator's thread.
  double measured_s_ = 0;  // when; seconds since 1970
  int64_t looks_ = 0;
  int64_t remembered_tokens_ = 0;     // at the last snapshot of the history
  std::optional<Snapshot> previous_;  // measured last
  LearnerTotals previous_totals_;
  std::vector<SourceStatistics> previous_sources_;
  int64_t previous_inserted_ = 0, previous_sampled_ = 0, previous_tokens_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  ProbeSppmi probe_;
  std::optional<StreamMetrics> latest_;
  std::vector<std::string> notes_;
};

// How the sources fare, with rates over the `seconds` since `before`.
std::vector<SourceMetrics> source_metrics(const std::vector<SourceStatistics>& now,
                                          const std::vector<SourceStatistics>& before, double seconds);

// A copy of the model as it is now, with what makes vectors of spellings when `spellings` is set. Rows that have
// changed hands while they were copied are zero. The intake's lock is taken for the words, none for the rows.
// kResourceExhausted when there is no memory for it.
Result<Snapshot> take_snapshot(const std::string& model, int64_t step, StreamVocabulary& vocabulary,
                               Parameters& parameters, const ModelState& own, Intake& intake, bool spellings = false);

}  // namespace streamvec
