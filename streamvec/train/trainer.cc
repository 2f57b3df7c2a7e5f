#include "streamvec/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "streamvec/core/clock.h"
#include "streamvec/core/threads.h"
#include "streamvec/ingest/open.h"
#include "streamvec/model/model.h"
#include "streamvec/optim/schedule.h"
#include "streamvec/text/word_filter.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/checkpoint_directory.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/columns_trainer.h"
#include "streamvec/train/device_choice.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/glove_trainer.h"
#include "streamvec/train/live_snapshot.h"
#include "streamvec/train/pacer.h"
#include "streamvec/train/run_state.h"
#include "streamvec/train/sandblaster_trainer.h"
#include "streamvec/train/shard_start.h"
#include "streamvec/train/slot_mapper.h"
#include "streamvec/train/source_division.h"
#include "streamvec/train/stream_trainer.h"
#include "streamvec/train/taking_over.h"
#include "streamvec/train/training_start.h"

namespace streamvec {
namespace {

// What came of pieces of text besides training, for those that are trained on again without being read. Thread-safe.
class KeptPieces {
 public:
  void add(uint64_t key, const PieceResult& result) {
    const std::lock_guard lock(mutex_);
    results_[key] = result;
  }
  PieceResult find(uint64_t key) const {
    const std::lock_guard lock(mutex_);
    const auto found = results_.find(key);
    return found != results_.end() ? found->second : PieceResult();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, PieceResult> results_;
};

// The run itself: workers over a feed, watched by the calling thread.
class Training {
 public:
  // Of a cluster only the first node writes; the others have no writer, unless they come to lead.
  Training(TrainingStart start, std::optional<CheckpointWriter> writer, std::string out, const TrainOptions& options,
           const TrainHooks& hooks)
      : start_(std::move(start)),
        writer_(std::move(writer)),
        out_(std::move(out)),
        options_(options),
        hooks_(hooks),
        feed_(*start_.source, options.epochs, start_.state) {}

  Result<TrainProgress> run() {
    if (is_sharded(options_)) {
      STREAMVEC_ASSIGN_OR_RETURN(auto shards, join_shards(options_, start_));
      shards_ = shards.get();
      node_ = std::move(shards);
    }
    STREAMVEC_RETURN_IF_ERROR(make_workers());
    if (options_.cluster.on()) {
      if (node_ == nullptr) {
        STREAMVEC_ASSIGN_OR_RETURN(node_, join_cluster(options_, start_));
      }
      STREAMVEC_ASSIGN_OR_RETURN(const bool all_are_there, node_->await_start(hooks_.stop));
      if (!all_are_there) return nothing_done("stopped while other nodes were awaited; nothing was changed");
    }
    if (options_.cluster.rank >= options_.cluster.workers() && node_ != nullptr) return serve_rows();
    if (PieceQueue* pieces = node_ != nullptr ? node_->pieces() : nullptr)
      feed_.follow(*pieces, start_.epoch_pieces, start_.first_piece, std::move(start_.trail));
    else
      feed_.leave_out_text([this] { return workers_.front()->keeps_all(); });
    const Clock::time_point begin = Clock::now();
    Threads threads;
    const Status started = threads.start(static_cast<int64_t>(workers_.size()),
                                         [this](int64_t i) { work(*workers_[static_cast<size_t>(i)]); });
    if (!started.ok()) feed_.stop();
    Status watched = watch(begin);
    threads.join();
    STREAMVEC_RETURN_IF_ERROR(started);
    STREAMVEC_RETURN_IF_ERROR(watched);
    STREAMVEC_RETURN_IF_ERROR(settle());
    const Status parted = part();
    // Of text that is handed out, as far as all have trained on it.
    const bool finished = feed_.whole_state().epoch >= options_.epochs && (node_ == nullptr || !node_->text_stopped());
    if (finished && writes()) start_.own->finish(start_.parameters);
    if (shards_ == nullptr) show_.show([&] { return copy_now(); });
    RunState state = state_now(begin);
    const bool all_finished = finished && parted.ok();
    if (parted.code() == Code::kAborted) return parted;  // another node leads: the model is that one's to write
    STREAMVEC_RETURN_IF_ERROR(save(begin, all_finished));
    STREAMVEC_RETURN_IF_ERROR(parted);
    if (node_ != nullptr && node_->leads()) node_->saved();
    if (Status failed = feed_.status(); !failed.ok())
      return mapper_->slots() > 0 ? Status(failed.code(), failed.message() + "; what was learnt before is saved")
                                  : failed;
    const bool stopped = hooks_.stop != nullptr && hooks_.stop->load();
    if (mapper_->slots() == 0 && !stopped) return no_word(start_.source->name(), state.tokens, options_.min_count);
    return progress(state, state.mean_loss());
  }

