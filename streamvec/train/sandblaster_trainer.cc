#include "streamvec/train/sandblaster_trainer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <sstream>

#include "streamvec/cluster/sandblaster_node.h"
#include "streamvec/core/clock.h"
#include "streamvec/core/memory.h"
#include "streamvec/model/skip_gram_batch.h"
#include "streamvec/train/cluster_network.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/live_snapshot.h"
#include "streamvec/train/run_state.h"

namespace streamvec {
namespace {

constexpr double kFirstStepOfRow = 0.1;  // the line search finds what is right; this is where it begins
constexpr float kScaleMin = 1e-6f;       // of the largest
constexpr int64_t kPortionsOfWorker = 8, kPortionWordsMin = 500, kPortionWordsMax = 20'000;

class SandblasterTraining {
 public:
  SandblasterTraining(TrainingStart start, const TrainOptions& options, std::optional<CheckpointWriter> writer,
                      const TrainHooks& hooks)
      : start_(std::move(start)), writer_(std::move(writer)), options_(options), hooks_(hooks) {}

  Result<TrainProgress> run() {
    STREAMVEC_ASSIGN_OR_RETURN(const bool read, read_text());
    if (!read) return nothing_done("stopped while the text was read; nothing was changed");
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, open_transport(options_.cluster));
    STREAMVEC_ASSIGN_OR_RETURN(node_, SandblasterNode::start(node_options(), *batch_, std::move(transport)));
    STREAMVEC_ASSIGN_OR_RETURN(const bool all_are_there, node_->await_start(hooks_.stop));
    if (!all_are_there) return nothing_done("stopped while other nodes were awaited; nothing was changed");
    begin_ = saved_ = Clock::now();
    if (node_->coordinates()) return coordinate();
    STREAMVEC_RETURN_IF_ERROR(node_->serve(hooks_.stop));
    return progress(start_.state);
  }

 private:
  // All of it, in order: every node has to make the same portions. False when it was stopped.
  Result<bool> read_text() {
    SkipGramBatch::Options batch;
    batch.window = options_.window;
    batch.negatives = options_.negatives;
    batch.seed = options_.seed;
    batch.portion_words = std::clamp(start_.vocabulary.tokens() / (kPortionsOfWorker * options_.cluster.workers()),
                                     kPortionWordsMin, kPortionWordsMax);
    STREAMVEC_RETURN_IF_ERROR(check_memory("the text as one batch",
                                           sizeof(Slot) * static_cast<double>(start_.vocabulary.tokens()),
                                           "less text, or another --sync"));
    batch_.emplace(batch, std::make_shared<SamplingTables>(start_.vocabulary, options_.sample));
    STREAMVEC_ASSIGN_OR_RETURN(const auto mapper, start_.make_mapper(options_));
    STREAMVEC_RETURN_IF_ERROR(start_.source->seek(""));
    Feed feed(*start_.source, 1, RunState());
    Tokenizer tokenizer(options_.tokenizer);
    Tokens tokens;
    Chunk chunk;
    Piece piece;
    while (feed.next(piece)) {
      PieceResult result;
      tokenizer.tokenize(piece.document.text, tokens);
      result.tokens = static_cast<int64_t>(tokens.words.size());
      result.bytes_replaced = tokens.bytes_replaced;
      result.words_dropped = tokens.words_dropped;
      if (mapper->map(tokens, chunk) != nullptr) batch_->add(chunk);
      feed.finish(piece, result);
      if (hooks_.stop != nullptr && hooks_.stop->load()) return false;
    }
    STREAMVEC_RETURN_IF_ERROR(feed.status());
    text_ = feed.state();
    if (batch_->portions() == 0)
      return error(Code::kInvalidArgument, start_.source->name(), " has no text to learn from");
    return true;
  }

