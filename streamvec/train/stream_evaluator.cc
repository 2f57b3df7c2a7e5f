#include "streamvec/train/stream_evaluator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "streamvec/core/clock.h"
#include "streamvec/core/memory.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/model/subword_vectors.h"

namespace streamvec {
namespace {

constexpr std::chrono::milliseconds kBeat{100};
constexpr size_t kNotesMax = 20;

double through(double a, double b) {
  return b > 0 ? a / b : kNotMeasured;
}

// The stage that the others wait for, and how busy each one is.
void find_bottleneck(const std::vector<SourceStatistics>& now, const std::vector<SourceStatistics>& before,
                     const LearnerTotals& learned, const LearnerTotals& learned_before, StreamMetrics& metrics) {
  double reading = 0, working = 0, blocked = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    const SourceStatistics last = i < before.size() ? before[i] : SourceStatistics();
    reading += now[i].reading_s - last.reading_s;
    working += now[i].working_s - last.working_s;
    blocked += now[i].blocked_s - last.blocked_s;
  }
  const double intake = reading + working + blocked;
  const double training = learned.working_s - learned_before.working_s;
  const double starving = learned.waiting_s - learned_before.waiting_s;
  metrics.stages = {{"source", through(reading, intake)},
                    {"text", through(working, intake)},
                    {"training", through(training, training + starving)}};
  if (training > starving)
    metrics.bottleneck = "training";
  else
    metrics.bottleneck = working > reading ? "text" : "source";
}

// The share of ten nearest neighbours that a thousand words have kept since `before`, for words that both know.
double neighbours_kept(const Snapshot& before, const Snapshot& now) {
  constexpr int64_t kWords = 1'000;
  constexpr int32_t kNeighbours = 10;
  std::vector<std::pair<Slot, Slot>> pairs;
  for (Slot slot = 0; slot < now.vocabulary.size(); ++slot)
    if (const Slot old = before.vocabulary.find(now.vocabulary.word(slot)); old != kNoSlot)
      pairs.push_back({old, slot});
  if (pairs.size() < 2 * kNeighbours) return kNotMeasured;
  const auto rows_of = [&](const Snapshot& snapshot, bool first) -> Result<Matrix> {
    STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, Matrix::make(static_cast<int64_t>(pairs.size()), snapshot.dim()));
    for (size_t i = 0; i < pairs.size(); ++i)
      std::memcpy(rows.row(static_cast<int64_t>(i)), snapshot.input.row(first ? pairs[i].first : pairs[i].second),
                  static_cast<size_t>(snapshot.dim()) * sizeof(float));
    return rows;
  };
  const auto old_rows = rows_of(before, true), new_rows = rows_of(now, false);
  if (!old_rows.ok() || !new_rows.ok()) return kNotMeasured;
  const auto overlap = neighbour_overlap(*old_rows, *new_rows, kWords, kNeighbours);
  return overlap.ok() ? *overlap : kNotMeasured;
}

}  // namespace

std::vector<SourceMetrics> source_metrics(const std::vector<SourceStatistics>& now,
                                          const std::vector<SourceStatistics>& before, double seconds) {
  std::vector<SourceMetrics> all;
  for (size_t i = 0; i < now.size(); ++i) {
    const SourceStatistics last = i < before.size() ? before[i] : SourceStatistics();
    SourceMetrics one;
    one.name = now[i].name;
    one.documents_per_s = through(static_cast<double>(now[i].documents - last.documents), seconds);
    one.bytes_per_s = through(static_cast<double>(now[i].bytes - last.bytes), seconds);
    one.lag_s = now[i].lag_s > 0 ? now[i].lag_s : kNotMeasured;
    one.documents = now[i].documents;
    one.errors = now[i].errors;
    one.state = now[i].state;
    one.last_error = now[i].last_error;
    one.permission = now[i].permission;
    all.push_back(std::move(one));
  }
  return all;
}

