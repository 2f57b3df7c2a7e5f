#include "streamvec/train/stream_progress.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/train/cluster_start.h"
#include "streamvec/train/stream_evaluator.h"

namespace streamvec {

void StreamProgress::restore(const nlohmann::json& state) {
  before_.pairs = state.value("pairs", int64_t{0});
  before_.refused = state.value("refused", int64_t{0});
  seconds_before_ = state.value("seconds", 0.0);
}

void StreamProgress::begin(Parts parts) {
  parts_.emplace(std::move(parts));
  begin_ = Clock::now();
}

void StreamProgress::end() {
  seconds_ = seconds_since(begin_);
}

// Spent training, over all runs.
double StreamProgress::seconds() const {
  return seconds_before_ + seconds_.value_or(seconds_since(begin_));
}

TrainProgress StreamProgress::total() const {
  return progress({});
}

TrainProgress StreamProgress::take_report() {
  const LearnerTotals now = parts_->learner.totals();
  LearnerTotals last = reported_;
  reported_ = now;
  TrainProgress told = progress(last);
  add_flow(told);
  return told;
}

// Sources and replay since the last report.
void StreamProgress::add_flow(TrainProgress& told) {
  const ReplayTable::Statistics replay = parts_->replay.statistics();
  const std::vector<SourceStatistics> sources = parts_->intake.statistics();
  const int64_t inserted = replay.inserted - reported_replay_.inserted;
  told.replay_chunks = replay.size;
  if (inserted > 0)
    told.replay_ratio = static_cast<double>(replay.sampled - reported_replay_.sampled) / static_cast<double>(inserted);
  told.sources = source_metrics(sources, reported_sources_, told.seconds - reported_s_);
  reported_replay_ = replay;
  reported_sources_ = sources;
  reported_s_ = told.seconds;
}

// With losses since `last`.
TrainProgress StreamProgress::progress(const LearnerTotals& last) const {
  const LearnerTotals now = parts_->learner.totals();
  const auto mean = [](double sum, int64_t count) { return count > 0 ? sum / static_cast<double>(count) : 0; };
  const Intake::Totals read = parts_->intake.totals();
  TrainProgress progress;
  progress.tokens = read.tokens;
  progress.documents = read.documents;
  progress.pairs = before_.pairs + now.pairs;
  progress.seconds = seconds();
  progress.loss = mean(now.loss - last.loss, now.pairs - last.pairs);
  progress.prequential_loss = mean(now.fresh_loss - last.fresh_loss, now.fresh_pairs - last.fresh_pairs);
  progress.lr = parts_->lr;
  progress.epoch = 1;
  {
    const auto lock = parts_->intake.lock_vocabulary();  // new words bring rows
    progress.vocab = parts_->parameters.rows();
  }
  progress.dim = parts_->parameters.dim();
  progress.model = parts_->model;
  progress.kernel = parts_->learner.kernel_name();
  progress.bytes_replaced = read.bytes_replaced;
  progress.words_dropped = read.words_dropped;
  progress.updates_refused = before_.refused + now.refused;
  const double training = now.working_s - last.working_s, starving = now.waiting_s - last.waiting_s;
  progress.bottleneck = training > starving ? "training" : "sources";
  if (parts_->cluster == nullptr) return progress;
  if (const std::optional<TrainedTotals>& all = parts_->cluster->all()) {
    progress.tokens = all->tokens;
    progress.pairs = before_.pairs + all->pairs;
    progress.loss = mean(all->loss, all->loss_pairs);
  }
  add_cluster(parts_->cluster->stats(), progress);
  return progress;
}

nlohmann::json StreamProgress::state(const LearnerTotals& learned) const {
  return {
      {"pairs", before_.pairs + learned.pairs}, {"refused", before_.refused + learned.refused}, {"seconds", seconds()}};
}

}  // namespace streamvec
