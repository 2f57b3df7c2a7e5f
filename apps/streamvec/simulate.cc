// streamvec simulate: how fast clusters would be that nobody here has. Costs are fitted on real runs of one node and of
// two over the text once, held against real runs of four, then larger clusters run under virtual clocks, as often over
// the text as wanted (cluster/virtual_cluster.h), and so does one node, which tells what their loss is worth.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "apps/streamvec/child.h"
#include "apps/streamvec/commands.h"
#include "apps/streamvec/cores.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/temporary_directory.h"
#include "apps/streamvec/training.h"
#include "apps/streamvec/values.h"
#include "streamvec/cluster/virtual_cluster.h"
#include "streamvec/core/json.h"
#include "streamvec/core/memory.h"
#include "streamvec/core/threads.h"
#include "streamvec/ingest/open.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/cluster_start.h"
#include "streamvec/train/counting.h"
#include "streamvec/train/slot_mapper.h"
#include "streamvec/train/training_start.h"

namespace streamvec::cli {
namespace {

constexpr int32_t kFitNodes = 2, kCheckNodes = 4;
// Of real runs, one size after the other; the fastest of each size counts: whatever else a machine does makes runs
// slower, never faster.
constexpr int kRounds = 3;
constexpr double kLoopbackBytesPerS = 2.5e9, kLoopbackLatencyS = 20e-6;  // of runs on this machine
constexpr double kMessages = 1.25;      // of the tables' memory, with what is on its way between nodes
constexpr double kTrainingLeast = 0.5;  // of one node's time for a word, whatever two nodes took
constexpr double kBehindMost = 0.01;    // of loss, at one node's quality
constexpr const char* kNodesDefault = "4,16,64,256";
constexpr const char* kSourceDefault = "planted:?tokens=4000000";

// The text in memory, as nodes would read it.
struct Text {
  Vocabulary vocabulary;
  std::vector<Chunk> chunks;
  std::shared_ptr<const SamplingTables> tables;
  int64_t words = 0;
};

Result<Text> read_text(const TrainOptions& options, const std::vector<std::string>& sources, const TrainHooks& hooks) {
  Text text;
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, open_sources(sources));
  if (source->capabilities().endless || !source->capabilities().replayable)
    return error(Code::kInvalidArgument, source->name(), " cannot be read twice; give files");
  STREAMVEC_ASSIGN_OR_RETURN(const Counted counted, count_words(*source, options.tokenizer, 0, 1, hooks));
  if (counted.stopped) return error(Code::kCancelled, "stopped");
  text.vocabulary = counted.words.make_vocabulary({.min_count = options.min_count}, {});
  if (text.vocabulary.size() == 0)
    return error(Code::kInvalidArgument, source->name(), " has no word ", options.min_count,
                 " times; try --min-count 1 or more text");
  STREAMVEC_RETURN_IF_ERROR(source->seek(""));
  FixedSlotMapper mapper(text.vocabulary, options.sample, row_pace_options(options, "sgns", options.epochs));
  Tokenizer tokenizer(options.tokenizer);
  Tokens tokens;
  for (std::vector<Document> documents;; documents.clear()) {
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source->read(16, Deadline::never(), documents));
    if (count == 0) break;
    for (const Document& document : documents) {
      tokenizer.tokenize(document.text, tokens);
      text.tables = mapper.map(tokens, text.chunks.emplace_back());
      text.words += static_cast<int64_t>(text.chunks.back().slots.size());
    }
  }
  return text;
}

class Simulation {
 public:
  Simulation(const Arguments& arguments, std::string work, const std::atomic<bool>& stop)
      : arguments_(arguments), work_(std::move(work)), stop_(stop), line_(2), options_(train_options(arguments)) {
    cores_ = static_cast<double>(allowed_cores().size());
    if (options_.epochs == 0) options_.epochs = 1;
  }

