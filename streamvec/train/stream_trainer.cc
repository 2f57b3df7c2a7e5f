#include "streamvec/train/stream_trainer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "streamvec/core/clock.h"
#include "streamvec/core/heap.h"
#include "streamvec/replay/table_file.h"
#include "streamvec/train/glove_state.h"
#include "streamvec/train/live_snapshot.h"
#include "streamvec/train/pacer.h"
#include "streamvec/train/run_state.h"
#include "streamvec/train/stream_cluster.h"
#include "streamvec/train/stream_evaluator.h"
#include "streamvec/train/stream_learner.h"
#include "streamvec/train/stream_measures.h"
#include "streamvec/train/stream_model.h"
#include "streamvec/train/stream_progress.h"
#include "streamvec/train/stream_replay.h"
#include "streamvec/train/taking_over.h"
#include "streamvec/train/training_start.h"

namespace streamvec {
namespace {

using nlohmann::json;

constexpr const char *kReplayState = "replay.bin", *kFilterState = "filter.bin", *kProbeState = "probe.bin";
constexpr double kCheckpointEvery = 60;  // seconds
// Of the rate that a run of known length begins with: a stream's rate never falls. Of 1, 1/2, 1/4 and 1/8, a half was
// best on ACL abstracts (docs/BENCHMARKS.md, Replay).
constexpr double kRateOfStreams = 0.5;

ExtraFile bytes_file(const char* name, std::string bytes) {
  return {name, [bytes = std::move(bytes)](const auto& sink) { return sink(bytes); }};
}

// Of one that joins: words and rows are those that the others have by now. Where its sources stood stays.
Status forget_model(Checkpoint& existing) {
  const int64_t dim = existing.input.cols();
  existing.vocabulary = {};
  existing.optimizer.clear();
  existing.extra.clear();
  for (Matrix* table : {&existing.input, &existing.output}) {
    STREAMVEC_ASSIGN_OR_RETURN(*table, Matrix::make(0, dim, kTableRowsMax));
  }
  return {};
}

class StreamTraining {
 public:
  StreamTraining(const TrainOptions& options, std::optional<CheckpointWriter> writer, std::string out,
                 const TrainHooks& hooks)
      : options_(options), writer_(std::move(writer)), out_(std::move(out)), hooks_(hooks) {}

  Status prepare(std::vector<std::unique_ptr<Source>> sources, const std::vector<std::string>& names,
                 std::optional<Checkpoint> existing) {
    if (options_.epochs > 1)
      return error(Code::kInvalidArgument, "a stream is read once, --epochs asks for ", options_.epochs,
                   "; try --replay-ratio ", options_.epochs, ", which trains on each part as often");
    STREAMVEC_ASSIGN_OR_RETURN(selection_, parse_replay(options_.stream.replay));
    STREAMVEC_ASSIGN_OR_RETURN(const OptimizerKind optimizer, parse_optimizer(options_.optimizer));
    kind_ = existing ? existing->model : options_.model.value_or("sgns");
    if (existing && options_.cluster.joins) STREAMVEC_RETURN_IF_ERROR(forget_model(*existing));
    lr_ = options_.lr.value_or(default_learning_rate(kind_, optimizer) * kRateOfStreams *
                               rate_of_device(options_, kind_));
    threads_ = options_.threads > 0 ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
    description_ = describe_run(options_, lr_, names);
    describe_pace(options_, kind_, description_);
    if (kind_ == "glove") describe_glove(options_, description_);
    STREAMVEC_ASSIGN_OR_RETURN(model_, StreamModel::make(options_, kind_, threads_, writes(), existing));
    STREAMVEC_ASSIGN_OR_RETURN(
        replay_, ReplayTable::create(only_reads(options_.cluster) ? relay_options(options_)
                                                                  : replay_options(options_, selection_.selector)));
    if (!reads(options_.cluster)) sources.clear();
    if (existing) step_ = existing->step;  // from which the evaluator counts
    if (writes()) STREAMVEC_RETURN_IF_ERROR(make_evaluator());
    STREAMVEC_RETURN_IF_ERROR(make_intake(std::move(sources)));
    if (existing)
      STREAMVEC_RETURN_IF_ERROR(writes() ? go_on(*existing) : restore_sources(options_.cluster, *existing, *intake_));
    STREAMVEC_RETURN_IF_ERROR(make_learner());
    if (!clustered()) return {};
    STREAMVEC_RETURN_IF_ERROR(join());
    if (existing) cluster_->begin_cursors(stream_places_of(*existing));
    return {};
  }

