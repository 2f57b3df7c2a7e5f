#include "streamvec/train/cluster_start.h"

#include <xxhash.h>

#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include "streamvec/cluster/hybrid_node.h"
#include "streamvec/cluster/node.h"
#include "streamvec/cluster/ring_node.h"
#include "streamvec/train/cluster_network.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/counting.h"
#include "streamvec/train/stream_cluster.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {
namespace {

constexpr double kSilent_s = 3;  // nodes keep in touch every second
// Of a ring alone: nothing keeps the one that asks for pieces, and the character model has few, of a quarter of a
// second each.
constexpr PieceQueue::Ahead kAheadWithoutRows{.seconds = 0.25, .least = 2};

// Of words by slot.
template <typename Words>
uint64_t fingerprint(const TrainOptions& options, const Words& words, const Parameters& parameters) {
  uint64_t hash = mix(options.seed, static_cast<uint64_t>(parameters.dim()));
  for (Slot slot = 0; slot < words.size(); ++slot) {
    const std::string_view word = words.word(slot);
    hash = XXH3_64bits_withSeed(word.data(), word.size(), hash);
  }
  return hash;
}

// And of some rows.
uint64_t with_rows(uint64_t hash, const Parameters& parameters) {
  for (const Matrix* table : {&parameters.input.rows, &parameters.output.rows})
    for (int64_t i = 0; i < table->rows(); i += 1 + table->rows() / 64)
      hash = XXH3_64bits_withSeed(table->row(i), sizeof(float) * static_cast<size_t>(table->cols()), hash);
  if (parameters.rbsg == nullptr) return hash;
  for (const Rbsg::SharedTable& table : parameters.rbsg->shared_tables())
    hash = XXH3_64bits_withSeed(table.values->row(0), sizeof(float) * static_cast<size_t>(table.values->cols()), hash);
  return hash;
}

// Who takes part in what. Where nodes are found, all have that from one roster, and others may come later.
std::string roles_text(const ClusterSettings& settings) {
  if (settings.registry != nullptr) return "";
  return ", " + std::to_string(settings.nodes.size()) + " nodes, --servers " + std::to_string(settings.servers) +
         ", --shard " + settings.shard;
}

uint64_t with_text(uint64_t hash, const std::string& text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), hash);
}

// And of where the run stands: any of those who begin may come to lead, and say what of the text is left.
uint64_t with_place(uint64_t hash, const RunState& state) {
  hash = mix(hash, static_cast<uint64_t>(state.step));
  for (const PieceRange& range : state.finished_ahead)
    hash = mix(hash, static_cast<uint64_t>(range.begin), static_cast<uint64_t>(range.end));
  return hash;
}

}  // namespace

std::string place_text(const RunState& state) {
  return ", " + std::to_string(state.step) + " pieces passed before and " +
         std::to_string(piece_count(state.finished_ahead)) + " after these finished";
}

uint64_t vocabulary_fingerprint(const TrainOptions& options, const TrainingStart& start) {
  return fingerprint(options, start.vocabulary, start.parameters);
}

uint64_t cluster_fingerprint(const TrainOptions& options, const TrainingStart& start) {
  const uint64_t rows = with_rows(vocabulary_fingerprint(options, start), start.parameters);
  return with_text(with_place(rows, start.state), roles_text(options.cluster));
}

namespace {

// How strongly a trained word, at rate 1, draws each row to where it rests (SyncOptions::pull): by the pairs that it is
// expected to meet, positives and negatives. The factor stands for the curvature of a pair's loss; it was found by
// trial on held-out loss, MTurk and MSR (docs/BENCHMARKS.md, Cluster): less and late answers overshoot, more and nodes
// learn too little from each other. Rare rows' longer steps (vocab/row_pace.h) are not in it: counted as if they were
// short, what several nodes learn of a rare word adds up, which is what it needs.
constexpr double kPullOfPair = 0.005;

}  // namespace

