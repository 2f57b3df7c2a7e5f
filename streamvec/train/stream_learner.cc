#include "streamvec/train/stream_learner.h"

#include <bit>
#include <chrono>

#include "streamvec/core/clock.h"
#include "streamvec/core/random.h"
#include "streamvec/core/threads.h"

namespace streamvec {
namespace {

// Keeps the draws of training apart from those of the first rows and of replay, which use the same seed.
constexpr uint64_t kBatchDraws = 1, kHalfDraws = 3;
constexpr std::chrono::milliseconds kWait{50};

// Which half of the stream an item belongs to; all items of a document to one.
int half_of(const ReplayItem& item) {
  const uint64_t document =
      item.record != 0 ? item.record : mix(std::bit_cast<uint64_t>(item.t), static_cast<uint64_t>(item.source));
  return static_cast<int>(mix(document) & 1);
}

void count(const StepStats& stats, LearnerTotals& totals) {
  totals.pairs += stats.pairs;
  totals.loss += stats.loss;
  totals.refused += stats.refused;
  totals.fresh_pairs += stats.fresh_pairs;
  totals.fresh_loss += stats.fresh_loss;
}

}  // namespace

LearnerTotals& LearnerTotals::operator+=(const LearnerTotals& other) {
  batches += other.batches;
  samples += other.samples;
  tokens += other.tokens;
  pairs += other.pairs;
  refused += other.refused;
  stale_tokens += other.stale_tokens;
  loss += other.loss;
  fresh_pairs += other.fresh_pairs;
  fresh_loss += other.fresh_loss;
  waiting_s += other.waiting_s;
  working_s += other.working_s;
  return *this;
}

struct StreamLearner::Thread {
  std::unique_ptr<ModelWorker> worker;
  std::unique_ptr<ModelWorker> half_workers[2];
  Threads thread;  // one, if there was one to be had
  Status started;
  std::vector<ReplaySample> samples;
  Chunk chunk, fresh;
  std::vector<uint64_t> keys;
  std::vector<float> priorities;
};

StreamLearner::StreamLearner(const Options& options, const Parts& parts)
    : options_(options), parts_(parts), next_batch_(options.first_batch) {}

StreamLearner::~StreamLearner() {
  stop();
}

Result<std::unique_ptr<StreamLearner>> StreamLearner::create(const Options& options, const Parts& parts) {
  std::unique_ptr<StreamLearner> learner(new StreamLearner(options, parts));
  for (int32_t i = 0; i < options.threads; ++i) {
    auto thread = std::make_unique<Thread>();
    STREAMVEC_ASSIGN_OR_RETURN(thread->worker, make_model_worker(options.model, parts.parameters));
    for (int half = 0; half < 2 && parts.halves[0] != nullptr; ++half) {
      STREAMVEC_ASSIGN_OR_RETURN(thread->half_workers[half], make_model_worker(options.model, *parts.halves[half]));
    }
    learner->threads_.push_back(std::move(thread));
  }
  return learner;
}

void StreamLearner::start() {
  live_ = static_cast<int32_t>(threads_.size());
  for (auto& thread : threads_) {
    thread->started = thread->thread.start(1, [this, &thread = *thread](int64_t) { run(thread); });
    if (thread->started.ok()) continue;
    give_up();
    stop();  // leaves room for threads of others, which end with the error that settle() has
    live_ = 0;
    return;
  }
}

void StreamLearner::stop() {
  stopping_ = true;
  for (auto& thread : threads_) thread->thread.join();
}

void StreamLearner::pause() {
  std::unique_lock lock(mutex_);
  ++pauses_;
  changed_.wait(lock, [&] { return working_ == 0; });
}

void StreamLearner::resume() {
  const std::lock_guard lock(mutex_);
  --pauses_;
  changed_.notify_all();
}

bool StreamLearner::over() const {
  const std::lock_guard lock(mutex_);
  return live_ == 0;
}

LearnerTotals StreamLearner::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

std::string StreamLearner::kernel_name() const {
  return threads_.front()->worker->kernel_name();
}

void StreamLearner::run(Thread& thread) {
  while (!stopping_) {
    if (!begin_batch()) continue;
    const Clock::time_point begin = Clock::now();
    thread.samples.clear();
    const Result<int64_t> taken =
        parts_.replay.sample(options_.samples_at_once, Deadline::after(kWait), thread.samples);
    LearnerTotals done;
    done.waiting_s = seconds_since(begin);
    const bool ended = taken.ok() ? *taken == 0 : taken.status().code() != Code::kDeadlineExceeded;
    if (taken.ok() && *taken > 0) {
      const CrewVisit visit(parts_.parameters.crew.get());
      const Clock::time_point taken_at = Clock::now();
      done += learn(thread, next_batch_++);
      done.working_s = seconds_since(taken_at);
      if (has_failed(thread)) give_up();
    }
    // While no text comes, the tables have all that came before.
    if (!taken.ok() && !ended && !settle(thread, done).ok()) give_up();
    end_batch(done);
    if (parts_.trained && done.tokens > 0 && !parts_.trained(done.tokens)) give_up();
    if (ended) break;
  }
  const std::lock_guard lock(mutex_);
  --live_;
  changed_.notify_all();
}

// Nobody takes anything from replay any more: who waits there for room would wait for ever.
void StreamLearner::give_up() {
  stopping_ = true;
  parts_.replay.close();
}

bool StreamLearner::has_failed(const Thread& thread) {
  const auto failed = [](const auto& worker) { return worker != nullptr && worker->failed(); };
  return failed(thread.worker) || std::any_of(std::begin(thread.half_workers), std::end(thread.half_workers), failed);
}

// False when nothing may begin yet: look again.
bool StreamLearner::begin_batch() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kWait, [&] { return pauses_ == 0; })) return false;
  ++working_;
  return true;
}