  Result<TrainProgress> run() {
    if (cluster_ != nullptr) {
      STREAMVEC_ASSIGN_OR_RETURN(const bool all_are_there, cluster_->await_start(hooks_.stop));
      if (!all_are_there) return nothing_done("stopped while other nodes were awaited; nothing was changed");
    }
    progress_.begin({model_->parameters, *replay_, *intake_, *learner_, cluster_.get(), kind_, lr_});
    if (only_serves(options_.cluster)) {
      STREAMVEC_RETURN_IF_ERROR(cluster_->serve());
      return progress_.total();
    }
    if (!only_reads(options_.cluster)) learner_->start();
    if (cluster_ != nullptr) cluster_->start_relay();
    if (evaluator_ && goes_on_) STREAMVEC_RETURN_IF_ERROR(evaluator_->go_on());
    const Status started = intake_->start();
    if (evaluator_) start_evaluator();
    const Status watched = started.ok() ? watch() : started;
    if (cluster_ != nullptr && cluster_->leads() && (is_to_stop() || !watched.ok())) cluster_->ask_to_stop();
    if (cluster_ != nullptr) cluster_->stop_relay();                  // what was not sent by now is not trained on
    if (cluster_ != nullptr && cluster_->failed()) replay_->close();  // nobody takes anything from it any more
    intake_->stop();  // the learner still takes what the intake has begun
    learner_->stop();
    if (cluster_ != nullptr) cluster_->await_relay();
    const Status settled = learner_->settle();
    const Status parted = part();
    model_->own->finish(model_->parameters);
    progress_.end();
    if (evaluator_) evaluator_->stop();
    show_.show([&] { return copy_now(); });
    STREAMVEC_RETURN_IF_ERROR(settled);
    STREAMVEC_RETURN_IF_ERROR(watched);
    if (parted.code() == Code::kAborted) return parted;  // another node leads: the model is that one's to write
    STREAMVEC_RETURN_IF_ERROR(save());
    intake_->join();  // no sooner: a source that does not answer keeps nobody from saving
    STREAMVEC_RETURN_IF_ERROR(parted);
    if (cluster_ != nullptr && cluster_->leads()) cluster_->saved();
    if (const Status failed = intake_->status(); !failed.ok())
      return has_words() ? Status(failed.code(), failed.message() + "; what was learnt before is saved") : failed;
    if (writes() && !has_words() && ended_by_itself()) return nothing_learnt();
    TrainProgress result = progress_.total();
    result.notes.insert(result.notes.begin(), notes_.begin(), notes_.end());
    for (const auto& lines : {intake_->notes(), evaluator_ ? evaluator_->notes() : std::vector<std::string>()})
      result.notes.insert(result.notes.end(), lines.begin(), lines.end());
    return result;
  }

 private:
  bool is_to_stop() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  bool clustered() const { return options_.cluster.on(); }
  // Of a cluster the node that leads writes: at first the first.
  bool writes() const { return writer_.has_value(); }
  // Once the last save is through: whether there was something to save.
  bool has_words() const { return model_->vocabulary.size() > 0; }
  bool ended_by_itself() const { return !is_to_stop() && (cluster_ == nullptr || !cluster_->asked_to_stop()); }

  // Why there is no model, though all was read.
  Status nothing_learnt() const {
    const Intake::Totals read = intake_->totals();
    std::string notes;
    for (const std::string& note : intake_->notes()) notes += "; " + note;
    return error(Code::kInvalidArgument, "the stream has ended and has no word ", options_.min_count,
                 " times (documents read here: ", read.documents, ", in other languages: ", read.other_languages,
                 ", duplicates: ", read.duplicates, ", tokens: ", read.tokens, "); try --min-count 1",
                 read.other_languages > 0 ? ", another --language" : "",
                 read.duplicates > 0 ? ", no --drop-duplicates" : "", " or more text", notes);
  }

  Status make_evaluator() {
    STREAMVEC_ASSIGN_OR_RETURN(StreamEvaluator::Options options, evaluator_options(options_, model_->parameters.dim()));
    options.dir = out_;
    options.model = kind_;
    options.first_step = step_;
    options.on_metrics = hooks_.metrics;
    if (clustered()) options.may_write = [this] { return cluster_->node().holds_lead(); };
    STREAMVEC_ASSIGN_OR_RETURN(evaluator_, StreamEvaluator::create(std::move(options)));
    watching_ = evaluator_.get();
    return {};
  }

  void start_evaluator() {
    evaluator_->start({model_->vocabulary, *replay_, model_->parameters, *model_->own, model_->halves(), intake_.get(),
                       learner_.get()});
  }