std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, const Vocabulary& vocabulary) {
  std::vector<double> counts(static_cast<size_t>(vocabulary.size()));
  for (Slot slot = 0; slot < vocabulary.size(); ++slot)
    counts[static_cast<size_t>(slot)] = static_cast<double>(vocabulary.count(slot));
  return row_pulls(options, model, counts);
}

std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, std::span<const double> counts) {
  const Subsampling subsampling(counts, options.sample);
  const std::vector<double> drawn = unigram_probabilities(counts);
  const double tokens = std::max(std::accumulate(counts.begin(), counts.end(), 0.0), 1.0);
  const double pairs = model == "cbow" ? 1 : options.window + 1;  // of a centre; windows are drawn
  std::vector<double> share(drawn.size());                        // of the words that are trained on
  for (size_t slot = 0; slot < share.size(); ++slot)
    share[slot] = counts[slot] / tokens * subsampling.probability(static_cast<Slot>(slot));
  const double kept = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<float> pulls;
  for (size_t slot = 0; slot < share.size(); ++slot) {
    const double input = share[slot] * (1 + options.negatives);
    const double output = share[slot] + options.negatives * kept * drawn[slot];
    pulls.push_back(static_cast<float>(kPullOfPair * pairs * input));
    pulls.push_back(static_cast<float>(kPullOfPair * pairs * output));
  }
  return pulls;
}

std::string cluster_fingerprint_text(const TrainOptions& options, const TrainingStart& start) {
  return std::to_string(start.vocabulary.size()) + " words of " + std::to_string(start.parameters.dim()) +
         " dimensions, --seed " + std::to_string(options.seed) + roles_text(options.cluster);
}

