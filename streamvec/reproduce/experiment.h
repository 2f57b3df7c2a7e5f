// The experiment of 2018 (Distributed streaming text embedding, Seoul National University, December 2018): which rows
// it had, what it reported, and which rows are run to hold against it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/eval/pip.h"
#include "streamvec/eval/similarity.h"

namespace streamvec {

enum class Arm {
  kPublished,  // as its program did it, faults included (cluster_2018.h; rbsg by `train` with its optimiser and rate)
  kSound,      // by `streamvec train` and `launch`
};

enum class Setting {
  kOne,      // one process with as many threads as a node of the clusters has (2018: one GPU)
  kSeveral,  // one process with those of all nodes (2018: four GPUs)
  kSync,     // a cluster that keeps in step
  kAsync,    // one that does not wait
};

struct RowPlan {
  Arm arm = Arm::kSound;
  std::string model = "sgns";  // or rbsg
  Setting setting = Setting::kOne;
  int64_t dim = 200;
  int64_t batch = 1024;  // pairs computed together, of each node; 0: what suits the kernel (sound rows only)

  std::string name() const;          // "sound-sgns-200-8192-sync": what --only looks into
  std::string setting_text() const;  // "cluster, synchronous"
};

struct ExperimentOptions {
  bool as_published = false;
  bool quick = false;  // dim 50 and batch 1024 alone
  std::string only;    // rows whose name has this in it; "" all
  int32_t nodes = 2;   // of clusters; threads of kSeveral
  int32_t node_threads = 1;
  int64_t epochs = 16;
  uint64_t seed = 1;
  std::string stem;
  std::string device = "cpu";  // where rows train that need neither a cluster nor 2018's large batches of sgns
};

// As published first, each model by dim, batch and setting. What 2018 did not run is not run as published either.
std::vector<RowPlan> plan_rows(const ExperimentOptions& options);

// What 2018 reported; NaN where it did not.
struct Figures2018 {
  double seconds = 0;  // an epoch of kPairs2018 pairs
  double pairs_per_s = 0;
  double pip = 0;  // best over the epochs, in its own form
  bool converged = true;
};
inline constexpr double kPairs2018 = 3.349e6;
inline constexpr int64_t kVocabulary2018 = 8'113;
inline constexpr int64_t kEpochs2018 = 300;
// How fast its network was while it summed up slopes: bytes of both tables through the seconds that a step took longer.
inline constexpr double kNetworkBytesPerSecond2018 = 28.8e6;
std::optional<Figures2018> figures_2018(const RowPlan& plan);

// Epochs after which a row is measured: 1, 2, 4 ... and the last.
std::vector<int64_t> measured_epochs(int64_t epochs);

// What follows the program's name for a row that `train` runs, as all sound ones and rbsg as published: a training of
// `epochs` epochs on `corpus` into `out`.
std::vector<std::string> train_command(const RowPlan& plan, const ExperimentOptions& options, int64_t epochs,
                                       const std::string& corpus, const std::string& out);

// Words as a shell takes them.
std::string shell_text(const std::vector<std::string>& words);

struct RowPoint {
  int64_t epochs = 0;
  PipFigures pip;
  double loss = 0;  // mean a pair while the last epoch was trained
};

struct RowResult {
  RowPlan plan;
  std::string command;  // that runs this row alone
  std::vector<RowPoint> points;
  double pairs = 0;                // of an epoch
  double pairs_per_s = 0;          // of the longest training, measuring not included
  double wire_bytes_per_pair = 0;  // sent by all nodes; 0: no cluster
  // As published, of clusters: seconds of an epoch of kPairs2018 pairs if steps had waited for the network of 2018.
  double seconds_on_their_network = 0;
  std::string kernel;
  std::vector<SimilarityResult> similarity;
  std::string failure;   // why there are no figures, or none of more epochs; "": nothing has failed
  bool stopped = false;  // before its last epoch, by who ran it

  double seconds_per_epoch() const { return pairs_per_s > 0 ? kPairs2018 / pairs_per_s : 0; }  // of kPairs2018 pairs
  // The least of the form of 2018 over the epochs, as it reported. REQUIRES: points is not empty.
  double best_mean_square() const;
};

}  // namespace streamvec