void StreamLearner::end_batch(const LearnerTotals& done) {
  const std::lock_guard lock(mutex_);
  totals_ += done;
  --working_;
  if (pauses_ > 0) changed_.notify_all();
}

LearnerTotals StreamLearner::learn(Thread& thread, int64_t batch) {
  Random random(mix(options_.seed, kBatchDraws, static_cast<uint64_t>(batch)));
  LearnerTotals done =
      options_.priority == ReplayPriority::kNone ? learn_together(thread, random) : learn_singly(thread, random);
  done.batches = 1;
  done.samples = static_cast<int64_t>(thread.samples.size());
  if (parts_.halves[0] != nullptr) {
    Random half_random(mix(options_.seed, kHalfDraws, static_cast<uint64_t>(batch)));
    learn_halves(thread, half_random);
  }
  if (parts_.watch) show_fresh(thread);
  return done;
}

void StreamLearner::show_fresh(Thread& thread) {
  int64_t ignored = 0;
  for (const ReplaySample& sample : thread.samples) {
    if (sample.times_sampled > 0) continue;
    thread.chunk.clear();
    append(*sample.item, thread.chunk, ignored);
    parts_.watch(thread.chunk, sample.item->t);
  }
}

// Adds the words of `item` that still have their slots.
void StreamLearner::append(const ReplayItem& item, Chunk& chunk, int64_t& stale) const {
  const size_t before = chunk.slots.size();
  size_t at = 0;
  for (const int32_t end : item.chunk.sentence_ends) {
    for (; at < static_cast<size_t>(end); ++at)
      if (parts_.vocabulary.valid(item.chunk.slots[at], item.stamp)) chunk.slots.push_back(item.chunk.slots[at]);
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  stale += static_cast<int64_t>(item.chunk.slots.size() - (chunk.slots.size() - before));
}

Status StreamLearner::settle() {
  for (auto& thread : threads_) {
    LearnerTotals done;
    STREAMVEC_RETURN_IF_ERROR(settle(*thread, done));
    const std::lock_guard lock(mutex_);
    totals_ += done;
  }
  return {};
}

Status StreamLearner::settle(Thread& thread, LearnerTotals& done) {
  STREAMVEC_RETURN_IF_ERROR(thread.started);
  STREAMVEC_ASSIGN_OR_RETURN(const StepStats rest, thread.worker->settle());
  for (const auto& half : thread.half_workers)
    if (half != nullptr) STREAMVEC_RETURN_IF_ERROR(half->settle().status());
  if (options_.priority != ReplayPriority::kNone) update_priorities(thread);
  count(rest, done);
  return {};
}

// All chunks of the batch as one, those that are new apart: blocks of pairs are filled across chunks then.
LearnerTotals StreamLearner::learn_together(Thread& thread, Random& random) {
  LearnerTotals done;
  thread.chunk.clear();
  thread.fresh.clear();
  for (const ReplaySample& sample : thread.samples)
    append(*sample.item, sample.times_sampled == 0 ? thread.fresh : thread.chunk, done.stale_tokens);
  const auto tables = parts_.tables.tables();
  if (tables == nullptr) return done;
  for (const Chunk* chunk : {&thread.fresh, &thread.chunk}) {
    if (chunk->slots.empty()) continue;
    done.tokens += static_cast<int64_t>(chunk->slots.size());
    const ChunkNote note{.fresh = chunk == &thread.fresh, .name = {}};
    count(thread.worker->step_noted(*chunk, *tables, options_.lr, random, note), done);
  }
  return done;
}

// Each chunk by itself, with steps as long as its importance says; what it was like becomes its priority, on a card
// some batches later.
LearnerTotals StreamLearner::learn_singly(Thread& thread, Random& random) {
  LearnerTotals done;
  const auto tables = parts_.tables.tables();
  if (tables == nullptr) return done;
  for (const ReplaySample& sample : thread.samples) {
    thread.chunk.clear();
    append(*sample.item, thread.chunk, done.stale_tokens);
    if (thread.chunk.slots.empty()) continue;
    const ChunkNote note{.fresh = sample.times_sampled == 0, .name = sample.key};
    done.tokens += static_cast<int64_t>(thread.chunk.slots.size());
    count(thread.worker->step_noted(thread.chunk, *tables, options_.lr * sample.importance, random, note), done);
  }
  update_priorities(thread);
  return done;
}

void StreamLearner::update_priorities(Thread& thread) {
  thread.keys.clear();
  thread.priorities.clear();
  for (const ChunkStats& chunk : thread.worker->told()) {
    if (chunk.pairs == 0) continue;
    const double value = options_.priority == ReplayPriority::kLoss ? chunk.loss : chunk.slope;
    thread.keys.push_back(chunk.name);
    thread.priorities.push_back(static_cast<float>(value / static_cast<double>(chunk.pairs)));
  }
  parts_.replay.update_priorities(thread.keys, thread.priorities);
}

void StreamLearner::learn_halves(Thread& thread, Random& random) {
  const auto tables = parts_.tables.tables();
  if (tables == nullptr) return;
  int64_t ignored = 0;
  for (int half = 0; half < 2; ++half) {
    thread.chunk.clear();
    for (const ReplaySample& sample : thread.samples)
      if (half_of(*sample.item) == half) append(*sample.item, thread.chunk, ignored);
    if (!thread.chunk.slots.empty()) thread.half_workers[half]->step(thread.chunk, *tables, options_.lr, random);
  }
}

}  // namespace streamvec