namespace {

// As short as one would type it, and no other number's text.
std::string typed(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string typed(const HalfLife& half_life) {
  if (std::isinf(half_life.value)) return "never";
  return typed(half_life.value) + (half_life.seconds ? "s" : "");
}

// Whether the text is a file's or a stream's.
std::string pair_options_text(const TrainOptions& options) {
  std::ostringstream text;
  text << ", --optimizer " << options.optimizer << ", --window " << options.window << ", --negatives "
       << options.negatives << ", --sample " << typed(options.sample) << ", --pace " << typed(options.pace)
       << ", --batch " << options.batch;
  return text.str();
}

// Of the character model, which a checkpoint may have made otherwise than the options say.
std::string encoder_text(const ClusterSettings& settings, const Parameters& parameters) {
  if (parameters.rbsg == nullptr) return "";
  const RbsgOptions& made = parameters.rbsg->options();
  return ", --hidden " + std::to_string(made.hidden) + ", --char-dim " + std::to_string(made.character_dim) +
         ", --cell " + (made.cell == RecurrentCell::kGru ? "gru" : "lstm") + ", " +
         (settings.words_min > 0 ? "" : "no ") + "--sync-words";
}

// Of streams, whose words are compared only as they come. Files of stop words and lemmas may lie elsewhere on each
// node.
std::string stream_options_text(const TrainOptions& options) {
  const TokenizerOptions& tokenizer = options.tokenizer;
  std::ostringstream text;
  text << ", --lr " << (options.lr ? typed(*options.lr) : "as usual") << pair_options_text(options) << ", --min-count "
       << options.min_count << ", --half-life " << typed(options.stream.half_life) << ", --replay "
       << options.stream.replay << ", --replay-ratio " << typed(options.stream.replay_ratio) << ", --tokenizer "
       << (tokenizer.split == TokenizerOptions::Split::kWords ? "words" : "whitespace") << ", "
       << (tokenizer.fold_case ? "no " : "") << "--keep-case, " << (tokenizer.nfkc ? "no " : "") << "--no-nfkc, --stem "
       << (options.stem.empty() ? "none" : options.stem);
  return text.str();
}

}  // namespace

std::string step_options_text(const TrainOptions& options, const TrainingStart& start) {
  return ", --lr " + typed(start.lr) + ", --schedule " + options.schedule + pair_options_text(options) + ", --epochs " +
         std::to_string(options.epochs);
}

namespace {

// The words' rows, for a ring: pulls of a table are every other one of row_pulls().
void add_rows(Combine combine, TrainingStart& start, RingOptions& ring) {
  Matrix* const tables[] = {&start.parameters.input.rows, &start.parameters.output.rows};
  for (size_t table = 0; table < 2; ++table) {
    DenseTable dense;
    dense.live = tables[table];
    dense.combine = combine;
    dense.against = 1 - static_cast<int64_t>(table);
    dense.locks = &start.parameters.locks;
    dense.is_output = table == 1;
    for (size_t key = table; key < start.row_pulls.size(); key += 2) dense.pull.push_back(start.row_pulls[key]);
    ring.tables.push_back(std::move(dense));
  }
}

RingOptions::Form ring_form(const std::string& codec) {
  if (codec == "fp32") return RingOptions::Form::kWhole;
  return codec == "fp16" ? RingOptions::Form::kBf16 : RingOptions::Form::kFewBits;
}

// A round of the ring follows every batch, or comes when so many words were trained as were asked for.
void take_turns(const ClusterSettings& settings, const Turns::Options& turns, Rbsg& rbsg, RingOptions& ring) {
  ring.words_min = settings.words_min;
  if (settings.ring_rank == 0) ring.form = ring_form(settings.codec);
  ring.turns = std::make_shared<Turns>(turns);
  rbsg.take_turns(ring.turns);
  ring.team = &rbsg.team();
  ring.with_tables = [&rbsg](const std::function<void()>& use) {
    const auto held = rbsg.lock_values();
    use();
  };
}

// The changes of the character model's encoders: each matrix as a whole, since no row of it is one word's.
void add_encoders(const ClusterSettings& settings, Combine combine, Rbsg& rbsg, RingOptions& ring) {
  for (const Rbsg::SharedTable& table : rbsg.shared_tables()) {
    DenseTable dense;
    dense.live = table.values;
    dense.grows = table.grows;
    dense.combine = combine;
    dense.by_row = false;
    dense.rank = settings.ring_rank;
    ring.tables.push_back(std::move(dense));
  }
  Turns::Options turns;
  if (settings.words_min > 0) {
    turns.patience = 0;  // many batches pass between two rounds
  } else if (settings.staleness == 0) {
    turns = {.patience = 1e9, .wait_max_s = 2 * settings.dead_after_s};
  }
  take_turns(settings, turns, rbsg, ring);
}

// Whether all nodes make one step, or each one of its own and then tells what has changed. Of many batches as one Muon
// learns nearly as much as of each, if the rate falls; Adam does not. What is asked for beside that has a meaning for
// changes alone.
bool steps_together(const ClusterSettings& settings, Combine combine, const Rbsg& rbsg) {
  return rbsg.options().muon && settings.words_min == 0 && settings.ring_rank == 0 && combine == Combine::kDamped &&
         !settings.staleness;
}

void add_shared_step(const TrainOptions& options, Rbsg& rbsg, RingOptions& ring) {
  ring.slopes = &rbsg.share_slopes(options.batch > 0 ? options.batch : Rbsg::kBatchPairs);
  take_turns(options.cluster, {.always = true}, rbsg, ring);
}

// How often words were met, which the hybrid model's generator goes by: sums. The generator itself is made of rows and
// counts, so that nothing else has to travel.
Status add_counts(Hybrid& hybrid, RingOptions& ring) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix made, Matrix::make(hybrid.words(), 1));
  auto counts = std::make_shared<Matrix>(std::move(made));
  const auto take_up = [&hybrid, counts] {
    std::vector<float> met(static_cast<size_t>(counts->rows()));
    hybrid.copy_met(met);
    for (int64_t slot = 0; slot < counts->rows(); ++slot) *counts->row(slot) = met[static_cast<size_t>(slot)];
    return met;
  };
  take_up();  // what all have met before they went on is nobody's change
  DenseTable dense;
  dense.live = counts.get();
  dense.combine = Combine::kSum;
  ring.tables.push_back(std::move(dense));
  ring.with_tables = [&hybrid, counts, take_up](const std::function<void()>& use) {
    std::vector<float> met = take_up();
    use();
    for (int64_t slot = 0; slot < counts->rows(); ++slot)
      met[static_cast<size_t>(slot)] = *counts->row(slot) - met[static_cast<size_t>(slot)];
    hybrid.add_met(met);
  };
  return {};
}

