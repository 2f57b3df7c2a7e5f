// The loop that joins the seams: documents are read, tokenised, mapped to slots and trained on by every thread,
// counted against a schedule, and saved. One thread and one seed give one result, bit for bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/metrics_log.h"
#include "streamvec/ingest/stream_clock.h"
#include "streamvec/source/source.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {

// For text that is trained on as it comes: endless sources always are, others when `on` is set.
struct StreamOptions {
  bool on = false;
  HalfLife half_life;                            // shorter: follows the language faster, and forgets sooner
  std::string replay = "uniform";                // once (in order), uniform, loss, gradient (prioritised by these)
  double replay_ratio = 4;                       // times a chunk is trained on; more: learns more from thin streams
  int64_t replay_chunks = 65'536;                // held at most, of about 256 words
  bool drop_duplicates = false;                  // documents that nearly equal a recent one
  std::vector<std::string> languages;            // wanted (en, ko, ...); none: all
  double evaluate_every_s = 30;                  // between two lines of DIR/metrics.jsonl; 0: only at the end
  int64_t snapshot_every = 5'000'000;            // tokens between two snapshots of DIR/history; 0: no history
  bool drift = true;                             // train both halves, to tell drift from chance: doubles the work
  std::vector<std::string> similarity, analogy;  // sets to measure on the way
};

// Of the glove model.
struct GloveOptions {
  double x_max = 100;        // pairs this frequent and more so weigh 1
  double alpha = 0.75;       // rarer ones (x / x_max)^alpha; less: they count for more
  int64_t memory_mb = 1024;  // for co-occurrences; files: the rest goes to temporary files; streams: is dropped
};

class InprocNetwork;  // transport/inproc.h
class Registry;       // cluster/registry.h

// A cluster, all nodes of which read the same sources and train on their share of them; of streams each reads its own.
struct ClusterSettings {
  std::vector<std::string> nodes;    // host:port of each, workers first; none: no cluster
  std::vector<uint32_t> ids;         // of each; none: 1, 2, ...
  bool joins = false;                // the others train already, and this node joins them
  uint32_t leader = 0;               // of them; 0: the first
  Registry* registry = nullptr;      // borrowed: where it is written who leads and takes part; with it nodes may join
  std::string job;                   // names this run of them, with `registry`
  InprocNetwork* network = nullptr;  // borrowed: they are threads of this process, and have no addresses
  bool mpi = false;                  // they are the ranks of this MPI program, and have no addresses
  int32_t rank = 0;                  // which of them this is
  int32_t servers = 0;               // how many of the last only own rows; 0: the workers do
  int32_t ingest = 0;                // of streams: how many workers, the last, only read, for the others
  bool divide = false;               // of streams: all name the same sources, each of which one node reads
  std::string division;              // of what, as train() fills it in: all nodes have to agree on it
  std::string sync = "bsp";        // bsp, backup, ssp, softsync, async (sync/scheme.h), ring, hybrid, auto, sandblaster
  std::string combine = "damped";  // damped, adasum, mean, sum
  std::string codec = "auto";      // auto, onebit, fourbit, strom, fp16, fp32
  // Of ssp: how far ahead a node may be; unset: 2. Of rbsg's ring: unset, on files, all nodes make one step of a batch
  // of each (sync/shared_step.h); else each steps by itself, and with 0 waits after every batch for what others did.
  std::optional<int64_t> staleness;
  int64_t ring_rank = 0;       // of a ring: matrices as products of two thin ones of that rank; 0: as they are
  std::string shard = "no";    // rows: each lies with its owner alone; columns: some with each; no: all with all
  int32_t lbfgs_history = 10;  // of sandblaster: steps that L-BFGS remembers
  int32_t backups = 1;         // of backup
  int32_t group = 2;           // of softsync
  int64_t words_min = 0;       // trained on a node between two pushes at least; 0: by the length of the run
  double dead_after_s = 10;
  std::string ca, certificate, key;  // PEM files of mutual TLS; all or none
  std::string token;                 // that all nodes share; on addresses that others reach, this or TLS is needed

  bool on() const { return !nodes.empty(); }
  int32_t workers() const { return static_cast<int32_t>(nodes.size()) - servers; }
};

struct TrainOptions {
  std::optional<std::string> model;  // one of model_names() (model/model.h); unset: what the directory holds, else sgns
  std::optional<int64_t> dim;        // unset: what the directory holds, else 200
  int32_t window = 5;                // words to each side, each centre draws 1..window
  int32_t negatives = 10;            // negative samples weighed against each pair
  double sample = 2e-3;              // subsampling threshold of frequent words; 0 keeps all
  double pace = 8;                   // how much longer rare words' steps may be (vocab/row_pace.h); 1: all alike
  int64_t min_count = 3;             // rarer words are left out
  int32_t epochs = 0;                // 0: 15 for glove on files, 50 (steps) for sandblaster, else 1
  int32_t threads = 0;               // 0: one per core
  std::optional<double> lr;          // unset: the optimiser's own default
  std::string schedule = "linear";   // linear (to nothing), constant, cosine
  std::string optimizer = "sgd";     // sgd, adagrad, adam; rbsg: adam or muon, which sgd stands for there
  std::string kernel = "auto";       // auto, reference, simd, bf16, amx
  std::string device = "cpu";        // cpu, cuda, or auto: cuda where it is there and can train what is asked for
  std::string table = "fp32";        // how a card keeps rows: fp32 or bf16
  std::optional<std::string> products;  // of rbsg's levels on a card: tf32 or bf16; unset: bf16
  int32_t batch = 0;                    // what is taken at one point: centre words, pairs for rbsg; 0: its own best
  int64_t vocab_max = 0;                // most words kept; 0: no limit
  // Of the subword model (text/character_ngrams.h); unset: what the directory holds, else 3, 6 and 2,000,000.
  std::optional<int32_t> minn, maxn;
  std::optional<int64_t> bucket;
  std::optional<bool> jamo;  // Hangul by jamo; unset: what the directory holds, else not
  GloveOptions glove;
  // Of the rbsg model (model/rbsg.h); unset: what the directory holds, else 512, 128 and lstm.
  std::optional<int32_t> hidden, character_dim;
  std::optional<std::string> cell;  // lstm or gru
  uint64_t seed = 1;
  std::optional<double> checkpoint_every_s;  // 0: only at the end; unset: a stream every minute, else 0
  TokenizerOptions tokenizer;
  std::vector<std::string> stop_words;  // each "english" or a file, a word a line
  std::string stem;                     // a Snowball language; "" none
  std::string lemmas;                   // a file of "form<TAB>lemma" lines; "" none
  StreamOptions stream;
  ClusterSettings cluster;
};