  Result<int> run() {
    STREAMVEC_ASSIGN_OR_RETURN(const auto nodes,
                               parse_node_counts(arguments_.given("nodes") ? arguments_.text("nodes") : kNodesDefault));
    STREAMVEC_ASSIGN_OR_RETURN(const auto bandwidths, parse_bandwidths(arguments_.text("bandwidth")));
    STREAMVEC_RETURN_IF_ERROR(prepare());
    STREAMVEC_RETURN_IF_ERROR(measure_all());
    STREAMVEC_RETURN_IF_ERROR(fit());
    STREAMVEC_RETURN_IF_ERROR(check());
    STREAMVEC_ASSIGN_OR_RETURN(const auto one_node, make(options_of(1, options_.epochs, costs_, 1)));
    Result<VirtualReport> one = error(Code::kCancelled, "stopped");
    const auto run_one = [&](int64_t) { one = one_node->run(stopped()); };
    Threads beside;  // one run more, of one thread, while the others run
    const bool is_beside = beside.start(1, run_one).ok();
    std::vector<std::vector<Result<VirtualReport>>> predicted;  // by size, by network
    for (const int32_t count : nodes) {
      predicted.push_back(predict(count, bandwidths));
      for (const auto& each : predicted.back())
        if (!each.ok() && each.status().code() != Code::kResourceExhausted) return each.status();
    }
    beside.join();
    if (!is_beside) run_one(0);
    STREAMVEC_RETURN_IF_ERROR(one.status());
    tell_one(*one);
    for (size_t k = 0; k < bandwidths.size(); ++k)
      for (size_t i = 0; i < nodes.size(); ++i) tell(nodes[i], bandwidths[k].name, predicted[i][k]);
    line_.clear();
    STREAMVEC_RETURN_IF_ERROR(arguments_.flag("json") ? print_json(json_) : print(table_.str()));
    return 0;
  }

 private:
  Status prepare() {
    options_.cluster.sync = arguments_.text("sync");
    options_.cluster.combine = arguments_.text("combine");
    options_.cluster.codec = arguments_.text("codec");
    options_.cluster.staleness = arguments_.integer("staleness");
    options_.cluster.backups = static_cast<int32_t>(arguments_.integer("backups"));
    options_.cluster.group = static_cast<int32_t>(arguments_.integer("group"));
    options_.cluster.words_min = arguments_.integer("sync-words");
    STREAMVEC_ASSIGN_OR_RETURN(text_, read_text(options_, sources_, hooks_on(line_, stop_)));
    virtual_.model = model_options(options_, "sgns", 1);
    virtual_.parameters.rows = text_.vocabulary.size();
    virtual_.parameters.dim = options_.dim.value_or(200);
    STREAMVEC_ASSIGN_OR_RETURN(virtual_.scheme, scheme_of(options_.cluster, virtual_.parameters.dim));
    virtual_.parameters.seed = options_.seed;
    virtual_.pull = row_pulls(options_, "sgns", text_.vocabulary);
    virtual_.lr = static_cast<float>(options_.lr.value_or(default_learning_rate("sgns", OptimizerKind::kSgd)));
    virtual_.seed = options_.seed;
    return {};
  }

