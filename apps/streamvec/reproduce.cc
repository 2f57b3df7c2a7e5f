// streamvec reproduce: the experiment of 2018 on a given text. Sound rows are runs of this program's `train` and
// `launch`; those as published run here (streamvec/reproduce).
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "apps/streamvec/child.h"
#include "apps/streamvec/commands.h"
#include "apps/streamvec/cores.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/temporary_directory.h"
#include "apps/streamvec/texts.h"
#include "streamvec/core/durable_file.h"
#include "streamvec/core/json.h"
#include "streamvec/ingest/open.h"
#include "streamvec/reproduce/cluster_2018.h"
#include "streamvec/reproduce/experiment_page.h"
#include "streamvec/text/word_filter.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/counting.h"
#include "streamvec_commit.h"

namespace streamvec::cli {
namespace {

constexpr int64_t kEpochs = 16, kQuickEpochs = 2, kMinCount = 3, kQuickBytes = 300'000;
constexpr int64_t kEvaluationBatch2018 = 1024;

// The text, counted once and ready to measure any row of it.
class Measures {
 public:
  static Result<std::unique_ptr<Measures>> open(const std::string& corpus, const ExperimentOptions& options,
                                                const std::vector<std::string>& similarity, const TrainHooks& hooks) {
    auto measures = std::unique_ptr<Measures>(new Measures(corpus));
    STREAMVEC_ASSIGN_OR_RETURN(measures->products_, make_products(options.device));
    for (const std::string& path : similarity) {
      STREAMVEC_ASSIGN_OR_RETURN(measures->sets_.emplace_back(), read_similarity_set(path));
    }
    STREAMVEC_RETURN_IF_ERROR(measures->count(options.stem, hooks));
    return measures;
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  SentenceStream sentences() const { return sentences_of({corpus_}, TokenizerOptions{}, vocabulary_); }

  // Measures the vectors after `epochs` epochs into `row`; the references of their dim into `report`, once.
  Status measure(const Snapshot& snapshot, int64_t epochs, double loss, RowResult& row, ExperimentReport& report) {
    STREAMVEC_ASSIGN_OR_RETURN(const Oracle* oracle, oracle_of(snapshot.dim()));
    STREAMVEC_ASSIGN_OR_RETURN(PipReport pip, measure_pip(snapshot.input, *oracle, *products_));
    row.points.push_back({epochs, pip.model, loss});
    row.similarity.clear();
    for (const SimilaritySet& set : sets_) row.similarity.push_back(measure_similarity(snapshot, set));
    for (const auto& [dim, references] : report.references)
      if (dim == snapshot.dim()) return {};
    std::erase_if(pip.references, [](const auto& reference) { return reference.first == "permuted"; });
    report.references.emplace_back(snapshot.dim(), std::move(pip.references));
    return {};
  }

 private:
  explicit Measures(std::string corpus) : corpus_(std::move(corpus)) {}

  Status count(const std::string& stem, const TrainHooks& hooks) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, open_sources({corpus_}));
    STREAMVEC_ASSIGN_OR_RETURN(const Counted counted, count_words(*source, TokenizerOptions{}, 0, 1, hooks));
    if (counted.stopped) return {};
    FormOf form_of;
    if (!stem.empty()) {
      WordFilterOptions filtering;
      filtering.stem = stem;
      STREAMVEC_ASSIGN_OR_RETURN(WordFilter opened, WordFilter::open(filtering));
      form_of = [filter = std::make_shared<const WordFilter>(std::move(opened))](std::string_view word) {
        return filter->apply(word);
      };
    }
    vocabulary_ = counted.words.make_vocabulary({.min_count = kMinCount}, form_of);
    if (vocabulary_.size() == 0)
      return error(Code::kInvalidArgument, corpus_, ": no word occurs ", kMinCount, " times; give more text");
    return {};
  }

  Result<const Oracle*> oracle_of(int64_t dim) {
    if (const auto found = oracles_.find(dim); found != oracles_.end()) return &found->second;
    OracleOptions options;
    options.dim = dim;
    STREAMVEC_ASSIGN_OR_RETURN(Oracle oracle, make_oracle(sentences(), vocabulary_, options));
    return &oracles_.emplace(dim, std::move(oracle)).first->second;
  }