  SandblasterOptions node_options() {
    const ClusterSettings& settings = options_.cluster;
    SandblasterOptions made;
    made.workers = cluster_nodes(settings, 0, settings.workers());
    made.owners = settings.servers > 0 ? cluster_nodes(settings, settings.workers(), settings.servers) : made.workers;
    made.row_end = static_cast<RowKey>(2 * start_.parameters.rows());
    made.dim = start_.parameters.dim();
    made.initial = [this](RowKey key, std::span<float> row) { std::copy_n(live_row(key), row.size(), row.begin()); };
    start_.row_pulls = row_pulls(options_, start_.model, start_.vocabulary);
    const float most = *std::max_element(start_.row_pulls.begin(), start_.row_pulls.end());
    made.scale = [this, most](RowKey key) { return std::max(start_.row_pulls[key] / most, kScaleMin); };
    made.threads = start_.threads;
    made.dead_after_s = settings.dead_after_s;
    made.fingerprint =
        mix(cluster_fingerprint(options_, start_), batch_->fingerprint(), std::bit_cast<uint64_t>(options_.sample));
    std::ostringstream text;
    text << cluster_fingerprint_text(options_, start_) << ", " << batch_->words() << " words of text, --window "
         << options_.window << ", --negatives " << options_.negatives << ", --sample " << options_.sample;
    made.fingerprint_of = text.str();
    made.lbfgs.history = settings.lbfgs_history;
    made.lbfgs.iterations_max = std::max(options_.epochs - start_.state.epoch, 0);
    made.lbfgs.first_step = kFirstStepOfRow * std::sqrt(static_cast<double>(made.row_end));
    return made;
  }

  float* live_row(RowKey key) {
    Table& table = key % 2 == 0 ? start_.parameters.input : start_.parameters.output;
    return table.rows.row(key / 2);
  }

  Result<TrainProgress> coordinate() {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string why,
                               node_->run(hooks_.stop, [this](const SandblasterProgress&) { return after_step(); }));
    STREAMVEC_RETURN_IF_ERROR(node_->coordinator().read_last_point(take_row()));
    node_->end();
    RunState state = state_now();
    state.finished = !node_->coordinator().wants_stop() || state.epoch >= options_.epochs;
    if (state.finished && state.epoch < options_.epochs) {
      start_.notes.push_back("L-BFGS ended after " + std::to_string(state.epoch) + " steps: " + why);
      state.epoch = options_.epochs;
    }
    start_.own->finish(start_.parameters);
    show_.show([this] { return copy_now(); });
    STREAMVEC_RETURN_IF_ERROR(save(state));
    return progress(state);
  }

  std::function<void(RowKey, std::span<const float>)> take_row() {
    return [this](RowKey key, std::span<const float> row) { std::copy(row.begin(), row.end(), live_row(key)); };
  }

  Result<bool> after_step() {
    if (hooks_.progress) hooks_.progress(progress(state_now()));
    Status read;
    show_.show_if_due([&]() -> Result<Snapshot> {
      read = node_->coordinator().read_point(take_row());
      if (!read.ok()) return read;
      return copy_now();
    });
    STREAMVEC_RETURN_IF_ERROR(read);
    const double every_s = options_.checkpoint_every_s.value_or(0);
    if (every_s <= 0 || seconds_since(saved_) < every_s) return true;
    STREAMVEC_RETURN_IF_ERROR(node_->coordinator().read_point(take_row()));
    STREAMVEC_RETURN_IF_ERROR(save(state_now()));
    saved_ = Clock::now();
    return true;
  }

  Result<Snapshot> copy_now() {
    return copy_model(start_.model, state_now().step, start_.vocabulary, *start_.own, start_.parameters);
  }