 private:
  Status make_workers() {
    ModelOptions model = model_options(options_, start_.model, start_.threads);
    model.words = std::max<int64_t>(start_.state.epoch_tokens, 0) * options_.epochs / training_nodes();
    model.nodes = training_nodes();
    for (int32_t i = 0; i < worker_count(model); ++i) {
      STREAMVEC_ASSIGN_OR_RETURN(workers_.emplace_back(),
                                 shards_ != nullptr
                                     ? make_sharded_sgns_worker(sharded_options(options_, model, start_), *shards_)
                                     : make_model_worker(model, start_.parameters));
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
      const auto lr = static_cast<float>(scheduled_rate(start_.schedule, start_.lr, piece.fraction));
      Random random = draws_of(piece, options_.seed);
      const uint64_t key = std::hash<std::string>()(piece.document.cursor);
      PieceResult result;
      std::optional<CrewVisit> visit(start_.parameters.crew.get());
      if (const auto again = worker.step_again(key, lr, random)) {
        result = kept_.find(key);
        count(*again, result);
      } else {
        tokenizer.tokenize(piece.document.text, tokens);
        result = read_result(tokens);
        const auto tables = mapper_->map(tokens, chunk);
        const bool keep = !start_.growing && piece.epoch + 1 < options_.epochs;
        if (keep) kept_.add(key, result);
        if (tables != nullptr)
          count(keep ? worker.step_and_keep(chunk, *tables, lr, random, key) : worker.step(chunk, *tables, lr, random),
                result);
      }
      visit.reset();
      feed_.finish(piece, result);
      if (worker.failed()) feed_.stop();
      if (node_ != nullptr && !node_->trained(result.tokens, lr).ok()) feed_.stop();
    }
  }

  static void count(const StepStats& stats, PieceResult& result) {
    result.pairs = stats.pairs;
    result.loss = stats.loss;
    result.refused = stats.refused;
  }

  // Nodes that train.
  int32_t training_nodes() const { return options_.cluster.on() ? options_.cluster.workers() : 1; }

  // Of a cluster one node writes: what only it saves, only it has to make.
  bool writes() const { return writer_.has_value(); }

  // What workers have begun is finished and counted; no thread trains meanwhile.
  Status settle() {
    for (const auto& worker : workers_) {
      STREAMVEC_ASSIGN_OR_RETURN(const StepStats stats, worker->settle());
      PieceResult rest;
      count(stats, rest);
      feed_.add(rest);
    }
    return {};
  }

  // A node that only owns rows: there until everybody has finished.
  Result<TrainProgress> serve_rows() {
    STREAMVEC_RETURN_IF_ERROR(shards_ != nullptr ? shards_->serve(hooks_.stop) : node_->finish({}).status());
    return progress(start_.state, 0);
  }

  // Leaves the cluster once all have finished, and one has written what they learnt. That one speaks for all of them.
  Status part() {
    if (node_ == nullptr) return {};
    STREAMVEC_ASSIGN_OR_RETURN(TrainedTotals all, node_->finish(feed_.own()));
    if (!node_->leads()) {
      STREAMVEC_RETURN_IF_ERROR(node_->await_saved());
      if (!node_->leads()) return {};
      STREAMVEC_ASSIGN_OR_RETURN(all, node_->finish(feed_.own()));  // now as the leader's
    }
    all_ = all;
    return take_over(*node_, options_.cluster.dead_after_s, [this]() -> Result<bool> {
      STREAMVEC_RETURN_IF_ERROR(write_if_leading());
      return writes();
    });
  }