struct Snapshot;  // model/snapshot.h

// A node of a cluster, as the one that reports sees it.
struct NodeProgress {
  int32_t node = 0;
  bool worker = false, server = false, leader = false;
  std::string state;                             // "here", "silent" (for longer than others usually are), "left out"
  double silent_s = 0;                           // since something came from it
  int64_t clock = -1;                            // pushes it has made; -1 not known, as of all that follows
  int64_t staleness = -1;                        // clocks behind the furthest
  int64_t bytes_sent = -1, bytes_received = -1;  // on the wire, by it
};

// What the progress line and --json show.
struct TrainProgress {
  int64_t tokens = 0;  // raw tokens read; of glove, those of the text once for each iteration over its co-occurrences
  int64_t pairs = 0;   // (centre, context) pairs trained; of glove, cells
  double seconds = 0;  // training time without counting or loading
  double loss = 0;  // mean loss per pair (glove: cost per cell) since the last report (at the end: of the last epoch)
  double lr = 0;
  double fraction = -1;  // of the whole run; -1 when its length is unknown
  int32_t epoch = 0;
  int64_t vocab = 0;
  int64_t dim = 0;
  std::string model;
  std::string kernel;                                                  // the one that ran
  int64_t bytes_replaced = 0, words_dropped = 0, updates_refused = 0;  // bad input met on the way
  int64_t documents = -1;                                              // of a stream; -1: it was none
  double prequential_loss = 0;  // of a stream, since the last report: on text before it is trained on
  std::string bottleneck;       // of a stream: what the rest waits for
  // Of a stream, since the last report: how often replay gave out what came in, what it holds, how the sources fare.
  double replay_ratio = kNotMeasured;
  int64_t replay_chunks = -1;
  std::vector<SourceMetrics> sources;
  // Of a cluster, at the end: how many nodes took part, and this one's traffic.
  int32_t nodes = 1;
  int64_t pushes = 0, bytes_sent = 0, bytes_received = 0;
  double waiting_s = 0, talking_s = 0, finishing_s = 0;
  int64_t rows_pushed = 0, rows_moved = 0;
  int64_t staleness_most = 0;  // clocks that it was ahead of the slowest while it trained
  std::vector<NodeProgress> members;
  std::vector<std::string> notes;  // sources that were empty, checkpoints that were skipped, ...
};

// None of them may throw: an exception ends the program.
struct TrainHooks {
  std::function<void(const TrainProgress&)> progress;             // called about twice a second from one thread
  std::function<void(int64_t tokens, double fraction)> counting;  // the same while the vocabulary is counted
  const std::atomic<bool>* stop = nullptr;                        // set: save and return what there is
  // Copies of the model for those who watch: now and then, and at the end. From the thread of `progress`.
  std::function<void(std::shared_ptr<const Snapshot>)> snapshot = {};
  double snapshot_every_s = 5;                             // at least; less often where copies are dear
  std::function<void(const StreamMetrics&)> metrics = {};  // of a stream: every line of metrics; from another thread
};

// Learns from `sources` (paths or "-") into the checkpoint directory `out`, continuing what it holds: a run that was
// stopped goes on exactly where it was (same sources and options; threads, kernel and checkpoint_every_s may differ);
// otherwise the vectors there are trained further on the new text, and its new words are added.
// Another model or dim than the directory's: kFailedPrecondition with both values, and nothing is changed.
// On an error in the middle (a damaged file, a full disk) what was learnt is saved where that is possible.
Result<TrainProgress> train(const TrainOptions& options, const std::vector<std::string>& sources,
                            const std::string& out, const TrainHooks& hooks);
// For train(options, {"a.txt", "b.txt"}, ...), which could be meant for the one below as well.
inline Result<TrainProgress> train(const TrainOptions& options, std::initializer_list<std::string> sources,
                                   const std::string& out, const TrainHooks& hooks) {
  return train(options, std::vector<std::string>(sources), out, hooks);
}
// The same with sources of the caller's own (source/document_source.h makes one of documents at hand), which go by
// their name(). kInvalidArgument: there are none.
Result<TrainProgress> train(const TrainOptions& options, std::vector<std::unique_ptr<Source>> sources,
                            const std::string& out, const TrainHooks& hooks);

}  // namespace streamvec