  Status make_intake(std::vector<std::unique_ptr<Source>> sources) {
    Intake::Options options;
    options.tokenizer = options_.tokenizer;
    options.clock_seconds = options_.stream.half_life.seconds;
    options.seed = options_.seed;
    options.divided = clustered();
    // Nodes that are found by etcd take sources over from each other; of those with ranks the first keeps the rest.
    options.keeps_others = options_.cluster.registry == nullptr && options_.cluster.rank == 0;
    STREAMVEC_ASSIGN_OR_RETURN(DocumentFilter filter,
                               DocumentFilter::create({.drop_duplicates = options_.stream.drop_duplicates,
                                                       .languages = options_.stream.languages,
                                                       .seed = options_.seed}));
    Intake::Sinks sinks{model_->vocabulary, model_->tables, *replay_,
                        [this](std::span<const Slot> slots) { start_rows(slots); }};
    if (clustered()) {
      sinks.await_words = [this] { cluster_->await_words(); };
      sinks.await_slots = [this] { cluster_->await_slots(); };
    }
    if (only_reads(options_.cluster)) {
      if (!options_.cluster.divide) options.node = std::to_string(options_.cluster.rank);
      sinks.withdrawn = [this](const auto& item) { cluster_->withdrawn(item); };
    }
    for (const auto& source : sources) source->join_stream(!clustered());
    intake_ = std::make_unique<Intake>(std::move(sources), std::move(filter), options, sinks);
    return {};
  }

  // Rows of words that are new, under the vocabulary's lock.
  void start_rows(std::span<const Slot> slots) {
    model_->start_rows(slots);
    if (StreamEvaluator* const evaluator = watching_) evaluator->forget(slots);
  }

  Status join() {
    STREAMVEC_ASSIGN_OR_RETURN(
        cluster_, StreamCluster::join(options_, kind_, threads_,
                                      {model_->vocabulary, model_->tables, *replay_, model_->parameters, *intake_,
                                       [this](std::span<const Slot> slots) { start_rows(slots); }},
                                      std::move(model_->shared)));
    return {};
  }

  // Stays until all nodes have finished.
  Status part() {
    if (cluster_ == nullptr) return {};
    const LearnerTotals own = learner_->totals();
    Pacer pacer;
    Clock::time_point saved = Clock::now();
    const auto meanwhile = [&]() -> Status {
      cluster_->help_to_save();
      STREAMVEC_RETURN_IF_ERROR(write_if_leading());
      return writes() ? look_after(pacer, saved) : Status();
    };
    std::string note;
    const Status parted =
        cluster_->part({intake_->totals().tokens, own.pairs, own.loss, own.pairs}, hooks_.stop, meanwhile, note);
    if (!note.empty()) notes_.push_back(note);
    if (!parted.ok() || writes() || !cluster_->all()) return parted;
    return take_over(cluster_->node(), options_.cluster.dead_after_s, [this]() -> Result<bool> {
      STREAMVEC_RETURN_IF_ERROR(open_if_leading());
      return writes();
    });
  }

  // The leader's place, and with it the directory, may come to this node at any time.
  Status open_if_leading() {
    if (writes() || cluster_ == nullptr || !cluster_->node().holds_lead()) return {};
    STREAMVEC_ASSIGN_OR_RETURN(writer_, CheckpointWriter::open(out_, options_.cluster.job));
    model_->make_generator([this] { return intake_->lock_vocabulary(); });
    const auto found = load_cursors(out_);
    if (found.status().code() == Code::kNotFound) return {};  // it has saved none
    STREAMVEC_RETURN_IF_ERROR(found.status());
    // What the one before has saved stays older than what is to come.
    step_ = std::max(step_, found->step);
    saved_step_ = std::max(saved_step_, found->step);
    cluster_->keep_cursors(found->cursors);
    return {};
  }

  // And measures from now on, what it can: halves that it never trained tell nothing of drift.
  Status write_if_leading() {
    if (writes()) return {};
    STREAMVEC_RETURN_IF_ERROR(open_if_leading());
    if (!writes() || evaluator_) return {};
    STREAMVEC_RETURN_IF_ERROR(make_evaluator());
    start_evaluator();
    return {};
  }