  // The leader's place, and with it the directory, may come to this node at any time.
  Status write_if_leading() {
    if (writes() || node_ == nullptr || !node_->holds_lead()) return {};
    STREAMVEC_ASSIGN_OR_RETURN(writer_, CheckpointWriter::open(out_, options_.cluster.job));
    succeeds_ = true;
    return {};
  }

  // Another node has led before this one, and has written what was known to be finished there: not all of that has to
  // be known here by now.
  bool is_written_further(const RunState& state) const {
    const auto found = succeeds_ ? list_checkpoints(out_) : std::vector<CheckpointPath>();
    return found.ok() && !found->empty() && found->front().step > state.step;
  }

  // Reports, saves and stops in time. Returns an error when a save in the middle failed; the workers have stopped then.
  Status watch(Clock::time_point begin) {
    Pacer pacer;
    Clock::time_point saved = begin;
    while (!feed_.over()) {
      const bool report = pacer.wait([&](std::chrono::milliseconds most) { feed_.await_over(most); });
      if (hooks_.stop != nullptr && hooks_.stop->load()) stop();
      if (shards_ != nullptr && !shards_->leads()) stand_still_if_wanted();
      if (report && hooks_.progress) report_progress(begin);
      if (shards_ == nullptr) show_.show_if_due([&] { return copy_now(); });
      Status status = write_if_leading();
      const double every_s = options_.checkpoint_every_s.value_or(0);
      const bool others_save = shards_ != nullptr && !shards_->leads();  // and this node stands still for it
      if (status.ok() && (every_s <= 0 || others_save || seconds_since(saved) < every_s)) continue;
      if (status.ok()) status = save_in_the_middle(begin);
      saved = Clock::now();
      if (!status.ok()) {
        feed_.stop();
        return status;
      }
    }
    return {};
  }

  void stop() {
    // Where a node that stops cannot be done without, all do.
    if (node_ != nullptr && (node_->leads() || shards_ != nullptr)) node_->stop_text();
    feed_.stop();
  }

  // For a checkpoint of the node that leads. What it fails with, training does, too.
  void stand_still_if_wanted() {
    if (!shards_->halt_wanted()) return;
    feed_.pause();
    if (!shards_->halt().ok()) feed_.stop();
    feed_.resume();
  }

  void report_progress(Clock::time_point begin) {
    const RunState state = state_now(begin);
    const bool same_epoch = state.epoch == reported_.epoch && state.loss_pairs > reported_.loss_pairs;
    const double loss =
        same_epoch ? (state.loss - reported_.loss) / (state.loss_pairs - reported_.loss_pairs) : state.mean_loss();
    hooks_.progress(progress(timed(feed_.state_of_all(), begin), loss));
    reported_ = state;
  }

  Status save_in_the_middle(Clock::time_point begin) {
    feed_.pause();
    if (Status settled = settle(); !settled.ok()) {
      feed_.resume();
      return settled;
    }
    const Clock::time_point stopped = Clock::now();
    Status status = shards_ != nullptr ? shards_->halt_all() : Status();
    if (status.ok()) status = save(begin, false);
    if (shards_ != nullptr) shards_->go_on();
    seconds_saving_ += seconds_since(stopped);
    feed_.resume();
    return status;
  }

  // A vocabulary that grows stands still meanwhile, so that each row is its word's.
  Result<Snapshot> copy_now() {
    if (start_.growing) feed_.pause();
    auto copy = copy_model(start_.model, feed_.state().step, mapper_->vocabulary(), *start_.own, start_.parameters);
    if (start_.growing) feed_.resume();
    return copy;
  }

  RunState state_now(Clock::time_point begin) const { return timed(feed_.state(), begin); }

  RunState timed(RunState state, Clock::time_point begin) const {
    state.seconds = start_.state.seconds + seconds_since(begin) - seconds_saving_;
    return state;
  }