RingOptions ring_options(const TrainOptions& options, int32_t threads) {
  RingOptions ring;
  const PushInterval interval = push_interval(options.cluster, 0);
  ring.words_min = interval.words_min;
  ring.words_max = interval.words_max;
  ring.dead_after_s = options.cluster.dead_after_s;
  // By then who is dead has long been left out, two leaders one after the other included.
  ring.unheard_after_s = (options.cluster.registry != nullptr ? 4 : 2) * options.cluster.dead_after_s;
  ring.threads = threads;
  ring.joins = options.cluster.joins;
  return ring;
}

// What all nodes must have alike: words, and what is said of the rest.
void set_fingerprint(uint64_t words, const std::string& text, ClusterOptions& cluster) {
  cluster.fingerprint_of = text;
  cluster.fingerprint = with_text(words, text);
}

// Of those who take part, whether they keep rows or not.
ClusterOptions member_options(const ClusterSettings& settings, int32_t threads) {
  ClusterOptions cluster;
  cluster.workers = cluster_nodes(settings, 0, settings.workers());
  cluster.servers = cluster.workers;
  if (settings.servers > 0) cluster.servers = cluster_nodes(settings, settings.workers(), settings.servers);
  cluster.dead_after_s = settings.dead_after_s;
  cluster.threads = threads;
  return cluster;
}

// For tables of `rows` rows at most. `words`: of a node, as push_interval() has it.
Result<ClusterOptions> owner_options(const TrainOptions& options, Parameters& parameters, int64_t rows, int64_t words,
                                     const std::vector<float>& row_pulls, int32_t threads) {
  const ClusterSettings& settings = options.cluster;
  ClusterOptions cluster = member_options(settings, threads);
  STREAMVEC_ASSIGN_OR_RETURN(cluster.sync.scheme, scheme_of(settings, parameters.dim()));
  cluster.sync.dim = parameters.dim();
  cluster.sync.key_end = static_cast<RowKey>(2 * rows);
  cluster.sync.change_min = SyncOptions::kTrainedChangeMin;
  cluster.sync.pull = &row_pulls;
  cluster.sync.locks = &parameters.locks;
  const PushInterval interval = push_interval(settings, words);
  cluster.words_min = interval.words_min;
  cluster.words_max = interval.words_max;
  cluster.talking_share = talking_share_of(settings.workers());
  parameters.crew = std::make_unique<Crew>(threads - 1);
  cluster.crew = parameters.crew.get();
  return cluster;
}

// Another may take the leader's place, and others may come later.
void use_registry(const ClusterSettings& settings, bool joinable, ClusterOptions& cluster) {
  if (settings.registry == nullptr) return;
  cluster.joinable = joinable;
  cluster.joins = settings.joins;
  cluster.registry = settings.registry;
  cluster.leader = settings.leader;
  for (size_t i = 0; i < settings.nodes.size(); ++i)
    cluster.addresses[node_of(settings, static_cast<int32_t>(i))] = settings.nodes[i];
}

std::string sync_options_text(const ClusterSettings& settings) {
  std::ostringstream text;
  text << ", --sync " << settings.sync << ", --combine " << settings.combine << ", --codec " << settings.codec
       << ", --staleness " << (settings.staleness ? std::to_string(*settings.staleness) : "as usual") << ", --backups "
       << settings.backups << ", --group " << settings.group << ", --ring-rank " << settings.ring_rank;
  return text.str();
}