  // Puts everything where the checkpoint left it.
  Status go_on(const Checkpoint& existing) {
    step_ = saved_step_ = existing.step;  // never saved over: what `latest` names stays whole whenever a kill comes
    notes_ = existing.notes;
    const bool was_stream = existing.state.contains("stream") && existing.extra.count(kVocabularyState) > 0;
    if (!was_stream) return restore_sources(options_.cluster, existing, *intake_);  // a run of files or of a pipe
    progress_.restore(existing.state.value("stream", json::object()));
    STREAMVEC_RETURN_IF_ERROR(restore_sources(options_.cluster, existing, *intake_));
    goes_on_ = true;
    if (const auto found = existing.extra.find(kReplayState); found != existing.extra.end()) {
      STREAMVEC_ASSIGN_OR_RETURN(ReplaySnapshot snapshot, read_replay(found->second));
      STREAMVEC_RETURN_IF_ERROR(check_slots(snapshot));
      STREAMVEC_RETURN_IF_ERROR(replay_->restore(std::move(snapshot)));
      for (const uint64_t record : withdrawn_records(stream_places_of(existing))) replay_->erase_record(record);
    }
    if (const auto found = existing.extra.find(kFilterState); found != existing.extra.end())
      STREAMVEC_RETURN_IF_ERROR(intake_->restore_filter(found->second));
    if (const auto found = existing.extra.find(kProbeState); found != existing.extra.end())
      STREAMVEC_RETURN_IF_ERROR(evaluator_->restore(found->second, model_->vocabulary.size()));
    return {};
  }

  Status check_slots(const ReplaySnapshot& snapshot) const {
    for (const ReplaySnapshot::Held& held : snapshot.held)
      for (const Slot slot : held.item->chunk.slots)
        if (slot < 0 || slot >= model_->vocabulary.size())
          return error(Code::kDataLoss, out_, "/", step_, "/", kReplayState, " names slot ", slot, " of ",
                       model_->vocabulary.size(), " words; files of different checkpoints were mixed up");
    return {};
  }

  Status make_learner() {
    StreamLearner::Options options;
    options.model = model_options(options_, kind_, threads_);
    options.model.stream = true;
    if (clustered()) options.model.nodes = options_.cluster.workers() - options_.cluster.ingest;
    options.threads = worker_count(options.model);
    options.lr = static_cast<float>(lr_);
    options.seed = options_.seed;
    options.first_batch = step_;
    options.priority = selection_.priority;
    StreamLearner::Parts parts{model_->vocabulary, model_->tables, *replay_, model_->parameters, model_->halves()};
    parts.watch = [this](const Chunk& chunk, double t) {
      if (model_->parameters.glove) model_->parameters.glove->cells->add(chunk, t);
      StreamEvaluator* const evaluator = watching_;
      if (evaluator == nullptr) return;
      if (const auto tables = model_->tables.tables(); tables != nullptr)
        evaluator->watch(chunk, t, tables->subsampling);
    };
    if (clustered()) parts.trained = [this](int64_t tokens) { return cluster_->trained(tokens, lr_); };
    STREAMVEC_ASSIGN_OR_RETURN(learner_, StreamLearner::create(options, parts));
    return {};
  }

  // Until everything was learnt, or it is to stop. An error when a save failed.
  Status watch() {
    Pacer pacer;
    Clock::time_point saved = Clock::now();
    while (only_reads(options_.cluster) ? !cluster_->relayed() : !learner_->over()) {
      if (is_to_stop() || (cluster_ != nullptr && (cluster_->asked_to_stop() || cluster_->failed()))) return {};
      if (cluster_ != nullptr) cluster_->help_to_save();
      if (cluster_ != nullptr) cluster_->divide_sources();
      STREAMVEC_RETURN_IF_ERROR(write_if_leading());
      STREAMVEC_RETURN_IF_ERROR(look_after(pacer, saved));
    }
    return {};
  }

  // Reports, shows and saves when it is time to.
  Status look_after(Pacer& pacer, Clock::time_point& saved) {
    if (pacer.wait() && hooks_.progress) hooks_.progress(progress_.take_report());
    if (model_->parameters.hybrid != nullptr) model_->parameters.hybrid->distil_for_others(model_->parameters);
    show_.show_if_due([&] { return copy_now(); });
    const double every_s = options_.checkpoint_every_s.value_or(kCheckpointEvery);
    if (every_s <= 0 || seconds_since(saved) < every_s) return {};
    STREAMVEC_RETURN_IF_ERROR(save());
    saved = Clock::now();
    return {};
  }

  Result<Snapshot> copy_now() {
    return take_snapshot(kind_, step_ + learner_->totals().batches, model_->vocabulary, model_->parameters,
                         *model_->own, *intake_, true);
  }