  std::string corpus_;
  Vocabulary vocabulary_;
  std::map<int64_t, Oracle> oracles_;
  std::vector<SimilaritySet> sets_;
  std::unique_ptr<Products> products_;
};

std::string machine_text() {
  std::string cpu = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.rfind("model name", 0) == 0) {
      cpu = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  utsname system{};
  ::uname(&system);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return cpu + ", " + std::to_string(allowed_cores().size()) + " cores, " + std::to_string(std::lround(memory / 1e9)) +
         " GB, " + system.sysname + " " + system.release;
}

ExperimentOptions experiment_options(const Arguments& arguments) {
  const auto cores = static_cast<int64_t>(allowed_cores().size());
  ExperimentOptions options;
  options.as_published = arguments.flag("as-published");
  options.quick = arguments.flag("quick");
  options.only = arguments.text("only");
  options.nodes =
      static_cast<int32_t>(arguments.given("n") ? arguments.integer("n") : std::clamp<int64_t>(cores, 2, 4));
  options.node_threads = static_cast<int32_t>(std::max<int64_t>(1, cores / options.nodes));
  options.epochs = arguments.given("epochs") ? arguments.integer("epochs") : options.quick ? kQuickEpochs : kEpochs;
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.stem = arguments.text("stem");
  options.device = arguments.text("device");
  return options;
}

// The whole command: plans, runs and writes.
class Reproduction {
 public:
  Reproduction(const Arguments& arguments, std::string work, const std::atomic<bool>& stop)
      : arguments_(arguments), work_(std::move(work)), stop_(stop), line_(2), options_(experiment_options(arguments)) {
    published_epochs_ = arguments.given("published-epochs") ? arguments.integer("published-epochs") : options_.epochs;
    corpus_ = arguments.text("corpus");
    pinned_ = std::ssize(allowed_cores()) >= options_.nodes;
  }

  Result<int> run() {
    const std::vector<RowPlan> plans = plan_rows(options_);
    if (options_.quick) STREAMVEC_RETURN_IF_ERROR(cut_slice());
    TrainHooks hooks;
    hooks.stop = &stop_;
    STREAMVEC_ASSIGN_OR_RETURN(measures_, Measures::open(corpus_, options_, arguments_.list("similarity"), hooks));
    if (stop_) return 0;
    add_facts();
    STREAMVEC_RETURN_IF_ERROR(write());
    for (size_t i = 0; i < plans.size() && !stop_; ++i) {
      place_ = "row " + std::to_string(i + 1) + " of " + std::to_string(plans.size()) + ", " + plans[i].name();
      run_row(plans[i]);
      STREAMVEC_RETURN_IF_ERROR(write());
    }
    line_.clear();
    return finish(plans.size());
  }