// Hands the text out piece by piece, from where the run stands on.
Status add_text(const TrainOptions& options, TrainingStart& start, ClusterOptions& cluster) {
  const RunState& state = start.state;
  STREAMVEC_ASSIGN_OR_RETURN(cluster.text, pieces_to_train(options, start));
  cluster.finished = finished_pieces(state, cluster.text);
  cluster.trained_before = {state.tokens, state.pairs, 0, 0};
  std::ostringstream text;
  text << cluster.fingerprint_of << step_options_text(options, start) << ", " << start.epoch_pieces
       << " pieces of text, --model " << start.model << encoder_text(options.cluster, start.parameters)
       << sync_options_text(options.cluster);
  set_fingerprint(vocabulary_fingerprint(options, start), text.str(), cluster);
  cluster.fingerprint_of += place_text(state);  // which those need not have alike who join later
  return {};
}

template <typename Seam, typename Node>
Result<std::unique_ptr<Seam>> as(Result<std::unique_ptr<Node>> node) {
  if (!node.ok()) return node.status();
  return std::unique_ptr<Seam>(std::move(*node));
}

}  // namespace

Result<PieceRange> pieces_to_train(const TrainOptions& options, TrainingStart& start) {
  if (start.epoch_pieces < 0) {
    STREAMVEC_ASSIGN_OR_RETURN(TextPieces pieces, count_pieces(*start.source, start.state.cursor));
    start.epoch_pieces = pieces.all;
    start.trail = std::move(pieces.trail);
    start.first_piece = start.state.epoch * pieces.all + pieces.before;
  }
  return PieceRange{start.first_piece, options.epochs * start.epoch_pieces};
}

std::vector<PieceRange> finished_pieces(const RunState& state, const PieceRange& text) {
  return renumbered(state.finished_ahead, {0, text.end - text.begin}, text.begin);
}

Result<std::unique_ptr<Synchronizer>> join_cluster(const TrainOptions& options, TrainingStart& start) {
  const ClusterSettings& settings = options.cluster;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, open_transport(settings));
  STREAMVEC_ASSIGN_OR_RETURN(const Combine combine, parse_combine(settings.combine));
  start.row_pulls = row_pulls(options, start.model, start.vocabulary);
  Parameters& parameters = start.parameters;
  RingOptions ring = ring_options(options, start.threads);
  const bool rows_in_ring = settings.sync == "ring" && parameters.rbsg == nullptr;
  if (rows_in_ring) add_rows(combine, start, ring);
  if (Rbsg* rbsg = parameters.rbsg.get(); rbsg != nullptr)
    steps_together(settings, combine, *rbsg) ? add_shared_step(options, *rbsg, ring)
                                             : add_encoders(settings, combine, *rbsg, ring);
  if (parameters.hybrid != nullptr) {
    parameters.hybrid->set_distilling_nodes(combine == Combine::kMean ? 1 : settings.workers());
    STREAMVEC_RETURN_IF_ERROR(add_counts(*parameters.hybrid, ring));
  }
  ClusterOptions members = member_options(settings, start.threads);
  std::vector<Matrix*> tables;
  if (!rows_in_ring && parameters.rbsg == nullptr) {
    const int64_t words = start.vocabulary.tokens() * options.epochs / settings.workers();
    STREAMVEC_ASSIGN_OR_RETURN(
        members, owner_options(options, parameters, parameters.rows(), words, start.row_pulls, start.threads));
    tables = {&parameters.input.rows, &parameters.output.rows};
  }
  if (tables.empty()) members.ahead = kAheadWithoutRows;
  members.rows = cluster_fingerprint(options, start);
  members.fingerprint_of = cluster_fingerprint_text(options, start);
  STREAMVEC_RETURN_IF_ERROR(add_text(options, start, members));
  use_registry(settings, true, members);
  if (ring.keeps_nothing()) return as<Synchronizer>(ClusterNode::start(members, std::move(transport), tables));
  return as<Synchronizer>(HybridNode::start(members, tables, ring, std::move(transport)));
}

