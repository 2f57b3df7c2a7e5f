// Joins a training run to its cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// Starts this node, which then looks for the others. The parameters are borrowed.
Result<std::unique_ptr<Synchronizer>> join_cluster(const TrainOptions& options, TrainingStart& start);

// The same for a stream, whose words the exchange shares. All is borrowed; as many rows as there will be words at most.
Result<std::unique_ptr<StreamSynchronizer>> join_stream(const TrainOptions& options, const std::string& model,
                                                        const StreamVocabulary& vocabulary, Parameters& parameters,
                                                        const std::vector<float>& row_pulls, int32_t threads,
                                                        StreamExchange& exchange);
// What a report says of the cluster.
void add_cluster(const ClusterStats& cluster, TrainProgress& progress);

// For those who join in a way of their own: what all nodes must agree on (words by their slots, where the rows begin,
// and where the run stands), and the same in words.
uint64_t vocabulary_fingerprint(const TrainOptions& options, const TrainingStart& start);  // only the words
uint64_t cluster_fingerprint(const TrainOptions& options, const TrainingStart& start);
std::string cluster_fingerprint_text(const TrainOptions& options, const TrainingStart& start);
std::string place_text(const RunState& state);  // where the run stands, to be read after the latter
// What else those must agree on who take every step together, to be read after them.
std::string step_options_text(const TrainOptions& options, const TrainingStart& start);

// The pieces of text that are left of the run, over all epochs, where they are handed out; counts those of an epoch if
// nobody has. And which of them are finished already.
Result<PieceRange> pieces_to_train(const TrainOptions& options, TrainingStart& start);
std::vector<PieceRange> finished_pieces(const RunState& state, const PieceRange& text);

// How strongly training draws each row to where it rests (SyncOptions::pull).
std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, const Vocabulary& vocabulary);
std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, std::span<const double> counts);

}  // namespace streamvec
