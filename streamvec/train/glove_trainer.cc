#include "streamvec/train/glove_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "streamvec/core/clock.h"
#include "streamvec/core/threads.h"
#include "streamvec/model/glove.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/live_snapshot.h"
#include "streamvec/train/pacer.h"
#include "streamvec/train/run_state.h"
#include "streamvec/train/tile_feed.h"

namespace streamvec {
namespace {

using nlohmann::json;

// Keeps the draws of training apart from those of the first rows, which use the same seed.
constexpr uint64_t kTileDraws = 4;

class GloveTraining {
 public:
  GloveTraining(TrainingStart start, const TrainOptions& options, CheckpointWriter writer, std::string out,
                const TrainHooks& hooks)
      : start_(std::move(start)), options_(options), writer_(std::move(writer)), out_(std::move(out)), hooks_(hooks) {}

  // False when it was stopped meanwhile.
  Result<bool> count() {
    STREAMVEC_ASSIGN_OR_RETURN(mapper_, start_.make_mapper(options_));
    STREAMVEC_ASSIGN_OR_RETURN(kernel_, parse_glove_kernel(options_.kernel));
    const Clock::time_point begin = Clock::now();
    STREAMVEC_RETURN_IF_ERROR(start_.source->seek(""));
    Feed feed(*start_.source, 1, RunState());
    std::vector<CellCounter> counters = make_counters();
    STREAMVEC_ASSIGN_OR_RETURN(const bool whole, count_with(feed, counters));
    if (!whole) return false;
    const RunState counted = feed.state();
    start_.state.tokens = counted.tokens;
    start_.state.bytes_replaced = counted.bytes_replaced;
    start_.state.words_dropped = counted.words_dropped;
    STREAMVEC_ASSIGN_OR_RETURN(CellStore store, CellStore::merge(std::move(counters), result_bytes(), out_));
    store_ = std::move(store);
    std::ostringstream note;
    note.precision(3);
    note << "counted " << store_.cells() << " co-occurrences in " << seconds_since(begin) << " s";
    start_.notes.push_back(note.str());
    if (store_.cells() > 0) return true;
    return error(Code::kInvalidArgument, start_.source->name(), " has no two words of the vocabulary in one line; try ",
                 "--min-count 1 or more text");
  }

  Result<TrainProgress> run(const json& position) {
    begin_feed(position);
    const Clock::time_point begin = Clock::now();
    Threads threads;
    const Status started = threads.start(start_.threads, [this](int64_t) { work(); });
    if (!started.ok()) feed_->stop();
    const Status watched = watch(begin);
    threads.join();
    STREAMVEC_RETURN_IF_ERROR(started);
    STREAMVEC_RETURN_IF_ERROR(watched);
    show_.show([&] { return copy_now(); });
    RunState state = state_now(begin);
    state.finished = state.epoch >= options_.epochs;
    STREAMVEC_RETURN_IF_ERROR(save(state));
    if (const Status failed = feed_->status(); !failed.ok())
      return Status(failed.code(), failed.message() + "; what was learnt before is saved");
    return progress(state, state.mean_loss());
  }

 private:
  // Tables of the counters and, beside them, the finished matrix: a cell of 16 bytes becomes one of 6, and a quarter or
  // more of a table is empty. Where counters had to write runs the finished matrix has all memory to itself.
  int64_t memory_bytes() const { return options_.glove.memory_mb << 20; }
  int64_t result_bytes() const { return any_runs_ ? memory_bytes() : memory_bytes() / 4; }

  std::vector<CellCounter> make_counters() const {
    CellCounter::Options options;
    options.window = options_.window;
    options.memory_bytes = memory_bytes() / 4 * 3 / start_.threads;
    options.dir = out_;
    std::vector<CellCounter> counters;
    for (int32_t i = 0; i < start_.threads; ++i) counters.emplace_back(options);
    return counters;
  }

  Result<bool> count_with(Feed& feed, std::vector<CellCounter>& counters) {
    Status failed;
    std::mutex mutex;
    Threads threads;
    const Status started = threads.start(start_.threads, [&](int64_t i) {
      const Status status = count_pieces(feed, counters[static_cast<size_t>(i)]);
      if (status.ok()) return;
      const std::lock_guard lock(mutex);
      failed = status;
      feed.stop();
    });
    if (!started.ok()) feed.stop();
    bool stopped = false;
    Pacer pacer;
    while (!feed.over()) {
      if (hooks_.stop != nullptr && hooks_.stop->load()) {
        stopped = true;
        feed.stop();
      }
      if (pacer.wait() && hooks_.counting) hooks_.counting(feed.state().tokens, feed.bytes_fraction());
    }
    threads.join();
    STREAMVEC_RETURN_IF_ERROR(started);
    STREAMVEC_RETURN_IF_ERROR(failed);
    STREAMVEC_RETURN_IF_ERROR(feed.status());
    any_runs_ = std::any_of(counters.begin(), counters.end(), [](const CellCounter& one) { return one.runs() > 0; });
    return !stopped;
  }

  Status count_pieces(Feed& feed, CellCounter& counter) {
    Tokenizer tokenizer(options_.tokenizer);
    Tokens tokens;
    Chunk chunk;
    Piece piece;
    Status status;
    while (status.ok() && feed.next(piece)) {
      tokenizer.tokenize(piece.document.text, tokens);
      PieceResult result;
      result.tokens = static_cast<int64_t>(tokens.words.size());
      result.bytes_replaced = tokens.bytes_replaced;
      result.words_dropped = tokens.words_dropped;
      mapper_->map(tokens, chunk);
      status = counter.add(chunk);
      feed.finish(piece, result);
    }
    return status;
  }