Result<std::unique_ptr<StreamSynchronizer>> join_stream(const TrainOptions& options, const std::string& model,
                                                        const StreamVocabulary& vocabulary, Parameters& parameters,
                                                        const std::vector<float>& row_pulls, int32_t threads,
                                                        StreamExchange& exchange) {
  const ClusterSettings& settings = options.cluster;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, open_transport(settings));
  ClusterOptions cluster = member_options(settings, threads);
  const bool has_rows = parameters.rbsg == nullptr;
  if (has_rows) {
    STREAMVEC_ASSIGN_OR_RETURN(
        cluster, owner_options(options, parameters, static_cast<int64_t>(row_pulls.size() / 2), 0, row_pulls, threads));
    // Rows of new words, of which no pull is known, are due all the time. Those of a text that was counted are due when
    // training has moved them: it need not say so (docs/BENCHMARKS.md, Rows that need no mark).
    parameters.changed = std::make_unique<RowMarks>(int64_t{cluster.sync.key_end});
    cluster.changed = parameters.changed.get();
    cluster.sync.generations = &exchange.generations();
  }
  cluster.stream = &exchange;
  // Those who join have no words yet; words and rows are compared by those who begin.
  cluster.rows = with_rows(fingerprint(options, vocabulary, parameters), parameters);
  std::ostringstream text;
  text << "a stream into at most " << options.vocab_max << " words of " << parameters.dim() << " dimensions, --seed "
       << options.seed << ", --model " << model << encoder_text(settings, parameters) << ", --ingest "
       << settings.ingest << (settings.division.empty() ? "" : ", " + settings.division) << roles_text(settings)
       << stream_options_text(options) << sync_options_text(settings);
  set_fingerprint(0, text.str(), cluster);
  cluster.fingerprint_of += ", " + std::to_string(vocabulary.size()) + " words known before";
  use_registry(settings, has_rows, cluster);
  if (has_rows)
    return as<StreamSynchronizer>(
        ClusterNode::start(cluster, std::move(transport), {&parameters.input.rows, &parameters.output.rows}));
  STREAMVEC_ASSIGN_OR_RETURN(const Combine combine, parse_combine(settings.combine));
  RingOptions ring = ring_options(options, threads);
  if (!only_reads(settings)) add_encoders(settings, combine, *parameters.rbsg, ring);
  for (const NodeId node : cluster_nodes(settings, settings.workers() - settings.ingest, settings.ingest))
    ring.outside.insert(node);
  return as<StreamSynchronizer>(HybridNode::start(cluster, {}, ring, std::move(transport)));
}

void add_cluster(const ClusterStats& cluster, TrainProgress& progress) {
  progress.nodes = cluster.nodes;
  progress.pushes = cluster.pushes;
  progress.bytes_sent = cluster.bytes_sent;
  progress.bytes_received = cluster.bytes_received;
  progress.waiting_s = cluster.waiting_s;
  progress.talking_s = cluster.talking_s;
  progress.finishing_s = cluster.finishing_s;
  progress.rows_pushed = cluster.rows_pushed;
  progress.rows_moved = cluster.rows_moved;
  progress.staleness_most = cluster.staleness_most;
  progress.notes.insert(progress.notes.end(), cluster.notes.begin(), cluster.notes.end());
  for (const ClusterMember& one : cluster.members)
    progress.members.push_back({static_cast<int32_t>(one.node), one.worker, one.server, one.leader,
                                one.taking_part ? one.silent_s > kSilent_s ? "silent" : "here" : "left out",
                                one.silent_s, one.figures.clock, one.staleness, one.figures.bytes_sent,
                                one.figures.bytes_received});
}

}  // namespace streamvec
