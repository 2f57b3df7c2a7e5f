#include "streamvec/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "streamvec/ingest/open.h"
#include "streamvec/model/model.h"
#include "streamvec/optim/schedule.h"
#include "streamvec/text/word_filter.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/glove_trainer.h"
#include "streamvec/train/pacer.h"
#include "streamvec/train/run_state.h"
#include "streamvec/train/slot_mapper.h"
#include "streamvec/train/stream_trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {
namespace {

using Clock = std::chrono::steady_clock;

// Keeps the draws of training apart from those of the first rows, which use the same seed.
constexpr uint64_t kTrainingDraws = 1;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TrainProgress nothing_done(std::string note) {
  TrainProgress nothing;
  nothing.notes = {std::move(note)};
  return nothing;
}

// The run itself: workers over a feed, watched by the calling thread.
class Training {
 public:
  // Of a cluster only the first node writes; the others have no writer.
  Training(TrainingStart start, std::optional<CheckpointWriter> writer, const TrainOptions& options,
           const TrainHooks& hooks)
      : start_(std::move(start)),
        writer_(std::move(writer)),
        options_(options),
        hooks_(hooks),
        feed_(*start_.source, options.epochs, start_.state, options.cluster.rank,
              options.cluster.on() ? options.cluster.workers() : 1) {}

  Result<TrainProgress> run() {
    STREAMVEC_RETURN_IF_ERROR(make_workers());
    if (options_.cluster.on()) {
      STREAMVEC_ASSIGN_OR_RETURN(node_, join_cluster(options_, start_));
      STREAMVEC_ASSIGN_OR_RETURN(const bool all_are_there, node_->await_start(hooks_.stop));
      if (!all_are_there) return nothing_done("stopped while other nodes were awaited; nothing was changed");
    }
    if (options_.cluster.rank >= options_.cluster.workers() && node_ != nullptr) return serve_rows();
    const Clock::time_point begin = Clock::now();
    std::vector<std::thread> threads;
    for (auto& worker : workers_) threads.emplace_back([&] { work(*worker); });
    Status watched = watch(begin);
    for (std::thread& thread : threads) thread.join();
    STREAMVEC_RETURN_IF_ERROR(watched);
    const bool finished = feed_.state().epoch >= options_.epochs;
    if (finished) start_.own->finish(start_.parameters);
    const Status parted = part(begin);
    RunState state = state_now(begin);
    state.finished = finished && parted.ok();
    STREAMVEC_RETURN_IF_ERROR(save(state));
    STREAMVEC_RETURN_IF_ERROR(parted);
    if (Status failed = feed_.status(); !failed.ok())
      return Status(failed.code(), failed.message() + "; what was learnt before is saved");
    return progress(state, state.mean_loss());
  }

 private:
  Status make_workers() {
    const ModelOptions model = model_options(options_, start_.model, start_.threads);
    for (int32_t i = 0; i < worker_count(model); ++i) {
      STREAMVEC_ASSIGN_OR_RETURN(workers_.emplace_back(), make_model_worker(model, start_.parameters));
    }
    STREAMVEC_ASSIGN_OR_RETURN(mapper_, start_.make_mapper(options_));
    return {};
  }

  void work(ModelWorker& worker) {
    Tokenizer tokenizer(options_.tokenizer);
    Tokens tokens;
    Chunk chunk;
    Piece piece;
    while (feed_.next(piece)) {
      tokenizer.tokenize(piece.document.text, tokens);
      PieceResult result;
      result.tokens = static_cast<int64_t>(tokens.words.size());
      result.bytes_replaced = tokens.bytes_replaced;
      result.words_dropped = tokens.words_dropped;
      const auto lr = static_cast<float>(scheduled_rate(start_.schedule, start_.lr, piece.fraction));
      if (const auto tables = mapper_->map(tokens, chunk); tables != nullptr) {
        Random random(mix(options_.seed, kTrainingDraws, piece.step));
        const StepStats stats = worker.step(chunk, *tables, lr, random);
        result.pairs = stats.pairs;
        result.loss = stats.loss;
        result.refused = stats.refused;
      }
      feed_.finish(piece, result);
      if (node_ != nullptr && !node_->trained(result.tokens, lr).ok()) feed_.stop();
    }
  }