  // One state of everything, with what threads had kept to themselves. The intake waits while it is written, training
  // does not (in builds with locked rows, where reading a row that is being trained on is an error, it does).
  Status save() {
    if (!writes() || (cluster_ != nullptr && !cluster_->may_save())) return {};
    if (cluster_ != nullptr) cluster_->gather_cursors();
    auto alone = evaluator_ ? evaluator_->between_looks() : std::unique_lock<std::mutex>();
    intake_->pause();
    if (cluster_ != nullptr) cluster_->hold();
    learner_->pause();
    const Status settled = learner_->settle();
    if (!RowLocks::kLocking) learner_->resume();
    const Status status = settled.ok() ? save_paused() : settled;
    if (RowLocks::kLocking) learner_->resume();
    if (cluster_ != nullptr) cluster_->go_on(status.ok());
    intake_->resume();
    if (alone) alone.unlock();
    if (status.ok()) intake_->commit();  // may ask a broker that is slow
    return_free_memory();
    return status;
  }

  Status save_paused() {
    const LearnerTotals learned = learner_->totals();
    const Vocabulary words = model_->vocabulary.to_vocabulary();
    if (words.size() == 0) return {};  // nothing was admitted yet: there is no model to save
    STREAMVEC_RETURN_IF_ERROR(model_->fetch_rows());
    const int64_t step = std::max(step_ + learned.batches, saved_step_ + 1);
    auto replay = std::make_shared<const ReplaySnapshot>(replay_->snapshot());
    CheckpointContent content{.step = step,
                              .model = kind_,
                              .vocabulary = words,
                              .input = model_->parameters.input.rows.view(),
                              .output = model_->parameters.output.rows.view(),
                              .optimizer = model_->tables_to_save(),
                              .state = {{"run", description_}, {"stream", progress_.state(learned)}},
                              .cursors = intake_->state()};
    if (cluster_ != nullptr) cluster_->add_cursors(content.cursors);
    content.extra.push_back(
        bytes_file(kVocabularyState, cluster_ != nullptr ? cluster_->save_vocabulary() : model_->vocabulary.save()));
    content.extra.push_back(bytes_file(kSamplingState, model_->tables.save()));
    content.extra.push_back(bytes_file(kFilterState, intake_->filter_state()));
    if (evaluator_) content.extra.push_back(bytes_file(kProbeState, evaluator_->save()));
    content.extra.push_back({kReplayState, [replay](const auto& sink) { return write_replay(*replay, sink); }});
    STREAMVEC_RETURN_IF_ERROR(model_->own->add_to(content, model_->parameters));
    STREAMVEC_RETURN_IF_ERROR(write(content));
    saved_step_ = content.step;
    return {};
  }

  Status write(CheckpointContent& content) {
    Status saved = writer_->save(content);
    if (saved.code() != Code::kAborted || cluster_ == nullptr || !cluster_->node().holds_lead()) return saved;
    // One that led before, and was stopped, has taken for its own what is ours.
    writer_.reset();
    STREAMVEC_RETURN_IF_ERROR(open_if_leading());
    content.step = std::max(content.step, saved_step_ + 1);  // it has saved there, too
    return writes() ? writer_->save(content) : saved;
  }

  const TrainOptions& options_;
  std::optional<CheckpointWriter> writer_;  // of a cluster only the node that leads has one
  const std::string out_;
  const TrainHooks& hooks_;
  ReplaySelection selection_{};
  std::string kind_;  // of model
  double lr_ = 0;
  int32_t threads_ = 1;
  json description_;
  std::vector<std::string> notes_;
  int64_t step_ = 0, saved_step_ = -1;
  bool goes_on_ = false;  // with a stream that was stopped
  SnapshotShow show_{hooks_};
  StreamProgress progress_;

  std::unique_ptr<StreamModel> model_;
  std::unique_ptr<ReplayTable> replay_;
  std::unique_ptr<StreamEvaluator> evaluator_;
  std::atomic<StreamEvaluator*> watching_{nullptr};  // the same, for threads that train and talk
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<StreamLearner> learner_;
  std::unique_ptr<StreamCluster> cluster_;  // goes before what it borrows
};

}  // namespace

Result<TrainProgress> train_stream(const TrainOptions& options, std::vector<std::unique_ptr<Source>> sources,
                                   const std::vector<std::string>& source_names, std::optional<CheckpointWriter> writer,
                                   const std::string& out, std::optional<Checkpoint> existing,
                                   const TrainHooks& hooks) {
  StreamTraining training(options, std::move(writer), out, hooks);
  STREAMVEC_RETURN_IF_ERROR(training.prepare(std::move(sources), source_names, std::move(existing)));
  return training.run();
}

}  // namespace streamvec