  void begin_feed(const json& position) {
    int64_t tiles_done = 0;
    if (start_.state.pairs > 0 && !position.is_null()) {
      if (position.value("fingerprint", "") == fingerprint()) {
        tiles_done = position.value("tiles", int64_t{0});
      } else {
        RunState anew;
        anew.step = start_.state.step;
        anew.tokens = start_.state.tokens;
        start_.state = anew;
        start_.notes.push_back("the text of the stopped run in " + out_ +
                               " has changed; its vectors go on with all iterations over what it is now");
      }
    }
    feed_.emplace(store_, options_.epochs, options_.seed, start_.state, tiles_done);
  }

  std::string fingerprint() const { return Checksum::to_text(store_.fingerprint()); }

  void work() {
    GloveTrainer trainer(start_.parameters, kernel_);
    TilePiece piece;
    while (feed_->next(piece)) {
      Random random(mix(options_.seed, kTileDraws, static_cast<uint64_t>(piece.epoch), piece.tile));
      const auto stats =
          trainer.step(store_, store_.tiles()[static_cast<size_t>(piece.tile)], static_cast<float>(start_.lr), random);
      if (stats.ok())
        feed_->finish(piece, *stats);
      else
        feed_->fail(stats.status());
    }
  }

  // Reports, saves and stops in time. Returns an error when a save in the middle failed; the threads have stopped then.
  Status watch(Clock::time_point begin) {
    Pacer pacer;
    Clock::time_point saved = begin;
    while (!feed_->over()) {
      const bool report = pacer.wait();
      if (hooks_.stop != nullptr && hooks_.stop->load()) feed_->stop();
      if (report && hooks_.progress) {
        const RunState state = state_now(begin);
        hooks_.progress(progress(state, state.mean_loss()));
      }
      show_.show_if_due([&] { return copy_paused(); });
      const double every_s = options_.checkpoint_every_s.value_or(0);
      if (every_s <= 0 || seconds_since(saved) < every_s) continue;
      const Status status = save_in_the_middle(begin);
      saved = Clock::now();
      if (!status.ok()) {
        feed_->stop();
        return status;
      }
    }
    return {};
  }

  Result<Snapshot> copy_now() {
    return copy_model(start_.model, feed_->state().step, start_.vocabulary, *start_.own, start_.parameters);
  }
  Result<Snapshot> copy_paused() {
    feed_->pause();
    auto copy = copy_now();
    feed_->resume();
    return copy;
  }

  Status save_in_the_middle(Clock::time_point begin) {
    feed_->pause();
    const Clock::time_point stopped = Clock::now();
    const Status status = save(state_now(begin));
    seconds_saving_ += seconds_since(stopped);
    feed_->resume();
    return status;
  }

  RunState state_now(Clock::time_point begin) const {
    RunState state = feed_->state();
    state.seconds = start_.state.seconds + seconds_since(begin) - seconds_saving_;
    return state;
  }

  Status save(const RunState& state) {
    const json position = {{"tiles", feed_->tiles_done()}, {"cells", store_.cells()}, {"fingerprint", fingerprint()}};
    CheckpointContent content{
        .step = state.step,
        .model = start_.model,
        .vocabulary = mapper_->vocabulary(),
        .input = start_.parameters.input.rows.view(),
        .output = start_.parameters.output.rows.view(),
        .optimizer = {},
        .state = {{"run", start_.description}, {"progress", to_json(state)}, {kGlovePosition, position}},
        .cursors = start_.cursors_at("")};
    STREAMVEC_RETURN_IF_ERROR(start_.own->add_to(content, start_.parameters));
    return writer_.save(content);
  }

  TrainProgress progress(const RunState& state, double loss) const {
    TrainProgress progress = start_.progress(state, loss, options_.epochs);
    progress.fraction = feed_->fraction();
    progress.tokens = std::llround(static_cast<double>(state.tokens) * options_.epochs * progress.fraction);
    progress.lr = start_.lr;
    progress.kernel = glove_kernel_name(kernel_);
    return progress;
  }

  TrainingStart start_;
  const TrainOptions& options_;
  CheckpointWriter writer_;
  const std::string out_;
  const TrainHooks& hooks_;
  GloveKernel kernel_ = GloveKernel::kSimd;
  std::unique_ptr<SlotMapper> mapper_;
  bool any_runs_ = false;
  CellStore store_;
  std::optional<TileFeed> feed_;
  SnapshotShow show_{hooks_};
  double seconds_saving_ = 0;
};

}  // namespace

Result<TrainProgress> train_glove(TrainingStart start, const TrainOptions& options, CheckpointWriter writer,
                                  const std::string& out, const json& position, const TrainHooks& hooks) {
  GloveTraining training(std::move(start), options, std::move(writer), out, hooks);
  STREAMVEC_ASSIGN_OR_RETURN(const bool counted, training.count());
  if (counted) return training.run(position);
  TrainProgress nothing;
  nothing.notes = {"stopped while co-occurrences were counted; nothing was changed"};
  return nothing;
}

}  // namespace streamvec