Result<Snapshot> take_snapshot(const std::string& model, int64_t step, StreamVocabulary& vocabulary,
                               Parameters& parameters, const ModelState& own, Intake& intake, bool spellings) {
  Snapshot snapshot;
  snapshot.model = model;
  snapshot.step = step;
  uint64_t stamp = 0;
  {
    const auto lock = intake.lock_vocabulary();
    snapshot.vocabulary = vocabulary.to_vocabulary();
    stamp = vocabulary.stamp();
  }
  const int64_t rows = snapshot.vocabulary.size();
  STREAMVEC_RETURN_IF_ERROR(parameters.fetch_rows());
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, own.input_rows(parameters, rows));
  for (Slot slot = 0; slot < rows; ++slot)
    if (!vocabulary.valid(slot, stamp)) std::fill_n(snapshot.input.row(slot), parameters.dim(), 0.0f);
  if (spellings) {
    STREAMVEC_ASSIGN_OR_RETURN(snapshot.generator, own.spellings(parameters, [&] { return intake.lock_vocabulary(); }));
  }
  return snapshot;
}

StreamEvaluator::StreamEvaluator(Options options)
    : options_(std::move(options)), history_(options_.dir), probe_(options_.probe) {}

StreamEvaluator::~StreamEvaluator() {
  stop();
}

Result<std::unique_ptr<StreamEvaluator>> StreamEvaluator::create(Options options) {
  std::unique_ptr<StreamEvaluator> evaluator(new StreamEvaluator(std::move(options)));
  STREAMVEC_ASSIGN_OR_RETURN(MetricsLog log, MetricsLog::open(evaluator->options_.dir));
  evaluator->log_ = std::move(log);
  return evaluator;
}

void StreamEvaluator::start(const Parts& parts) {
  parts_.emplace(parts);
  measured_s_ = unix_now();
  previous_tokens_ = parts.intake->totals().tokens;
  remembered_tokens_ = tokens_in_history(previous_tokens_);
  thread_ = std::thread([this] { run(); });
}

// Of the tokens that an earlier run read: one that was killed may have read more than its last snapshot has.
int64_t StreamEvaluator::tokens_in_history(int64_t tokens_read) const {
  if (options_.snapshot_every <= 0) return tokens_read;
  const auto entries = history_.list();
  if (!entries.ok()) return tokens_read;
  return entries->empty() ? 0 : std::min(tokens_read, entries->back().moment.tokens);
}

void StreamEvaluator::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void StreamEvaluator::watch(const Chunk& chunk, double t, const Subsampling& subsampling) {
  const std::lock_guard lock(mutex_);
  probe_.add(chunk, t, subsampling);
}

void StreamEvaluator::forget(std::span<const Slot> slots) {
  const std::lock_guard lock(mutex_);
  probe_.forget(slots);
}

std::optional<StreamMetrics> StreamEvaluator::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::vector<std::string> StreamEvaluator::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::string StreamEvaluator::save() const {
  const std::lock_guard lock(mutex_);
  return probe_.save();
}

Status StreamEvaluator::restore(std::string_view bytes, int64_t vocabulary_size) {
  const std::lock_guard lock(mutex_);
  STREAMVEC_ASSIGN_OR_RETURN(probe_, ProbeSppmi::restore(options_.probe, bytes, vocabulary_size));
  return {};
}

void StreamEvaluator::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kBeat, [&] { return stopping_; });
      if (stopping_) break;
    }
    follow_at_first();
    const int64_t tokens = parts_->intake->totals().tokens;
    const bool time = options_.every_s > 0 && unix_now() - measured_s_ >= options_.every_s;
    const bool snapshot = options_.snapshot_every > 0 && tokens - remembered_tokens_ >= options_.snapshot_every;
    if (time || snapshot) look(false);
  }
  if (!has_seen_all()) look(true);
}

// Whether nothing was read or learnt since the last look, and the history has it too.
bool StreamEvaluator::has_seen_all() const {
  const int64_t tokens = parts_->intake->totals().tokens;
  return previous_ && tokens == previous_tokens_ && parts_->learner->totals().batches == previous_totals_.batches &&
         (options_.snapshot_every <= 0 || tokens == remembered_tokens_);
}