 private:
  Status cut_slice() {
    STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, open_sources({corpus_}));
    std::string text;
    std::vector<Document> documents;
    while (static_cast<int64_t>(text.size()) < kQuickBytes) {
      documents.clear();
      STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source->read(1, Deadline::never(), documents));
      if (count == 0) break;
      for (const Document& document : documents) text += document.text + "\n";
    }
    if (static_cast<int64_t>(text.size()) > kQuickBytes)
      text.resize(std::max(text.rfind(' ', kQuickBytes), text.rfind('\n', kQuickBytes)));
    corpus_ = work_ + "/slice.txt";
    return write_file_durably(corpus_, text);
  }

  void add_facts() {
    const Vocabulary& words = measures_->vocabulary();
    report_.facts = {
        {"machine", machine_text()},
        {"program", "streamvec " STREAMVEC_VERSION ", commit " STREAMVEC_COMMIT},
        {"text", arguments_.text("corpus") + (options_.quick ? ", its first 300 kB" : "") + ": " +
                     std::to_string(words.tokens()) + " tokens of " + std::to_string(words.size()) +
                     " words (2018: a 6 MB series of novels, 8,113 words)"},
        {"settings", "window 5, negatives 10, min-count 3, sample 2e-3, seed " + std::to_string(options_.seed) +
                         (options_.stem.empty() ? "" : ", stems (2018: lemmas)") +
                         "; as published Adam, lr 1e-4; sound SGD, lr 0.05, and rbsg Muon, falling to nothing"},
        {"clusters", std::to_string(options_.nodes) + " nodes of " + std::to_string(options_.node_threads) +
                         (options_.node_threads == 1 ? " thread" : " threads") + " on this machine, " +
                         (pinned_ ? "each on cores of its own" : "sharing cores: there are fewer cores than nodes") +
                         " (2018: 4 machines)"},
        {"command", "streamvec " + shell_text(own_command(""))}};
    report_.notes = {
        "Sound rows are trainings of their own for each number of epochs, with their own falling rate; speed is that "
        "of "
        "the longest. Rows as published are one training, measured on its way; they have " +
            std::to_string(published_epochs_) + " epochs here, if they were not stopped, 300 in 2018.",
        "As published, the nodes of a cluster are threads of one process that exchange slopes through memory, each "
        "with "
        "tables of its own; bytes are those that a wire would have carried. Sound clusters are processes that talk "
        "over "
        "gRPC on loopback; their bytes are those that the first node sent, times the nodes.",
        "In 2018 the time of an epoch included measuring; here it does not. Drawing negatives is included in both.",
        "A batch of 2018 is a number of pairs; sound rows take batches of a sixth as many centre words, which have "
        "about "
        "as many pairs. \"own\" is the block that suits the kernel.",
        "Everything else that ran on this machine at the time is in the times, too."};
    report_.not_run = {
        std::string("GPUs: rows of 2018 on one GPU (GTX 970) and on four (GTX 1080) stand beside one process with a "
                    "node's threads and with those of all nodes") +
            (options_.device == "cpu" ? "; --device cuda trains rbsg and sgns with its own blocks on an NVIDIA GPU."
                                      : ", but for those whose command has --device."),
        "Ethernet between machines: all nodes are on this one."};
    if (!options_.as_published) report_.not_run.push_back("The rows as published: they run with --as-published.");
  }

  std::vector<std::string> own_command(const std::string& only) const {
    std::vector<std::string> words = {"reproduce", "--corpus", arguments_.text("corpus"), "--out",
                                      arguments_.text("out")};
    for (const char* flag : {"as-published", "quick"})
      if (arguments_.flag(flag)) words.push_back(std::string("--") + flag);
    for (const char* option : {"epochs", "published-epochs", "rbsg-epochs", "seed", "stem", "device"})
      if (arguments_.given(option)) words.insert(words.end(), {std::string("--") + option, arguments_.text(option)});
    if (arguments_.given("n")) words.insert(words.end(), {"-n", arguments_.text("n")});
    for (const std::string& set : arguments_.list("similarity")) words.insert(words.end(), {"--similarity", set});
    const std::string part = only.empty() ? options_.only : only;
    if (!part.empty()) words.insert(words.end(), {"--only", part});
    return words;
  }

  int64_t epochs_of(const RowPlan& plan) const {
    if (plan.model == "rbsg") return arguments_.integer("rbsg-epochs");
    return plan.arm == Arm::kPublished ? published_epochs_ : options_.epochs;
  }

  void run_row(const RowPlan& plan) {
    RowResult row;
    row.plan = plan;
    row.command = "streamvec " + shell_text(own_command(plan.name()));
    const Status status = plan.arm == Arm::kPublished && plan.model == "sgns" ? run_published(row) : run_trained(row);
    if (stop_ && row.points.empty()) return;
    row.stopped = stop_ && row.points.back().epochs < epochs_of(plan);
    if (!stop_ && !status.ok()) row.failure = status.message();
    report_.rows.push_back(std::move(row));
  }

  Status run_published(RowResult& row) {
    if (pairs_.empty()) {
      PairOptions2018 drawn;
      drawn.seed = options_.seed;
      STREAMVEC_ASSIGN_OR_RETURN(pairs_, make_pairs_2018(measures_->sentences(), measures_->vocabulary(), drawn));
    }
    const RowPlan& plan = row.plan;
    ClusterOptions2018 options;
    options.sgns.dim = plan.dim;
    options.sgns.seed = options_.seed;
    options.sgns.threads = plan.setting == Setting::kSeveral ? options_.nodes * options_.node_threads : 1;
    options.batch = plan.batch;
    const bool cluster = plan.setting == Setting::kSync || plan.setting == Setting::kAsync;
    options.nodes = cluster ? options_.nodes : 1;
    options.awaits = plan.setting != Setting::kAsync;
    const std::vector<int> allowed = allowed_cores();
    for (int32_t node = 0; cluster && pinned_ && node < options_.nodes; ++node)
      options.cores.push_back(cores_of_share(allowed, node, options_.nodes).front());
    Cluster2018 training(options, measures_->vocabulary(), pairs_);
    return train_published(training, cluster, row);
  }

  Status train_published(Cluster2018& training, bool cluster, RowResult& row) {
    double seconds = 0;
    int64_t done = 0;
    for (const int64_t epochs : measured_epochs(published_epochs_)) {
      EpochStats2018 stats;
      for (; done < epochs; ++done) {
        line_.show(place_ + ", epoch " + std::to_string(done + 1) + " of " + std::to_string(published_epochs_));
        STREAMVEC_ASSIGN_OR_RETURN(stats, training.train_epoch(&stop_));
        seconds += stats.seconds;
      }
      Snapshot snapshot;
      snapshot.vocabulary = measures_->vocabulary();
      STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, training.node(0).input());
      STREAMVEC_RETURN_IF_ERROR(measures_->measure(snapshot, epochs, stats.loss, row, report_));
      row.pairs = static_cast<double>(pairs_.size());
      row.pairs_per_s = row.pairs * static_cast<double>(done) / seconds;
      row.kernel = "as in 2018";
      if (cluster) {
        row.wire_bytes_per_pair = static_cast<double>(stats.bytes_sent) / row.pairs;
        row.seconds_on_their_network =
            row.seconds_per_epoch() + kPairs2018 / row.pairs * static_cast<double>(stats.steps) *
                                          static_cast<double>(training.slope_bytes()) / kNetworkBytesPerSecond2018;
      }
      STREAMVEC_RETURN_IF_ERROR(write_so_far(row));
    }
    return {};
  }

  Status run_trained(RowResult& row) {
    for (const int64_t epochs : measured_epochs(epochs_of(row.plan))) {
      line_.show(place_ + ", " + std::to_string(epochs) + " epochs");
      const std::string out = work_ + "/model";
      const std::vector<std::string> words = train_command(row.plan, options_, epochs, corpus_, out);
      std::error_code ignored;
      std::filesystem::remove_all(out, ignored);
      STREAMVEC_ASSIGN_OR_RETURN(const std::string printed, run_program(words, stop_));
      if (stop_) return {};
      STREAMVEC_RETURN_IF_ERROR(take_figures(printed, epochs, row));
      STREAMVEC_ASSIGN_OR_RETURN(Snapshot snapshot, load_snapshot(out));
      if (row.plan.arm == Arm::kPublished) {
        STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, reversed_batches(snapshot.input, kEvaluationBatch2018));
        snapshot.generator = nullptr;
      }
      STREAMVEC_RETURN_IF_ERROR(measures_->measure(snapshot, epochs, loss_, row, report_));
      if (!options_.quick)  // whose text is a slice
        row.command =
            "streamvec " + shell_text(train_command(row.plan, options_, epochs, arguments_.text("corpus"), "model"));
      STREAMVEC_RETURN_IF_ERROR(write_so_far(row));
    }
    return {};
  }

  // What `train --json` said.
  Status take_figures(const std::string& printed, int64_t epochs, RowResult& row) {
    const Json json = parse_ordered_json(printed);
    if (!json.is_object() || !json.contains("pairs_per_s")) return error(Code::kInternal, "train printed no figures");
    row.pairs = json.value("pairs", 0.0) / static_cast<double>(epochs);
    row.pairs_per_s = json.value("pairs_per_s", 0.0);
    row.kernel = json.value("kernel", "");
    loss_ = json.at("loss").is_number() ? json.value("loss", 0.0) : std::nan("");
    const double pairs = json.value("pairs", 0.0);
    if (pairs > 0) row.wire_bytes_per_pair = json.value("bytes_sent", 0.0) * json.value("nodes", 1) / pairs;
    return {};
  }

  // A row of many epochs takes hours: what was measured of it stands in the report at once.
  Status write_so_far(const RowResult& row) {
    report_.rows.push_back(row);
    const Status status = write();
    report_.rows.pop_back();
    return status;
  }

  Status write() { return write_file_durably(arguments_.text("out"), page_of(report_)); }

  Result<int> finish(size_t planned) {
    size_t measured = 0;
    for (const RowResult& row : report_.rows) measured += !row.points.empty();
    const bool stopped = !report_.rows.empty() && report_.rows.back().stopped;
    const size_t missing = planned - report_.rows.size();
    if (arguments_.flag("json")) {
      Json json = to_json(report_);
      json["out"] = arguments_.text("out");
      STREAMVEC_RETURN_IF_ERROR(print_json(json));
    } else {
      STREAMVEC_RETURN_IF_ERROR(print(arguments_.text("out") + ": " + std::to_string(measured) + " rows" +
                                      (missing > 0 ? ", " + std::to_string(missing) + " not run" : "") +
                                      (stopped ? ", the last of them stopped" : "") + "\n"));
    }
    for (const RowResult& row : report_.rows)
      if (!row.failure.empty()) return error(Code::kInternal, row.plan.name(), " failed: ", row.failure);
    return 0;
  }

  const Arguments& arguments_;
  const std::string work_;
  const std::atomic<bool>& stop_;
  ProgressLine line_;
  ExperimentOptions options_;
  int64_t published_epochs_ = 0;
  std::string corpus_, place_;
  bool pinned_ = false;
  std::unique_ptr<Measures> measures_;
  std::vector<Pair2018> pairs_;
  double loss_ = 0;  // of the training just read
  ExperimentReport report_;
};

}  // namespace

Status misuse_of_reproduce(const Arguments& arguments) {
  const ExperimentOptions options = experiment_options(arguments);
  if (!plan_rows(options).empty()) return {};
  return error(Code::kInvalidArgument, "--only ", options.only,
               ": no row has that in its name; try sound, rbsg, sgns-200, 8192 or sync",
               options.as_published ? "" : " (published needs --as-published)");
}

Result<int> run_reproduce(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::make("streamvec-reproduce"));
  return Reproduction(arguments, directory.path(), stop_on_signals("\nstopping: the report is being written\n")).run();
}

}  // namespace streamvec::cli