  Status save(Clock::time_point begin, bool finished) {
    if (!writer_ || mapper_->slots() == 0) return {};  // a vocabulary that grows may have none: there is no model
    RunState state = timed(feed_.whole_state(), begin);
    state.finished = finished;
    if (!finished && is_written_further(state)) return {};
    STREAMVEC_RETURN_IF_ERROR(start_.parameters.fetch_rows());
    TablesInFiles whole;
    if (shards_ != nullptr) {
      STREAMVEC_ASSIGN_OR_RETURN(whole,
                                 gather_tables(*shards_, start_.vocabulary.size(), start_.parameters.dim(), out_));
      shards_->go_on();  // nobody waits for the disk
    }
    CheckpointContent content{
        .step = state.step,
        .model = start_.model,
        .vocabulary = mapper_->vocabulary(),
        .input = shards_ ? whole.input.view() : std::as_const(start_.parameters.input.rows).view(),
        .output = shards_ ? whole.output.view() : std::as_const(start_.parameters.output.rows).view(),
        .optimizer = optimizer_tables(start_.parameters),
        .state = {{"run", start_.description}, {"progress", to_json(state)}},
        .cursors = start_.cursors_at(state.cursor)};
    const std::string growing = mapper_->state();
    if (!growing.empty())
      content.extra.push_back({kVocabularyState, [&growing](const auto& sink) { return sink(growing); }});
    STREAMVEC_RETURN_IF_ERROR(start_.own->add_to(content, start_.parameters));
    Status saved = writer_->save(content);
    if (saved.code() != Code::kAborted || node_ == nullptr || !node_->holds_lead()) return saved;
    // One that led before, and was stopped, has taken for its own what is ours.
    writer_.reset();
    STREAMVEC_RETURN_IF_ERROR(write_if_leading());
    return writes() ? writer_->save(content) : saved;
  }

  TrainProgress progress(const RunState& state, double loss) const {
    TrainProgress progress = start_.progress(state, loss, options_.epochs);
    progress.vocab = mapper_->slots();
    progress.fraction = feed_.fraction();
    progress.lr = scheduled_rate(start_.schedule, start_.lr, progress.fraction);
    progress.kernel = workers_.front()->kernel_name();
    if (all_) {
      progress.tokens = all_->tokens;
      progress.pairs = all_->pairs;
      progress.loss = all_->loss_pairs > 0 ? all_->loss / static_cast<double>(all_->loss_pairs) : 0;
    }
    if (node_ != nullptr) add_cluster(node_->stats(), progress);
    return progress;
  }

