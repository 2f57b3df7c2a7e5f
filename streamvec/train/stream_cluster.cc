#include "streamvec/train/stream_cluster.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "streamvec/core/deadline.h"
#include "streamvec/core/json.h"
#include "streamvec/model/first_row.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/training_start.h"

namespace streamvec {
namespace {

constexpr std::chrono::milliseconds kFinishLook{20};
constexpr std::chrono::seconds kLeaveAfter{1};     // a node that is stopped alone: others may be stopping, too
constexpr std::chrono::seconds kCursorsWithin{5};  // else a node's sources stand where they stood at the last save

}  // namespace

bool only_reads(const ClusterSettings& cluster) {
  return cluster.on() && cluster.rank < cluster.workers() && cluster.rank >= cluster.workers() - cluster.ingest;
}

bool reads(const ClusterSettings& cluster) {
  return cluster.ingest == 0 || only_reads(cluster);
}

bool only_serves(const ClusterSettings& cluster) {
  return cluster.on() && cluster.rank >= cluster.workers();
}

Status restore_sources(const ClusterSettings& cluster, const Checkpoint& existing, Intake& intake) {
  const nlohmann::json places = stream_places_of(existing);
  if (existing.state.contains("stream"))  // no cursors at all: restore() says what is wrong
    return intake.restore(places.is_object() ? cursors_of(cluster, places) : existing.cursors);
  return places.is_object() ? intake.restore_places(cursors_of(cluster, places)) : Status();
}

Result<std::unique_ptr<StreamCluster>> StreamCluster::join(const TrainOptions& options, const std::string& model,
                                                           int32_t threads, Parts parts,
                                                           std::optional<StreamVocabulary> shared) {
  std::unique_ptr<StreamCluster> made(new StreamCluster(options, model, std::move(parts)));
  StreamCluster& self = *made;
  StreamVocabulary& vocabulary = self.parts_.vocabulary;
  const int64_t rows_max = self.parts_.parameters.options.rows_max;
  self.row_pulls_.assign(static_cast<size_t>(2 * rows_max), 0.0f);
  if (vocabulary.size() > 0) self.set_row_pulls();
  StreamExchange::Parts exchanged{vocabulary,
                                  &self.parts_.replay,
                                  [&self] { return self.parts_.intake.lock_vocabulary(); },
                                  self.parts_.start_rows,
                                  [&self] { self.set_row_pulls(); },
                                  [&options](RowKey key, uint64_t born, std::span<float> row) {
                                    if (key % 2 == 0) return draw_first_row(options.seed, born - 1, row);
                                    std::fill(row.begin(), row.end(), 0.0f);
                                  },
                                  !options.stream.half_life.seconds};
  if (const ClusterSettings& cluster = options.cluster; cluster.ingest > 0) {
    const std::vector<NodeId> readers = cluster_nodes(cluster, cluster.workers() - cluster.ingest, cluster.ingest);
    exchanged.readers = {readers.begin(), readers.end()};
    exchanged.sender = only_reads(cluster) ? &self.sender_ : nullptr;
    exchanged.receiver = only_reads(cluster) ? nullptr : &self.receiver_;
  }
  exchanged.hybrid = self.parts_.parameters.hybrid.get();
  std::optional<SharedVocabulary> lead;
  if (shared) lead.emplace(std::move(*shared), exchanged.clock_tokens);
  self.exchange_ = std::make_unique<StreamExchange>(std::move(exchanged), rows_max, std::move(lead));
  STREAMVEC_ASSIGN_OR_RETURN(self.node_, join_stream(options, model, vocabulary, self.parts_.parameters,
                                                     self.row_pulls_, threads, *self.exchange_));
  return made;
}

// By how frequent words are now, where all nodes' text is counted.
void StreamCluster::set_row_pulls() {
  const std::vector<float> pulls = row_pulls(options_, model_, parts_.vocabulary.weights());
  std::copy(pulls.begin(), pulls.end(), row_pulls_.begin());
}

void StreamCluster::start_relay() {
  if (options_.cluster.ingest == 0) return;
  relay_ = std::thread([this] { only_reads(options_.cluster) ? send_chunks() : take_chunks(); });
}

void StreamCluster::stop_relay() {
  relay_stop_ = true;
  sender_.close();
}

void StreamCluster::await_relay() {
  if (only_reads(options_.cluster)) parts_.replay.finish();
  if (relay_.joinable()) relay_.join();
}

// Of a node that only reads: chunks, each once, to those that train. When nobody takes them any more the intake still
// has to finish the document that it has begun.
void StreamCluster::send_chunks() {
  std::vector<ReplaySample> samples;
  for (bool more = true; more;) {
    samples.clear();
    const Result<int64_t> taken = parts_.replay.sample(16, Deadline::never(), samples);
    more = taken.ok() && *taken > 0;
    for (const ReplaySample& sample : samples)
      if (!sender_.send(*sample.item)) relay_over_ = true;
  }
  sender_.end();
  sender_.await_withdrawn();
  relay_over_ = true;
}

// As the intake does where it maps words.
void StreamCluster::renew_tables() {
  {
    const auto lock = parts_.intake.lock_vocabulary();
    if (!parts_.tables.stage(parts_.vocabulary)) return;
  }
  parts_.tables.build();
}

// Of the others: into replay, as it wants them.
void StreamCluster::take_chunks() {
  while (!relay_stop_ && !receiver_.over()) {
    NodeId from = 0;
    const auto stamp = [this] { return parts_.vocabulary.stamp(); };
    const auto item = receiver_.next(stamp, Deadline::after(kFinishLook), from);
    if (item == nullptr) continue;
    if (item->withdraws())
      parts_.replay.erase_record(item->record);
    else
      take_chunk(item);
    receiver_.taken(from);
  }
  parts_.replay.finish();
}

void StreamCluster::take_chunk(const std::shared_ptr<const ReplayItem>& item) {
  const auto known = [&](Slot slot) { return slot < parts_.parameters.options.rows_max; };
  if (!std::all_of(item->chunk.slots.begin(), item->chunk.slots.end(), known)) return;
  renew_tables();
  while (parts_.replay.insert(item, Deadline::after(kFinishLook)).code() == Code::kDeadlineExceeded && !relay_stop_) {
  }
}

void StreamCluster::help_to_save() {
  if (leads()) return;
  if (exchange_->cursors_wanted()) {
    const int64_t save = exchange_->wanted_save();
    parts_.intake.pause();
    if (exchange_->is_dividing()) parts_.intake.withhold_shared();
    exchange_->tell_cursors(own_cursors(), save);
    parts_.intake.resume();
  }
  if (exchange_->take_safe()) parts_.intake.commit();
}

void StreamCluster::divide_sources() {
  if (leads() && exchange_->division_due()) exchange_->ask_to_divide();
  if (leads() && exchange_->may_divide()) exchange_->tell_division(make_division());
  if (const std::optional<std::string> division = exchange_->take_division()) read_share(*division);
}

// A source is read by those that have it, and goes on where the furthest stood, also of those that are gone.
std::string StreamCluster::make_division() {
  parts_.intake.pause();
  parts_.intake.withhold_shared();
  nlohmann::json all = parts_.intake.state();
  parts_.intake.resume();
  std::map<NodeId, nlohmann::json> states = {{exchange_->self(), all}};
  for (const auto& [node, told] : exchange_->cursors())
    if (exchange_->members().count(node) > 0) states[node] = parse_json(told);
  add_cursors(all);
  const std::map<std::string, std::string> cursors = shared_cursors(all);
  std::map<std::string, std::vector<NodeId>> readers;
  for (const auto& [node, state] : states)
    for (const std::string& name : shared_sources(state)) readers[name].push_back(node);
  nlohmann::json division = nlohmann::json::array();
  for (const auto& [name, nodes] : readers) {
    const auto cursor = cursors.find(name);
    division.push_back(
        {{"name", name}, {"cursor", cursor != cursors.end() ? cursor->second : std::string()}, {"readers", nodes}});
  }
  return json_text(division);
}

void StreamCluster::read_share(const std::string& division) {
  for (const nlohmann::json& source : parse_json(division)) {
    const auto readers = source.value("readers", std::vector<uint64_t>());
    if (std::find(readers.begin(), readers.end(), exchange_->self()) != readers.end())
      parts_.intake.share(source.value("name", std::string()), source.value("cursor", std::string()),
                          {exchange_->self(), readers});
  }
}

std::string StreamCluster::own_cursors() const {
  return json_text(cursors_.named(options_.cluster, parts_.intake.state(), sender_.withdrawn()));
}

void StreamCluster::gather_cursors() {
  if (!all_) exchange_->gather_cursors(Deadline::after(kCursorsWithin));
}

void StreamCluster::go_on(bool saved) {
  if (saved) exchange_->saved();
  exchange_->go_on();
}

void StreamCluster::add_cursors(nlohmann::json& cursors) {
  for (const auto& [node, told] : exchange_->cursors()) cursors_.tell(told);
  cursors_.add_to(options_.cluster, cursors);
}

Status StreamCluster::part(const TrainedTotals& own, const std::atomic<bool>* stop,
                           const std::function<Status()>& meanwhile, std::string& note) {
  if (!leads()) exchange_->tell_cursors(own_cursors());
  std::optional<Deadline> leaves;
  for (;;) {
    const Result<TrainedTotals> all = node_->finish(own, Deadline::after(kFinishLook));
    if (all.ok()) return end(own, *all);
    if (all.status().code() != Code::kDeadlineExceeded) return all.status();
    STREAMVEC_RETURN_IF_ERROR(meanwhile());
    if (stop == nullptr || !stop->load()) continue;
    if (leads()) {
      exchange_->ask_to_stop();
      continue;
    }
    if (!leaves) leaves = Deadline::after(kLeaveAfter);
    if (!leaves->passed()) continue;
    note = "left the cluster, whose other nodes go on; rows that it had are theirs in " +
           std::to_string(static_cast<int64_t>(options_.cluster.dead_after_s)) + " s";
    return {};
  }
}

// All have finished, and one saves.
Status StreamCluster::end(const TrainedTotals& own, const TrainedTotals& told) {
  TrainedTotals all = told;
  if (!leads()) {
    STREAMVEC_RETURN_IF_ERROR(node_->await_saved());
    if (!leads() && options_.cluster.registry != nullptr) parts_.intake.commit();  // without one nobody waits for it
    if (!leads()) return {};
    STREAMVEC_ASSIGN_OR_RETURN(all, node_->finish(own));  // now as the leader's
  }
  all_ = all;
  return {};
}

}  // namespace streamvec