  // A real run of so many nodes, each on one thread, over the text once.
  Result<Json> measure(int32_t nodes) {
    line_.show("measuring a real run of " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes"));
    std::vector<std::string> words;
    if (nodes > 1) words = {"launch", "-n", std::to_string(nodes), "--pin", "--"};
    words.push_back("train");
    words.insert(words.end(), sources_.begin(), sources_.end());
    words.insert(words.end(), {"--out", work_ + "/" + std::to_string(nodes), "--threads", "1", "--json"});
    for (const char* option : {"dim", "window", "negatives", "sample", "pace", "min-count", "lr", "seed", "kernel"})
      if (arguments_.given(option)) words.insert(words.end(), {std::string("--") + option, arguments_.text(option)});
    if (nodes > 1)
      for (const char* option : {"sync", "combine", "codec", "staleness", "backups", "group", "sync-words"})
        words.insert(words.end(), {std::string("--") + option, arguments_.text(option)});
    const Result<std::string> printed = run_program(words, stop_);
    if (stop_) return error(Code::kCancelled, "stopped");
    STREAMVEC_RETURN_IF_ERROR(printed.status());
    Json report = parse_ordered_json(*printed);
    if (!report.is_object()) return error(Code::kInternal, "a run of ", nodes, " nodes printed no report");
    return report;
  }

  VirtualOptions options_of(int32_t nodes, int32_t epochs, const VirtualCosts& costs, int32_t threads) const {
    VirtualOptions options = virtual_;
    options.nodes = nodes;
    options.epochs = epochs;
    options.costs = costs;
    options.threads = threads;
    const PushInterval interval = push_interval(options_.cluster, text_.words * epochs / nodes);
    options.words_min = interval.words_min;
    options.words_max = interval.words_max;
    return options;
  }

  Result<std::unique_ptr<VirtualCluster>> make(const VirtualOptions& options) const {
    return VirtualCluster::make(options, text_.chunks, *text_.tables);
  }
  std::function<bool()> stopped() const {
    return [this] { return stop_.load(); };
  }
  Result<VirtualReport> simulate(const VirtualOptions& options) const {
    STREAMVEC_ASSIGN_OR_RETURN(const auto cluster, make(options));
    return cluster->run(stopped());
  }

  // Nodes that share cores take as much longer.
  double shared(int32_t nodes) const { return std::max(1.0, nodes / cores_); }

  // Of a cluster on this machine.
  Result<VirtualReport> simulate_here(int32_t nodes) const {
    VirtualCosts costs = costs_;
    costs.word_s *= shared(nodes);
    costs.row_s *= shared(nodes);
    costs.bytes_per_s = kLoopbackBytesPerS;
    costs.latency_s = kLoopbackLatencyS;
    return simulate(options_of(nodes, 1, costs, static_cast<int32_t>(cores_)));
  }

  Status measure_all() {
    for (int round = 0; round < kRounds; ++round)
      for (const int32_t nodes : {1, kFitNodes, kCheckNodes}) {
        STREAMVEC_ASSIGN_OR_RETURN(Json report, measure(nodes));
        measured_[nodes].push_back(std::move(report));
      }
    return {};
  }

  const Json& fastest_run(int32_t nodes) {
    const std::vector<Json>& runs = measured_[nodes];
    return *std::min_element(runs.begin(), runs.end(), [](const Json& a, const Json& b) {
      return a.at("seconds").get<double>() < b.at("seconds").get<double>();
    });
  }

  // What a row costs follows from what two nodes spent on talking, what a word costs from how long they took: that of
  // one node alone knows nothing of what goes on beside training.
  Status fit() {
    const Json& two = fastest_run(kFitNodes);
    const double measured_s = two.at("seconds").get<double>();
    const auto rows = static_cast<double>(std::max<int64_t>(two.at("rows_moved").get<int64_t>(), 1));
    costs_.row_s = two.at("talking_s").get<double>() / shared(kFitNodes) / rows;
    const auto words = static_cast<double>(std::max<int64_t>(text_.words, 1));
    const double alone_s = fastest_run(1).at("seconds").get<double>() / words;
    one_s_ = alone_s * words * options_.epochs;
    costs_.word_s = alone_s;
    line_.show("fitting costs");
    STREAMVEC_ASSIGN_OR_RETURN(VirtualReport report, simulate_here(kFitNodes));
    const double training_s = costs_.word_s * shared(kFitNodes) * words / kFitNodes;
    costs_.word_s *= std::max(kTrainingLeast, 1 + (measured_s - report.seconds) / training_s);
    STREAMVEC_ASSIGN_OR_RETURN(report, simulate_here(kFitNodes));
    json_["costs"] = {{"word_ns", rounded(1e9 * costs_.word_s)},
                      {"word_alone_ns", rounded(1e9 * alone_s)},
                      {"row_ns", rounded(1e9 * costs_.row_s)}};
    json_["fitted"] = compared(kFitNodes, two, report);
    table_ << "one node " << rounded(one_s_) << " s; a word " << std::lround(1e9 * costs_.word_s) << " ns ("
           << std::lround(1e9 * alone_s) << " alone), a row " << std::lround(1e9 * costs_.row_s) << " ns\n";
    tell("fitted", json_["fitted"]);
    return {};
  }

  Status check() {
    line_.show("predicting what was measured");
    STREAMVEC_ASSIGN_OR_RETURN(const VirtualReport report, simulate_here(kCheckNodes));
    json_["checked"] = compared(kCheckNodes, fastest_run(kCheckNodes), report);
    for (const Json& run : measured_[kCheckNodes]) json_["checked"]["runs_s"].push_back(run.at("seconds"));
    tell("checked", json_["checked"]);
    return {};
  }

  static Json compared(int32_t nodes, const Json& measured, const VirtualReport& predicted) {
    const double seconds = measured.at("seconds").get<double>();
    return {{"nodes", nodes},
            {"measured_s", rounded(seconds)},
            {"predicted_s", rounded(predicted.seconds)},
            {"error", rounded(seconds > 0 ? predicted.seconds / seconds - 1 : 0)},
            {"measured_pushes", measured.at("pushes")},
            {"predicted_pushes", predicted.pushes / nodes},
            {"measured_bytes", measured.at("bytes_sent")},
            {"predicted_bytes", predicted.bytes / nodes}};
  }

  void tell(const char* how, const Json& compared) {
    char text[160];
    std::snprintf(text, sizeof text, "%s on %d nodes here: predicted %.3g s, measured %.3g s, error %+.0f%%\n", how,
                  compared["nodes"].get<int>(), compared["predicted_s"].get<double>(),
                  compared["measured_s"].get<double>(), 100 * compared["error"].get<double>());
    table_ << text;
  }

  // All networks at once, as far as memory goes: few nodes leave threads idle.
  std::vector<Result<VirtualReport>> predict(int32_t nodes, const std::vector<Bandwidth>& bandwidths) {
    line_.show("simulating " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes"));
    std::vector<Result<VirtualReport>> reports(bandwidths.size(), error(Code::kCancelled, "stopped"));
    const double each = kMessages * virtual_cluster_bytes(options_of(nodes, options_.epochs, costs_, 1));
    const auto at_once = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(available_memory()) / each), 1,
                                             std::min<int64_t>(std::ssize(bandwidths), std::lround(cores_)));
    const auto threads = static_cast<int32_t>(std::max(1.0, cores_ / static_cast<double>(at_once)));
    std::atomic<size_t> next = 0;
    const auto work = [&](int64_t) {
      for (size_t i = next++; i < bandwidths.size(); i = next++) {
        VirtualCosts costs = costs_;
        costs.bytes_per_s = bandwidths[i].bytes_per_s;
        costs.latency_s = 1e-6 * arguments_.real("latency");
        reports[i] = simulate(options_of(nodes, options_.epochs, costs, threads));
      }
    };
    Threads others;
    const Status started = others.start(at_once - 1, work);  // those that could not be made are not needed
    work(0);
    others.join();
    return reports;
  }