// The probe's words are chosen as soon as there are some, and anew with every look.
void StreamEvaluator::follow_at_first() {
  {
    const std::lock_guard lock(mutex_);
    if (probe_.counts().size() > 0) return;
  }
  std::vector<double> weights;
  {
    const auto lock = parts_->intake->lock_vocabulary();
    weights = parts_->vocabulary.weights();
  }
  const std::lock_guard lock(mutex_);
  probe_.follow(weights);
}

// One look at everything: a line of metrics, and a snapshot of the history when it is due.
void StreamEvaluator::look(bool last) {
  const auto alone = between_looks();
  StreamMetrics metrics = gather();
  measured_s_ = metrics.time_s;
  auto snapshot = take_snapshot(options_.model, metrics.step, parts_->vocabulary, parts_->parameters, parts_->own,
                                *parts_->intake, !options_.similarity.empty());
  if (!snapshot.ok()) return note(snapshot.status());
  if (snapshot->vocabulary.size() > 0) measure(*snapshot, metrics);
  if (options_.may_write && !options_.may_write()) return;
  if (snapshot->vocabulary.size() > 0) {
    const bool due = metrics.tokens - remembered_tokens_ >= options_.snapshot_every || last;
    if (options_.snapshot_every > 0 && due && metrics.tokens > remembered_tokens_)
      remember(*snapshot, metrics.tokens, metrics);
  }
  note(log_->write(metrics));
  if (options_.on_metrics) options_.on_metrics(metrics);
  snapshot->generator = nullptr;  // large, and not needed again
  previous_ = std::move(*snapshot);
  const std::lock_guard lock(mutex_);
  latest_ = std::move(metrics);
}

StreamMetrics StreamEvaluator::gather() {
  StreamMetrics metrics;
  const LearnerTotals learned = parts_->learner->totals();
  const std::vector<SourceStatistics> sources = parts_->intake->statistics();
  const Intake::Totals read = parts_->intake->totals();
  const ReplayTable::Statistics replay = parts_->replay.statistics();
  metrics.time_s = unix_now();
  const double seconds = metrics.time_s - measured_s_;
  metrics.step = options_.first_step + learned.batches;
  metrics.tokens = read.tokens;
  metrics.tokens_per_s = through(static_cast<double>(read.tokens - previous_tokens_), seconds);
  const LearnerTotals& before = previous_totals_;
  metrics.prequential_loss =
      through(learned.fresh_loss - before.fresh_loss, static_cast<double>(learned.fresh_pairs - before.fresh_pairs));
  metrics.loss = through(learned.loss - before.loss, static_cast<double>(learned.pairs - before.pairs));
  {
    const auto lock = parts_->intake->lock_vocabulary();
    metrics.vocab = parts_->vocabulary.size();
    metrics.admitted = parts_->vocabulary.statistics().admitted;
    metrics.evicted = parts_->vocabulary.statistics().evicted;
  }
  metrics.replay_chunks = replay.size;
  metrics.replay_ratio = through(static_cast<double>(replay.sampled - previous_sampled_),
                                 static_cast<double>(replay.inserted - previous_inserted_));
  metrics.documents_dropped = read.duplicates + read.other_languages;
  metrics.chunks_dropped = replay.erased + replay.evicted_unsampled;
  metrics.updates_refused = learned.refused;
  metrics.sources = source_metrics(sources, previous_sources_, seconds);
  find_bottleneck(sources, previous_sources_, learned, before, metrics);
  metrics.rss_bytes = resident_memory();
  metrics.overlap_with_last = kNotMeasured;
  previous_totals_ = learned;
  previous_sources_ = sources;
  previous_sampled_ = replay.sampled;
  previous_inserted_ = replay.inserted;
  previous_tokens_ = read.tokens;
  return metrics;
}