  TrainingStart start_;
  std::optional<CheckpointWriter> writer_;
  const std::string out_;
  const TrainOptions& options_;
  const TrainHooks& hooks_;
  Feed feed_;
  std::unique_ptr<SlotMapper> mapper_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
  std::unique_ptr<Synchronizer> node_;  // before what it borrows goes
  ShardNode* shards_ = nullptr;         // the same, where tables are shared out
  bool succeeds_ = false;               // to another node that has written before
  KeptPieces kept_;
  std::optional<TrainedTotals> all_;  // of the whole cluster, at the end
  RunState reported_;
  SnapshotShow show_{hooks_};
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
  constexpr int32_t kGloveEpochs = 15, kLbfgsSteps = 50;
  const bool lbfgs = options.cluster.on() && options.cluster.sync == "sandblaster";
  if (model == "rbsg" && options.optimizer != "adam") options.optimizer = "muon";
  if (options.epochs == 0) options.epochs = lbfgs ? kLbfgsSteps : model == "glove" && read_again ? kGloveEpochs : 1;
  return options;
}

// What files would pass over without a word.
Status check_of_files(const StreamOptions& stream) {
  if (!stream.languages.empty() || stream.drop_duplicates)
    return error(Code::kInvalidArgument, stream.drop_duplicates ? "--drop-duplicates" : "--language",
                 " is for streams; add --stream");
  if (!stream.similarity.empty() || !stream.analogy.empty())
    return error(Code::kInvalidArgument, stream.similarity.empty() ? "--analogy" : "--similarity",
                 " is measured while streams are trained on; add --stream, or leave it out and give it to `streamvec ",
                 "eval` afterwards");
  return {};
}

// So that each has its place under its own name: files that are opened together are one source.
Result<std::vector<std::unique_ptr<Source>>> open_one_by_one(const std::vector<std::string>& sources) {
  std::vector<std::unique_ptr<Source>> opened;
  for (const std::string& source : sources) {
    STREAMVEC_ASSIGN_OR_RETURN(auto one, open_each({source}));
    std::move(one.begin(), one.end(), std::back_inserter(opened));
  }
  return opened;
}

// As they turn out to be meant.
TrainOptions as(TrainOptions options, const std::optional<std::string>& model, bool stream) {
  options.model = model;
  options.stream.on = stream;
  return options;
}

Result<TrainProgress> train_opened(const TrainOptions& given, std::vector<std::unique_ptr<Source>> opened,
                                   const std::vector<std::string>& names, const std::string& out,
                                   const TrainHooks& hooks) {
  // What several nodes share has to be there to be counted: what is not is a stream of theirs.
  const bool stream = given.stream.on || any_endless(opened) || (given.cluster.on() && !all_replayable(opened));
  STREAMVEC_RETURN_IF_ERROR(check_cluster(as(given, given.model, stream)));
  if (!stream) STREAMVEC_RETURN_IF_ERROR(check_of_files(given.stream));
  std::optional<CheckpointWriter> writer;
  if (given.cluster.rank == 0) {
    STREAMVEC_ASSIGN_OR_RETURN(writer, CheckpointWriter::open(out, given.cluster.job));
  }
  STREAMVEC_ASSIGN_OR_RETURN(std::optional<Checkpoint> existing, load_existing(out));
  if (existing) STREAMVEC_RETURN_IF_ERROR(check_same(given, *existing, out));
  const std::string model = existing ? existing->model : given.model.value_or("sgns");
  if (existing) STREAMVEC_RETURN_IF_ERROR(check_cluster(as(given, model, stream)));
  STREAMVEC_RETURN_IF_ERROR(check_optimizer(given, model));
  if (is_sharded(given) && hooks.snapshot)
    return error(Code::kUnimplemented,
                 "--listen has no model to show while --shard has it in parts; leave it out, and "
                 "try `streamvec serve ",
                 out, "` beside it, which shows every checkpoint");
  const bool read_again = !stream && all_replayable(opened);
  TrainOptions options = settled(given, model, read_again);
  options.stream.on = stream;
  STREAMVEC_ASSIGN_OR_RETURN(options.device, chosen_device(given, model));
  if (stream)
    return train_stream(options, std::move(opened), names, std::move(writer), out, std::move(existing), hooks);
  const nlohmann::json position = existing ? existing->state.value(kGlovePosition, nlohmann::json()) : nlohmann::json();
  STREAMVEC_ASSIGN_OR_RETURN(TrainingStart start,
                             prepare(options, names, chained(std::move(opened)), out, std::move(existing), hooks));
  if (start.cancelled) return nothing_done("stopped while the vocabulary was counted; nothing was changed");
  if (model == "glove" && read_again)
    return train_glove(std::move(start), options, std::move(*writer), out, position, hooks);
  if (options.cluster.on() && options.cluster.shard == "columns")
    return train_columns(std::move(start), options, std::move(writer), out, hooks);
  if (options.cluster.on() && options.cluster.sync == "sandblaster")
    return train_sandblaster(std::move(start), options, std::move(writer), hooks);
  return Training(std::move(start), std::move(writer), out, options, hooks).run();
}

}  // namespace

Result<TrainProgress> train(const TrainOptions& options, const std::vector<std::string>& sources,
                            const std::string& out, const TrainHooks& hooks) {
  STREAMVEC_RETURN_IF_ERROR(check_options(options));
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<std::string> own, own_sources(options.cluster, sources));
  STREAMVEC_ASSIGN_OR_RETURN(auto opened, options.cluster.divide ? open_one_by_one(own) : open_each(own));
  TrainOptions divided = options;
  divided.cluster.division = division_text(options.cluster, sources);
  return train_opened(divided, std::move(opened), own, out, hooks);
}

Result<TrainProgress> train(const TrainOptions& options, std::vector<std::unique_ptr<Source>> sources,
                            const std::string& out, const TrainHooks& hooks) {
  STREAMVEC_RETURN_IF_ERROR(check_options(options));
  if (sources.empty()) return error(Code::kInvalidArgument, "no source is given to train on");
  if (options.cluster.divide) return error(Code::kInvalidArgument, "sources are divided by their names; give these");
  std::vector<std::string> names;
  for (const auto& source : sources) names.push_back(source->name());
  return train_opened(options, std::move(sources), names, out, hooks);
}

}  // namespace streamvec