  // A node that only owns rows: there until everybody has finished.
  Result<TrainProgress> serve_rows() {
    STREAMVEC_RETURN_IF_ERROR(node_->finish({}).status());
    return progress(start_.state, 0);
  }

  // Leaves the cluster once all have finished. The first node then speaks for all of them.
  Status part(Clock::time_point begin) {
    if (node_ == nullptr) return {};
    const RunState own = state_now(begin);
    const Result<TrainedTotals> all = node_->finish({own.tokens, own.pairs, own.loss, own.loss_pairs});
    if (!all.ok()) return all.status();
    if (options_.cluster.rank == 0) all_ = *all;
    return {};
  }

  // Reports, saves and stops in time. Returns an error when a save in the middle failed; the workers have stopped then.
  Status watch(Clock::time_point begin) {
    Pacer pacer;
    Clock::time_point saved = begin;
    while (!feed_.over()) {
      const bool report = pacer.wait([&](std::chrono::milliseconds most) { feed_.await_over(most); });
      if (hooks_.stop != nullptr && hooks_.stop->load()) feed_.stop();
      if (report && hooks_.progress) report_progress(begin);
      const double every_s = options_.checkpoint_every_s.value_or(0);
      if (every_s <= 0 || seconds_since(saved) < every_s) continue;
      const Status status = save_in_the_middle(begin);
      saved = Clock::now();
      if (!status.ok()) {
        feed_.stop();
        return status;
      }
    }
    return {};
  }

  void report_progress(Clock::time_point begin) {
    const RunState state = state_now(begin);
    const bool same_epoch = state.epoch == reported_.epoch && state.loss_pairs > reported_.loss_pairs;
    const double loss =
        same_epoch ? (state.loss - reported_.loss) / (state.loss_pairs - reported_.loss_pairs) : state.mean_loss();
    hooks_.progress(progress(state, loss));
    reported_ = state;
  }

  Status save_in_the_middle(Clock::time_point begin) {
    feed_.pause();
    const RunState state = state_now(begin);
    const Clock::time_point stopped = Clock::now();
    const Status status = save(state);
    seconds_saving_ += seconds_since(stopped);
    feed_.resume();
    return status;
  }

  RunState state_now(Clock::time_point begin) const {
    RunState state = feed_.state();
    state.seconds = start_.state.seconds + seconds_since(begin) - seconds_saving_;
    return state;
  }

  Status save(const RunState& state) {
    if (!writer_) return {};
    CheckpointContent content{.step = state.step,
                              .model = start_.model,
                              .vocabulary = mapper_->vocabulary(),
                              .input = start_.parameters.input.rows.view(),
                              .output = start_.parameters.output.rows.view(),
                              .optimizer = optimizer_tables(start_.parameters),
                              .state = {{"run", start_.description}, {"progress", to_json(state)}},
                              .cursors = {{"sources", start_.source->saved(state.cursor)}}};
    const std::string growing = mapper_->state();
    if (!growing.empty())
      content.extra.push_back({kVocabularyState, [&growing](const auto& sink) { return sink(growing); }});
    STREAMVEC_RETURN_IF_ERROR(start_.own->add_to(content, start_.parameters));
    return writer_->save(content);
  }