  // Every step counts as one epoch over the text, however often its line search looked at it.
  RunState state_now() const {
    const SandblasterProgress now = node_->coordinator().progress();
    RunState state = start_.state;
    state.epoch += static_cast<int32_t>(now.iterations);
    state.step += now.iterations * batch_->portions();
    state.tokens += now.iterations * text_.tokens;
    state.pairs += now.iterations * std::llround(now.weight);
    state.loss = now.value * now.weight;
    state.loss_pairs = std::llround(now.weight);
    state.seconds += seconds_since(begin_);
    state.bytes_replaced = text_.bytes_replaced;
    state.words_dropped = text_.words_dropped;
    state.cursor.clear();
    return state;
  }

  Status save(const RunState& state) {
    CheckpointContent content{.step = state.step,
                              .model = start_.model,
                              .vocabulary = start_.vocabulary,
                              .input = start_.parameters.input.rows.view(),
                              .output = start_.parameters.output.rows.view(),
                              .optimizer = {},
                              .state = {{"run", start_.description}, {"progress", to_json(state)}},
                              .cursors = start_.cursors_at(state.cursor)};
    STREAMVEC_RETURN_IF_ERROR(start_.own->add_to(content, start_.parameters));
    return writer_->save(content);
  }

  TrainProgress progress(const RunState& state) const {
    TrainProgress progress = start_.progress(state, state.mean_loss(), options_.epochs);
    progress.fraction = std::min(1.0, static_cast<double>(state.epoch) / options_.epochs);
    progress.kernel = "l-bfgs";
    progress.nodes = static_cast<int32_t>(options_.cluster.nodes.size());
    const TransportTotals totals = node_->totals();
    progress.bytes_sent = totals.bytes_sent;
    progress.bytes_received = totals.bytes_received;
    if (!node_->coordinates()) return progress;
    SandblasterCoordinator& coordinator = node_->coordinator();
    const SandblasterProgress now = coordinator.progress();
    progress.nodes = static_cast<int32_t>(coordinator.members().size());
    progress.pushes = now.evaluations * batch_->portions();
    for (const std::string& note : coordinator.notes()) progress.notes.push_back(note);
    progress.notes.push_back("L-BFGS: " + std::to_string(now.iterations) + " steps, " +
                             std::to_string(now.evaluations) + " evaluations of " + std::to_string(batch_->portions()) +
                             " portions, " + std::to_string(now.copies) + " of them handed out twice");
    return progress;
  }

  TrainingStart start_;
  std::optional<CheckpointWriter> writer_;
  const TrainOptions& options_;
  const TrainHooks& hooks_;
  std::optional<SkipGramBatch> batch_;
  RunState text_;                          // what reading it has counted
  std::unique_ptr<SandblasterNode> node_;  // before what it borrows goes
  Clock::time_point begin_, saved_;
  SnapshotShow show_{hooks_};
};

}  // namespace

Status check_sandblaster(const TrainOptions& options) {
  if (options.model.value_or("sgns") != "sgns")
    return error(Code::kUnimplemented, "--sync sandblaster trains --model sgns, not ", *options.model,
                 "; try --sync bsp");
  if (options.optimizer != "sgd")
    return error(Code::kInvalidArgument, "--sync sandblaster steps by L-BFGS, not by --optimizer ", options.optimizer,
                 "; leave one of them out");
  if (options.cluster.lbfgs_history < 1 || options.cluster.lbfgs_history > kLbfgsHistoryMax)
    return error(Code::kInvalidArgument, "--lbfgs-history is ", options.cluster.lbfgs_history, "; it must be 1 to ",
                 kLbfgsHistoryMax);
  return {};
}

Result<TrainProgress> train_sandblaster(TrainingStart start, const TrainOptions& options,
                                        std::optional<CheckpointWriter> writer, const TrainHooks& hooks) {
  if (start.model != "sgns")
    return error(Code::kUnimplemented, "--sync sandblaster trains --model sgns, and the directory holds a ",
                 start.model, " model; try --sync bsp");
  return SandblasterTraining(std::move(start), options, std::move(writer), hooks).run();
}

}  // namespace streamvec
