#include "streamvec/train/shard_start.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <vector>

#include "streamvec/model/first_row.h"
#include "streamvec/sync/combiner.h"
#include "streamvec/train/cluster_network.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/vocab/row_pace.h"

namespace streamvec {

bool is_sharded(const TrainOptions& options) {
  return options.cluster.on() && options.cluster.shard != "no";
}

Status check_shards(const TrainOptions& options) {
  if (!is_sharded(options)) return {};
  const ClusterSettings& cluster = options.cluster;
  if (const std::string model = options.model.value_or("sgns"); model != "sgns")
    return error(Code::kUnimplemented, "--shard shares out the tables of --model sgns, not of ", model,
                 "; leave it out");
  if (options.optimizer != "sgd")
    return error(Code::kUnimplemented, "--shard is for --optimizer sgd, not ", options.optimizer,
                 ", whose state would have to be shared out, too");
  if (const ClusterSettings plain; cluster.combine != plain.combine || cluster.codec != plain.codec)
    return error(Code::kInvalidArgument, "--combine and --codec are for nodes with copies of their own, and --shard ",
                 "leaves them none; leave one of them out");
  if (cluster.shard == "columns" && cluster.servers > 0)
    return error(Code::kInvalidArgument, "--servers is ", cluster.servers,
                 ", and with --shard columns all nodes train; try --servers 0");
  if (cluster.sync != "bsp" && cluster.sync != "async")
    return error(Code::kInvalidArgument, "--shard adds changes to rows as they come, whatever --sync ", cluster.sync,
                 " asks for; leave one of them out");
  return {};
}

namespace {

// All nodes step on the same rows: what several do at once to a rare word's row overshoots by the length of its steps.
std::vector<float> pulls_of_steps(const TrainOptions& options, const TrainingStart& start) {
  const RowPace pace(start.vocabulary, row_pace_options(options, start.model, options.epochs));
  std::vector<float> pulls = row_pulls(options, start.model, start.vocabulary);
  for (Slot slot = 0; slot < start.vocabulary.size(); ++slot) {
    pulls[2 * static_cast<size_t>(slot)] *= pace.input(slot);
    pulls[2 * static_cast<size_t>(slot) + 1] *= pace.output(slot);
  }
  return pulls;
}

}  // namespace

Result<std::unique_ptr<ShardNode>> join_shards(const TrainOptions& options, TrainingStart& start) {
  const ClusterSettings& settings = options.cluster;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, open_transport(settings));
  ShardNodeOptions made;
  made.workers = cluster_nodes(settings, 0, settings.workers());
  made.owners = settings.servers > 0 ? cluster_nodes(settings, settings.workers(), settings.servers) : made.workers;
  made.row_end = static_cast<RowKey>(2 * start.vocabulary.size());
  made.dim = start.parameters.dim();
  made.dead_after_s = settings.dead_after_s;
  made.threads = start.threads;
  STREAMVEC_ASSIGN_OR_RETURN(made.text, pieces_to_train(options, start));
  made.finished = finished_pieces(start.state, *made.text);
  made.trained_before = {start.state.tokens, start.state.pairs, 0, 0};
  const std::string steps =
      step_options_text(options, start) + ", " + std::to_string(start.epoch_pieces) + " pieces of text";
  made.fingerprint = XXH3_64bits_withSeed(steps.data(), steps.size(), cluster_fingerprint(options, start));
  made.fingerprint_of = cluster_fingerprint_text(options, start) + place_text(start.state) + steps;
  Parameters& parameters = start.parameters;
  made.initial = [&](RowKey key, std::span<float> row) {
    const Table& table = key % 2 == 0 ? parameters.input : parameters.output;
    if (key / 2 < table.rows.rows())
      std::copy_n(table.rows.row(key / 2), row.size(), row.begin());
    else if (key % 2 == 0)
      draw_first_row(options.seed, key / 2, row);
  };
  STREAMVEC_ASSIGN_OR_RETURN(auto node, ShardNode::start(made, std::move(transport)));
  for (Table* table : {&parameters.input, &parameters.output}) table->rows = Matrix();
  if (settings.workers() * start.threads > 1) start.row_pulls = pulls_of_steps(options, start);
  return node;
}

ShardedOptions sharded_options(const TrainOptions& options, const ModelOptions& model, const TrainingStart& start) {
  ShardedOptions made;
  made.model = model;
  made.dim = start.parameters.dim();
  const int64_t at_once = int64_t{options.cluster.workers()} * start.threads;
  if (at_once > 1)
    made.share = [&start, at_once](uint32_t row, double trained, double square) {
      return damped_share(double{start.row_pulls[row]} * square * trained, at_once);
    };
  return made;
}

Result<TablesInFiles> gather_tables(ShardNode& node, int64_t rows, int64_t dim, const std::string& dir) {
  STREAMVEC_ASSIGN_OR_RETURN(TablesInFiles whole, TablesInFiles::make(rows, dim, dir));
  STREAMVEC_RETURN_IF_ERROR(node.read_all([&](RowKey key, std::span<const float> row) {
    std::copy(row.begin(), row.end(), (key % 2 == 0 ? whole.input : whole.output).row(key / 2));
  }));
  return whole;
}

}  // namespace streamvec