  TrainProgress progress(const RunState& state, double loss) const {
    TrainProgress progress = start_.progress(state, loss, options_.epochs);
    progress.fraction = state.fraction(options_.epochs);
    progress.lr = scheduled_rate(start_.schedule, start_.lr, progress.fraction);
    progress.kernel = workers_.front()->kernel_name();
    if (all_) {
      progress.tokens = all_->tokens;
      progress.pairs = all_->pairs;
      progress.loss = all_->loss_pairs > 0 ? all_->loss / static_cast<double>(all_->loss_pairs) : 0;
    }
    if (node_ != nullptr) {
      const ClusterStats cluster = node_->stats();
      progress.nodes = cluster.nodes;
      progress.pushes = cluster.pushes;
      progress.bytes_sent = cluster.bytes_sent;
      progress.bytes_received = cluster.bytes_received;
      progress.waiting_s = cluster.waiting_s;
      progress.talking_s = cluster.talking_s;
      progress.finishing_s = cluster.finishing_s;
      progress.rows_pushed = cluster.rows_pushed;
    }
    return progress;
  }

  TrainingStart start_;
  std::optional<CheckpointWriter> writer_;
  const TrainOptions& options_;
  const TrainHooks& hooks_;
  Feed feed_;
  std::unique_ptr<SlotMapper> mapper_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
  std::unique_ptr<ClusterNode> node_;  // before what it borrows goes
  std::optional<TrainedTotals> all_;   // of the whole cluster, at the end
  RunState reported_;
  double seconds_saving_ = 0;
};

bool any_endless(const std::vector<std::unique_ptr<Source>>& sources) {
  return std::any_of(sources.begin(), sources.end(), [](const auto& source) { return source->capabilities().endless; });
}

bool all_replayable(const std::vector<std::unique_ptr<Source>>& sources) {
  return std::all_of(sources.begin(), sources.end(),
                     [](const auto& source) { return source->capabilities().replayable; });
}

// With the defaults that depend on what is trained filled in.
TrainOptions settled(TrainOptions options, const std::string& model, bool read_again) {
  constexpr int32_t kGloveEpochs = 15;
  if (options.epochs == 0) options.epochs = model == "glove" && read_again ? kGloveEpochs : 1;
  return options;
}

}  // namespace

Result<TrainProgress> train(const TrainOptions& given, const std::vector<std::string>& sources, const std::string& out,
                            const TrainHooks& hooks) {
  STREAMVEC_RETURN_IF_ERROR(check_options(given));
  STREAMVEC_ASSIGN_OR_RETURN(auto opened, open_each(sources));
  STREAMVEC_RETURN_IF_ERROR(check_cluster(given));
  std::optional<CheckpointWriter> writer;
  if (given.cluster.rank == 0) {
    STREAMVEC_ASSIGN_OR_RETURN(writer, CheckpointWriter::open(out));
  }
  STREAMVEC_ASSIGN_OR_RETURN(std::optional<Checkpoint> existing, load_existing(out));
  if (existing) STREAMVEC_RETURN_IF_ERROR(check_same(given, *existing, out));
  const std::string model = existing ? existing->model : given.model.value_or("sgns");
  const bool stream = given.stream.on || any_endless(opened);
  const bool read_again = !stream && all_replayable(opened);
  const TrainOptions options = settled(given, model, read_again);
  if (stream)
    return train_stream(options, std::move(opened), sources, std::move(*writer), out, std::move(existing), hooks);
  const nlohmann::json position = existing ? existing->state.value(kGlovePosition, nlohmann::json()) : nlohmann::json();
  STREAMVEC_ASSIGN_OR_RETURN(TrainingStart start,
                             prepare(options, sources, chained(std::move(opened)), out, std::move(existing), hooks));
  if (start.cancelled) return nothing_done("stopped while the vocabulary was counted; nothing was changed");
  if (model == "glove" && read_again)
    return train_glove(std::move(start), options, std::move(*writer), out, position, hooks);
  if (options.cluster.on() && start.state.epoch_tokens > 0) start.state.epoch_tokens /= options.cluster.workers();
  return Training(std::move(start), std::move(writer), options, hooks).run();
}

}  // namespace streamvec