  // What the others are held against. It sends nothing, so that no network changes it; its seconds are measured.
  void tell_one(const VirtualReport& one) {
    one_loss_ = one.loss;
    json_["one_node"] = {{"seconds", rounded(one_s_)}, {"loss", rounded(one.loss)}};
    char text[160];
    std::snprintf(text, sizeof text, "  %5d  %9s  %7.3g  %8d  %10d  %9d  %9d  %.4f\n", 1, "-", one_s_, 1, 0, 0, 0,
                  one.loss);
    table_
        << "\nloss: mean a pair over the last tenth of the text, of one node in a virtual cluster of its own; behind: "
           "how far\na cluster's is above that one\n"
        << "  nodes  bandwidth  seconds  speed-up  bytes/pair  waiting s  talking s  loss    behind\n"
        << text;
  }

  void tell(int32_t nodes, const std::string& bandwidth, const Result<VirtualReport>& result) {
    Json row = {{"nodes", nodes}, {"bandwidth", bandwidth}};
    char text[160];
    if (result.ok()) {
      const double bytes_per_pair =
          static_cast<double>(result->bytes) / static_cast<double>(std::max<int64_t>(result->pairs, 1));
      const double behind = result->loss - one_loss_;
      const bool as_good = behind <= kBehindMost;
      row.update({{"seconds", rounded(result->seconds)},
                  {"speed_up", rounded(one_s_ / result->seconds)},
                  {"bytes_per_pair", rounded(bytes_per_pair)},
                  {"pushes", result->pushes / nodes},
                  {"waiting_s", rounded(result->waiting_s)},
                  {"talking_s", rounded(result->talking_s)},
                  {"staleness_most", result->staleness_most},
                  {"loss", rounded(result->loss)},
                  {"behind", rounded(behind)},
                  {"one_node_quality", as_good}});
      std::snprintf(text, sizeof text, "  %5d  %9s  %7.3g  %8.3g  %10.3g  %9.3g  %9.3g  %.4f  %+.4f%s\n", nodes,
                    bandwidth.c_str(), result->seconds, one_s_ / result->seconds, bytes_per_pair, result->waiting_s,
                    result->talking_s, result->loss, behind, as_good ? "" : "  not at one node's quality");
      table_ << text;
    } else {
      row["failure"] = result.status().message();
      table_ << "  " << nodes << " nodes: " << result.status().message() << "\n";
    }
    json_["predicted"].push_back(row);
  }

  const Arguments& arguments_;
  const std::vector<std::string> sources_ =
      arguments_.words.empty() ? std::vector<std::string>{kSourceDefault} : arguments_.words;
  const std::string work_;
  const std::atomic<bool>& stop_;
  ProgressLine line_;
  TrainOptions options_;
  double cores_ = 1;
  Text text_;
  VirtualOptions virtual_;
  std::map<int32_t, std::vector<Json>> measured_;  // by nodes
  VirtualCosts costs_;
  double one_s_ = 0, one_loss_ = 0;
  Json json_;
  std::ostringstream table_;
};

}  // namespace

Status misuse_of_simulate(const Arguments& arguments) {
  const std::string sync = arguments.text("sync");
  if (sync != "ring" && sync != "hybrid" && sync != "sandblaster") return {};
  return error(Code::kUnimplemented, "owners of rows are simulated, not --sync ", sync,
               "; try bsp, backup, ssp, softsync, async or auto");
}

Result<int> run_simulate(const Arguments& arguments) {
  const std::atomic<bool>& stop = stop_on_signals("\nstopping\n");
  STREAMVEC_ASSIGN_OR_RETURN(const TemporaryDirectory work, TemporaryDirectory::make("streamvec-simulate"));
  const Result<int> exit_code = Simulation(arguments, work.path(), stop).run();
  if (exit_code.status().code() == Code::kCancelled) return 0;  // there is nothing to keep
  return exit_code;
}

}  // namespace streamvec::cli