void StreamEvaluator::measure(const Snapshot& snapshot, StreamMetrics& metrics) {
  for (const SimilaritySet& set : options_.similarity)
    metrics.similarity.push_back({set.name, measure_similarity(snapshot, set).spearman});
  for (const AnalogySet& set : options_.analogy) {
    const auto result = measure_analogy(snapshot, set);
    metrics.analogy.push_back({set.name, result.ok() ? result->total.cos_add_accuracy() : kNotMeasured});
  }
  if (previous_) metrics.overlap_with_last = neighbours_kept(*previous_, snapshot);
  ProbeCounts counts;
  {
    std::vector<double> weights;
    {
      const auto lock = parts_->intake->lock_vocabulary();
      weights = parts_->vocabulary.weights();
    }
    const std::lock_guard lock(mutex_);
    counts = probe_.counts();
    probe_.follow(weights);
  }
  if (counts.size() == 0) return;
  // The halves of the oracle take two thirds of the time: they are looked at now and then.
  constexpr int64_t kHalvesEvery = 8;
  auto report = measure_probe(counts, snapshot, options_.probe, looks_++ % kHalvesEvery == 0);
  if (report.ok()) metrics.pip = std::move(*report);
}

void StreamEvaluator::remember(const Snapshot& snapshot, int64_t tokens, StreamMetrics& metrics) {
  remembered_tokens_ = tokens;
  const int64_t written_s = parts_->intake->totals().newest_time_s;
  const StreamMoment moment{metrics.step, written_s > 0 ? written_s : static_cast<int64_t>(metrics.time_s), tokens};
  note(history_.add(snapshot, moment));
  if (parts_->halves[0] != nullptr) {
    auto a = take_snapshot(options_.model, metrics.step, parts_->vocabulary, *parts_->halves[0], parts_->own,
                           *parts_->intake);
    auto b = take_snapshot(options_.model, metrics.step, parts_->vocabulary, *parts_->halves[1], parts_->own,
                           *parts_->intake);
    if (a.ok() && b.ok()) note(history_.add_halves(*a, *b, moment));
  }
  find_moved_words(metrics);
}

// Against the halves that are nearest to half as old as the stream: far enough back for meaning to have moved.
void StreamEvaluator::find_moved_words(StreamMetrics& metrics) {
  const auto entries = history_.list();
  const auto halves = history_.list_halves();
  if (!entries.ok() || entries->size() < 2 || !halves.ok() || halves->size() < 2) return;
  const int64_t wanted = entries->back().moment.tokens / 2;
  const auto nearest = [&](auto begin, auto end, const auto& distance) {
    return std::min_element(begin, end, [&](const auto& x, const auto& y) { return distance(x) < distance(y); });
  };
  const int64_t old_step = nearest(halves->begin(), halves->end() - 1, [&](const HistoryHalves& pair) {
                             return std::abs(pair.a.moment.tokens - wanted);
                           })->a.moment.step;
  const auto old_entry = nearest(entries->begin(), entries->end() - 1,
                                 [&](const HistoryEntry& entry) { return std::abs(entry.moment.step - old_step); });
  const auto then = History::load(*old_entry), now = History::load(entries->back());
  const auto loaded = history_.load_halves(old_step, entries->back().moment.step);
  if (!then.ok() || !now.ok() || !loaded.ok() || !*loaded) return;
  const HalvesThenAndNow& pair = **loaded;
  const auto report = find_drift({*then, &pair.old_a, &pair.old_b}, {*now, &pair.new_a, &pair.new_b});
  if (!report.ok()) return;
  metrics.drift_alerts = report->alerts;
  for (const WordDrift& word : report->moved)
    if (word.alert && metrics.drift_words.size() < 20) metrics.drift_words.push_back(word.word);
}

void StreamEvaluator::note(const Status& status) {
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  if (notes_.size() < kNotesMax && (notes_.empty() || notes_.back() != status.message()))
    notes_.push_back(status.message());
}

}  // namespace streamvec
