#include "streamvec/train/columns_trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "streamvec/core/clock.h"
#include "streamvec/model/columns_kernel.h"
#include "streamvec/model/first_row.h"
#include "streamvec/model/workers.h"
#include "streamvec/optim/schedule.h"
#include "streamvec/train/cluster_network.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/table_in_file.h"
#include "streamvec/transport/collective.h"
#include "streamvec/transport/reliable_transport.h"

namespace streamvec {
namespace {

constexpr double kMeetWithin = 60, kColumnsReportEvery = 0.5;
constexpr double kColumnsFarewell = 30;  // for the others to have what was said last
constexpr int64_t kGatherRows = 1'024;   // at once

constexpr auto kSpaceLook = std::chrono::milliseconds(20);  // between two looks whether the disk is ready

// What all nodes tell each other after a piece of text: whether any of them wants something.
struct Wishes {
  float stop = 0, save = 0, wait = 0;
};

// A node's columns: from .. to.
struct ColumnRange {
  int64_t from = 0, to = 0;
  int64_t size() const { return to - from; }
};

ColumnRange columns_of(int64_t dim, int32_t rank, int32_t nodes) {
  return {dim * rank / nodes, dim * (rank + 1) / nodes};
}

template <typename Value>
bool is_under_way(const std::future<Value>& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

Status ring_broke(const Status& status) {
  if (status.ok()) return {};
  return Status(status.code(), "the ring broke: " + status.message() + "; the newest checkpoint is what remains");
}

class ColumnsTraining {
 public:
  ColumnsTraining(TrainingStart start, const TrainOptions& options, std::optional<CheckpointWriter> writer,
                  std::string out, const TrainHooks& hooks)
      : start_(std::move(start)),
        options_(options),
        writer_(std::move(writer)),
        out_(std::move(out)),
        hooks_(hooks),
        dim_(start_.parameters.dim()),
        own_(columns_of(dim_, options.cluster.rank, options.cluster.workers())),
        feed_(*start_.source, options.epochs, start_.state) {}

  ~ColumnsTraining() {
    if (transport_ != nullptr && !parted_) transport_->close();
  }

  Result<TrainProgress> run() {
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, open_transport(options_.cluster));
    transport_ = std::make_unique<ReliableTransport>(std::move(transport),
                                                     ReliableTransport::Options{.farewell_s = kColumnsFarewell});
    collective_.emplace(*transport_, cluster_nodes(options_.cluster, 0, options_.cluster.workers()));
    const std::string own = fingerprint();
    STREAMVEC_RETURN_IF_ERROR(take_columns());
    STREAMVEC_RETURN_IF_ERROR(make_worker());
    STREAMVEC_ASSIGN_OR_RETURN(const bool met, meet(own));
    if (!met) {
      TrainProgress nothing;
      nothing.notes = {"stopped while other nodes were awaited; nothing was changed"};
      return nothing;
    }
    begin_ = saved_ = reported_ = Clock::now();
    STREAMVEC_RETURN_IF_ERROR(train());
    RunState state = state_now();
    state.finished = state.epoch >= options_.epochs;
    const Status saved = save_last(state), failed = feed_.status();
    if (!failed.ok())  // where only one node's text fails the others are not there to save with it
      return Status(failed.code(),
                    failed.message() + "; " + (saved.ok() ? "what was learnt before is saved" : saved.message()));
    STREAMVEC_RETURN_IF_ERROR(saved);
    return progress(state, state.mean_loss());
  }

 private:
  // Nobody waits in the ring for the first node's disk, nor parts before it has all columns.
  Status save_last(const RunState& state) {
    Wishes wishes;
    do {
      STREAMVEC_ASSIGN_OR_RETURN(const bool ready, ready_to_save());
      wishes = {.wait = ready ? 0.0f : 1.0f};
      STREAMVEC_RETURN_IF_ERROR(exchange(wishes));
      if (wishes.wait > 0) std::this_thread::sleep_for(kSpaceLook);
    } while (wishes.wait > 0);
    STREAMVEC_RETURN_IF_ERROR(gather_and_save(state));
    STREAMVEC_RETURN_IF_ERROR(exchange(wishes));
    parted_ = true;
    return saving_.valid() ? saving_.get() : Status();
  }

  // This node's columns of what is there, or of new rows as one process would draw them.
  Status take_columns() {
    Parameters::Options shape = start_.parameters.options;
    shape.rows = start_.vocabulary.size();
    shape.rows_max = 0;
    shape.dim = own_.size();
    shape.threads = 1;
    STREAMVEC_RETURN_IF_ERROR(Parameters::check_memory(shape));
    STREAMVEC_ASSIGN_OR_RETURN(Parameters own, Parameters::make(shape));
    std::vector<float> drawn(static_cast<size_t>(dim_));
    const auto size = static_cast<size_t>(own_.size());
    for (int64_t row = 0; row < shape.rows; ++row) {
      if (row < start_.parameters.rows()) {
        std::copy_n(start_.parameters.input.rows.row(row) + own_.from, size, own.input.rows.row(row));
        std::copy_n(start_.parameters.output.rows.row(row) + own_.from, size, own.output.rows.row(row));
        continue;
      }
      draw_first_row(options_.seed, static_cast<uint64_t>(row), drawn);
      std::copy_n(drawn.begin() + own_.from, size, own.input.rows.row(row));
    }
    start_.parameters = std::move(own);
    return {};
  }

  Status make_worker() {
    const ModelOptions model = model_options(options_, start_.model, 1);
    auto kernel = std::make_unique<ColumnsPairKernel>([this](std::span<float> values) { return sum_up(values); });
    kernel_ = kernel.get();
    worker_ = make_sgns_worker(model.windows, model.batch, start_.parameters, std::move(kernel));
    STREAMVEC_ASSIGN_OR_RETURN(mapper_, start_.make_mapper(options_));
    return {};
  }

  // A block's products are few: everybody gets everybody's, which takes half the steps of a reduction, and adds them up
  // in the same order.
  Status sum_up(std::span<float> values) {
    const std::string_view mine(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    STREAMVEC_RETURN_IF_ERROR(collective_->all_gather(mine, parts_, Deadline::after_s(options_.cluster.dead_after_s)));
    std::fill(values.begin(), values.end(), 0.0f);
    std::vector<float> part(values.size());
    for (const std::string& bytes : parts_) {
      if (bytes.size() != values.size_bytes())
        return error(Code::kInternal, "a node has a block of ", bytes.size() / sizeof(float), " products, this one of ",
                     values.size());
      std::memcpy(part.data(), bytes.data(), bytes.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
    }
    return {};
  }

  // Of all that the nodes must have alike, and the same in words behind it. Of the whole tables.
  std::string fingerprint() const {
    const uint64_t hash = cluster_fingerprint(options_, start_);
    std::string own(reinterpret_cast<const char*>(&hash), sizeof hash);
    return own + cluster_fingerprint_text(options_, start_) + place_text(start_.state) +
           step_options_text(options_, start_);
  }

  // False when a wish to stop came before all were there.
  Result<bool> meet(const std::string& own) {
    std::vector<std::string> all;
    auto met = std::async(std::launch::async,
                          [&] { return collective_->all_gather(own, all, Deadline::after_s(kMeetWithin)); });
    while (met.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (hooks_.stop != nullptr && hooks_.stop->load()) {
        transport_->close();  // wakes who waits
        met.wait();
        return false;
      }
    STREAMVEC_RETURN_IF_ERROR(met.get());
    for (const std::string& other : all)
      if (other != all.front()) {
        parted_ = true;  // the others have to hear of it, too
        return error(Code::kFailedPrecondition, "a node has ", other.substr(std::min(sizeof(uint64_t), other.size())),
                     ", the first one has ", all.front().substr(std::min(sizeof(uint64_t), all.front().size())),
                     "; give all nodes the same text and options");
      }
    return true;
  }

  Status train() {
    Tokenizer tokenizer(options_.tokenizer);
    Tokens tokens;
    Chunk chunk;
    Piece piece;
    while (feed_.next(piece)) {
      const auto lr = static_cast<float>(scheduled_rate(start_.schedule, start_.lr, piece.fraction));
      Random random = draws_of(piece, options_.seed);
      tokenizer.tokenize(piece.document.text, tokens);
      PieceResult result = read_result(tokens);
      if (const auto tables = mapper_->map(tokens, chunk); tables != nullptr) {
        const StepStats stats = worker_->step(chunk, *tables, lr, random);
        result.pairs = stats.pairs;
        result.loss = stats.loss;
        result.refused = stats.refused;
      }
      STREAMVEC_RETURN_IF_ERROR(ring_broke(kernel_->status()));
      feed_.finish(piece, result);
      STREAMVEC_RETURN_IF_ERROR(after_piece());
    }
    return {};
  }

  // All nodes stop, and save, after the same piece.
  Status after_piece() {
    Wishes wishes;
    wishes.stop = hooks_.stop != nullptr && hooks_.stop->load() ? 1.0f : 0.0f;
    const double every_s = options_.checkpoint_every_s.value_or(0);
    const bool due = writer_ && every_s > 0 && seconds_since(saved_) >= every_s;
    if (due) {
      STREAMVEC_ASSIGN_OR_RETURN(const bool ready, ready_to_save());
      wishes.save = ready ? 1.0f : 0.0f;
    }
    STREAMVEC_RETURN_IF_ERROR(exchange(wishes));
    if (wishes.stop > 0) feed_.stop();
    if (wishes.save > 0 && !(wishes.stop > 0)) {
      STREAMVEC_RETURN_IF_ERROR(gather_and_save(state_now()));
      saved_ = Clock::now();
    }
    if (hooks_.progress && seconds_since(reported_) > kColumnsReportEvery) {
      const RunState state = state_now();
      hooks_.progress(progress(state, state.mean_loss()));
      reported_ = Clock::now();
    }
    return {};
  }

  Status exchange(Wishes& wishes) {
    float values[] = {wishes.stop, wishes.save, wishes.wait};
    STREAMVEC_RETURN_IF_ERROR(
        ring_broke(collective_->all_reduce_mean(values, Deadline::after_s(options_.cluster.dead_after_s))));
    wishes = {values[0], values[1], values[2]};
    return {};
  }

  // Whether this node has written its last checkpoint and has the space to gather another, which it begins to take
  // otherwise. Does not wait for the disk; its errors come out here.
  Result<bool> ready_to_save() {
    if (!writer_ || space_) return true;
    if (is_under_way(saving_)) return false;
    if (saving_.valid()) STREAMVEC_RETURN_IF_ERROR(saving_.get());
    if (!taking_space_.valid()) taking_space_ = std::async(std::launch::async, [this] { return take_space(); });
    if (is_under_way(taking_space_)) return false;
    STREAMVEC_ASSIGN_OR_RETURN(space_, taking_space_.get());
    return true;
  }

  Result<TablesInFiles> take_space() const { return TablesInFiles::make(start_.parameters.rows(), dim_, out_); }

  // The first node writes what it has gathered while all train on. REQUIRES: all are ready_to_save().
  Status gather_and_save(const RunState& state) {
    TablesInFiles whole;
    if (writer_) whole = std::move(*std::exchange(space_, std::nullopt));
    const int64_t rows = start_.parameters.rows();
    for (int64_t from = 0; from < rows; from += kGatherRows)
      STREAMVEC_RETURN_IF_ERROR(gather_rows(from, std::min(rows, from + kGatherRows), whole));
    if (!writer_) return {};
    nlohmann::json cursors = start_.cursors_at(state.cursor);
    saving_ = std::async(std::launch::async,
                         [this, state, cursors = std::move(cursors), tables = std::move(whole)]() mutable {
                           return save(state, std::move(cursors), tables);
                         });
    return {};
  }

  Status gather_rows(int64_t from, int64_t to, TablesInFiles& whole) {
    std::string mine;
    for (const Matrix* table : {&start_.parameters.input.rows, &start_.parameters.output.rows})
      for (int64_t row = from; row < to; ++row)
        mine.append(reinterpret_cast<const char*>(table->row(row)), static_cast<size_t>(own_.size()) * sizeof(float));
    std::vector<std::string> all;
    STREAMVEC_RETURN_IF_ERROR(
        ring_broke(collective_->all_gather(mine, all, Deadline::after_s(options_.cluster.dead_after_s))));
    if (!writer_) return {};
    for (int32_t rank = 0; rank < collective_->ranks(); ++rank) {
      const ColumnRange columns = columns_of(dim_, rank, collective_->ranks());
      const size_t bytes = static_cast<size_t>(columns.size()) * sizeof(float);
      const std::string& part = all[static_cast<size_t>(rank)];
      if (part.size() != 2 * static_cast<size_t>(to - from) * bytes)
        return error(Code::kInternal, "rank ", rank, " gave ", part.size(), " bytes of its columns");
      const char* at = part.data();
      for (TableInFile* table : {&whole.input, &whole.output})
        for (int64_t row = from; row < to; ++row, at += bytes) std::memcpy(table->row(row) + columns.from, at, bytes);
    }
    return {};
  }

  Status save(const RunState& state, nlohmann::json cursors, const TablesInFiles& whole) {
    CheckpointContent content{.step = state.step,
                              .model = start_.model,
                              .vocabulary = start_.vocabulary,
                              .input = whole.input.view(),
                              .output = whole.output.view(),
                              .optimizer = {},
                              .state = {{"run", start_.description}, {"progress", to_json(state)}},
                              .cursors = std::move(cursors)};
    STREAMVEC_RETURN_IF_ERROR(start_.own->add_to(content, start_.parameters));
    return writer_->save(content);
  }

  RunState state_now() const {
    RunState state = feed_.state();
    state.seconds = start_.state.seconds + seconds_since(begin_);
    return state;
  }

  TrainProgress progress(const RunState& state, double loss) const {
    TrainProgress progress = start_.progress(state, loss, options_.epochs);
    progress.dim = dim_;
    progress.fraction = state.fraction(options_.epochs);
    progress.lr = scheduled_rate(start_.schedule, start_.lr, progress.fraction);
    progress.kernel = worker_->kernel_name();
    progress.nodes = collective_->ranks();
    const TransportTotals totals = transport_->totals();
    progress.bytes_sent = totals.bytes_sent;
    progress.bytes_received = totals.bytes_received;
    progress.notes.push_back("this node has columns " + std::to_string(own_.from) + " to " +
                             std::to_string(own_.to - 1) + " of " + std::to_string(dim_));
    return progress;
  }

  TrainingStart start_;
  const TrainOptions& options_;
  std::optional<CheckpointWriter> writer_;
  const std::string out_;
  const TrainHooks& hooks_;
  const int64_t dim_;
  const ColumnRange own_;
  Feed feed_;
  std::unique_ptr<ReliableTransport> transport_;
  std::optional<RingCollective> collective_;
  std::unique_ptr<SlotMapper> mapper_;
  std::unique_ptr<ModelWorker> worker_;
  const ColumnsPairKernel* kernel_ = nullptr;  // the worker's
  std::vector<std::string> parts_;             // of a block's products, by rank
  bool parted_ = false;
  Clock::time_point begin_, saved_, reported_;
  std::optional<TablesInFiles> space_;               // to gather in
  std::future<Result<TablesInFiles>> taking_space_;  // ends before all that it uses, as what follows
  std::future<Status> saving_;
};

}  // namespace

Result<TrainProgress> train_columns(TrainingStart start, const TrainOptions& options,
                                    std::optional<CheckpointWriter> writer, const std::string& out,
                                    const TrainHooks& hooks) {
  if (start.parameters.dim() < options.cluster.workers())
    return error(Code::kInvalidArgument, "--dim is ", start.parameters.dim(), ", and ", options.cluster.workers(),
                 " nodes are to share the columns; try fewer nodes");
  return ColumnsTraining(std::move(start), options, std::move(writer), out, hooks).run();
}

}  // namespace streamvec
