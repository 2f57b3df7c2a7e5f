// streamvec train: learn from sources into a model directory.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/mpi_rank.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/service.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/source_news.h"
#include "apps/streamvec/training.h"
#include "apps/streamvec/values.h"
#include "streamvec/cluster/etcd_membership.h"
#include "streamvec/core/heap.h"
#include "streamvec/source/http/crawl_source.h"
#include "streamvec/train/cluster_settings.h"
#include "streamvec/train/device_choice.h"
#include "streamvec/train/source_division.h"
#include "streamvec/train/training_start.h"

namespace streamvec::cli {
namespace {

double peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double per_second(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

Json json_of(const TrainProgress& result, const std::string& out, bool stopped, bool clustered) {
  Json json = {{"tokens", result.tokens},
               {"pairs", result.pairs},
               {"seconds", rounded(result.seconds)},
               {"tokens_per_s", rounded(per_second(result.tokens, result.seconds))},
               {"pairs_per_s", rounded(per_second(result.pairs, result.seconds))},
               {"loss", rounded(result.loss)},
               {"vocab", result.vocab},
               {"dim", result.dim},
               {"rss_mb", rounded(peak_rss_mb())},
               {"model", result.model},
               {"kernel", result.kernel},
               {"epochs", result.epoch},
               {"lr", rounded(result.lr)},
               {"out", out},
               {"stopped", stopped},
               {"bytes_replaced", result.bytes_replaced},
               {"words_dropped", result.words_dropped},
               {"updates_refused", result.updates_refused},
               {"notes", result.notes}};
  if (clustered)
    json.update({{"nodes", result.nodes},
                 {"pushes", result.pushes},
                 {"bytes_sent", result.bytes_sent},
                 {"bytes_received", result.bytes_received},
                 {"waiting_s", rounded(result.waiting_s)},
                 {"talking_s", rounded(result.talking_s)},
                 {"finishing_s", rounded(result.finishing_s)},
                 {"rows_pushed", result.rows_pushed},
                 {"rows_moved", result.rows_moved},
                 {"staleness_most", result.staleness_most}});
  if (result.documents < 0) return json;
  json["documents"] = result.documents;
  json["prequential_loss"] = rounded(result.prequential_loss);
  return json;
}

std::string summary_of(const TrainProgress& result, const std::string& out) {
  std::ostringstream text;
  if (result.vocab == 0) return "";  // stopped before there was anything
  text << out << ": " << result.vocab << " words, " << result.dim << " dimensions, loss " << rounded(result.loss)
       << "\n"
       << short_count(static_cast<double>(result.tokens)) << " tokens, "
       << short_count(static_cast<double>(result.pairs)) << " pairs in " << rounded(result.seconds) << " s ("
       << short_count(per_second(result.tokens, result.seconds)) << " tokens/s, kernel " << result.kernel << ", "
       << short_count(peak_rss_mb()) << " MB at most)\n";
  return text.str();
}

void warn(const TrainProgress& result) {
  for (const std::string& note : result.notes) std::cerr << "note: " << note << "\n";
  if (result.bytes_replaced > 0)
    std::cerr << "note: " << result.bytes_replaced << " bytes were not UTF-8 and replaced\n";
  if (result.words_dropped > 0) std::cerr << "note: " << result.words_dropped << " overlong words were dropped\n";
  if (result.updates_refused > 0)
    std::cerr << "note: " << result.updates_refused << " updates were not finite and refused; try a smaller --lr\n";
}

}  // namespace

std::string ProgressText::operator()(const TrainProgress& progress) {
  std::ostringstream line;
  const auto add = [&line](const char* format, double figure) {
    char text[64];
    std::snprintf(text, sizeof text, format, figure);
    line << text;
  };
  if (progress.fraction >= 0)
    add("%5.1f%%  ", 100 * progress.fraction);
  else
    line << short_count(static_cast<double>(progress.tokens)) << " tokens  ";
  line << short_count(per_second(progress.tokens, progress.seconds)) << " tokens/s";
  if (progress.documents >= 0)
    line << "  " << short_count(static_cast<double>(progress.documents)) << " documents";
  else
    add("  lr %.4f", progress.lr);
  // Unless nothing was trained on since the last look.
  if (progress.loss > 0) add("  loss %.4f", progress.loss);
  if (progress.prequential_loss > 0) add(" (new text %.4f)", progress.prequential_loss);
  line << "  " << short_count(static_cast<double>(progress.vocab)) << " words";
  // A resumed run begins somewhere in the middle: only what was done since then tells its speed.
  if (fraction_first_ < 0) {
    fraction_first_ = progress.fraction;
    seconds_first_ = progress.seconds;
  }
  if (!progress.bottleneck.empty()) line << "  limited by " << progress.bottleneck;
  const double done = progress.fraction - fraction_first_;
  if (fraction_first_ >= 0 && done > 0)
    line << "  ETA " << short_duration((progress.seconds - seconds_first_) / done * (1 - progress.fraction));
  return line.str();
}

std::string counting_text(int64_t tokens, double fraction) {
  std::string line = "counting words: " + short_count(static_cast<double>(tokens)) + " tokens";
  if (fraction >= 0) line += ", " + std::to_string(static_cast<int>(100 * fraction)) + "%";
  return line;
}

namespace {

TrainHooks quiet_hooks(const std::atomic<bool>& stop) {
  TrainHooks hooks;
  hooks.stop = &stop;
  return hooks;
}

}  // namespace

TrainHooks hooks_on(ProgressLine& line, const std::atomic<bool>& stop) {
  TrainHooks hooks = quiet_hooks(stop);
  hooks.progress = [&line, text = ProgressText(), news = SourceNews()](const TrainProgress& progress) mutable {
    for (const std::string& told : news.tell(progress.sources)) line.say("note: " + told);
    line.show(text(progress));
  };
  hooks.counting = [&line](int64_t tokens, double fraction) { line.show(counting_text(tokens, fraction)); };
  return hooks;
}

TrainOptions train_options(const Arguments& arguments) {
  TrainOptions options;
  // Unless they are given, a model that is continued keeps its own.
  if (arguments.given("model")) options.model = arguments.text("model");
  if (arguments.given("dim")) options.dim = arguments.integer("dim");
  options.window = static_cast<int32_t>(arguments.integer("window"));
  options.negatives = static_cast<int32_t>(arguments.integer("negatives"));
  options.sample = arguments.real("sample");
  options.pace = arguments.real("pace");
  options.min_count = arguments.integer("min-count");
  if (arguments.given("epochs")) options.epochs = static_cast<int32_t>(arguments.integer("epochs"));
  options.threads = static_cast<int32_t>(arguments.integer("threads"));
  if (arguments.given("lr")) options.lr = arguments.real("lr");
  options.schedule = arguments.text("schedule");
  options.optimizer = arguments.text("optimizer");
  options.kernel = arguments.text("kernel");
  options.device = arguments.text("device");
  options.table = arguments.text("table");
  if (arguments.given("products")) options.products = arguments.text("products");
  options.batch = static_cast<int32_t>(arguments.integer("batch"));
  options.vocab_max = arguments.integer("vocab-max");
  if (arguments.given("minn")) options.minn = static_cast<int32_t>(arguments.integer("minn"));
  if (arguments.given("maxn")) options.maxn = static_cast<int32_t>(arguments.integer("maxn"));
  if (arguments.given("bucket")) options.bucket = arguments.integer("bucket");
  if (arguments.given("hidden")) options.hidden = static_cast<int32_t>(arguments.integer("hidden"));
  if (arguments.given("char-dim")) options.character_dim = static_cast<int32_t>(arguments.integer("char-dim"));
  if (arguments.given("cell")) options.cell = arguments.text("cell");
  if (arguments.flag("jamo")) options.jamo = true;
  options.glove = {arguments.real("x-max"), arguments.real("alpha"), arguments.integer("memory")};
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  if (arguments.given("checkpoint-every")) options.checkpoint_every_s = arguments.real("checkpoint-every");
  if (arguments.text("tokenizer") == "whitespace") options.tokenizer.split = TokenizerOptions::Split::kWhitespace;
  options.tokenizer.fold_case = !arguments.flag("keep-case");
  options.tokenizer.nfkc = !arguments.flag("no-nfkc");
  options.stop_words = arguments.list("stop-words");
  options.stem = arguments.text("stem");
  options.lemmas = arguments.text("lemmas");
  return options;
}

namespace {

Status set_cluster_options(const Arguments& arguments, ClusterSettings& cluster) {
  if (arguments.given("nodes")) {
    STREAMVEC_ASSIGN_OR_RETURN(cluster.nodes, parse_addresses(arguments.text("nodes")));
  }
  cluster.rank = static_cast<int32_t>(arguments.integer("rank"));
  if (const std::optional<MpiRank> mpi = mpi_rank_of_environment(); mpi && !arguments.given("nodes")) {
    cluster.mpi = true;
    cluster.rank = mpi->rank;
    for (int32_t rank = 0; rank < mpi->ranks; ++rank) cluster.nodes.push_back("rank " + std::to_string(rank));
  }
  cluster.servers = static_cast<int32_t>(arguments.integer("servers"));
  cluster.ingest = static_cast<int32_t>(arguments.integer("ingest"));
  cluster.divide = arguments.flag("divide");
  cluster.sync = arguments.text("sync");
  cluster.combine = arguments.text("combine");
  cluster.codec = arguments.text("codec");
  if (arguments.given("staleness")) cluster.staleness = arguments.integer("staleness");
  cluster.shard = arguments.text("shard");
  cluster.lbfgs_history = static_cast<int32_t>(arguments.integer("lbfgs-history"));
  cluster.ring_rank = arguments.integer("ring-rank");
  cluster.backups = static_cast<int32_t>(arguments.integer("backups"));
  cluster.group = static_cast<int32_t>(arguments.integer("group"));
  cluster.words_min = arguments.integer("sync-words");
  cluster.dead_after_s = arguments.real("dead-after");
  cluster.ca = arguments.text("cluster-ca");
  cluster.certificate = arguments.text("cluster-certificate");
  cluster.key = arguments.text("cluster-key");
  if (const char* token = std::getenv("STREAMVEC_CLUSTER_TOKEN"); token != nullptr) cluster.token = token;
  return {};
}

// Of options that are wrong whatever the sources turn out to be.
Status check_before_sources_are_opened(TrainOptions options) {
  STREAMVEC_RETURN_IF_ERROR(check_options(options));
  if (options.device == "cpu") STREAMVEC_RETURN_IF_ERROR(check_without_card(options));
  const Status as_given = check_cluster(options);
  options.stream.on = true;
  return check_cluster(options).ok() ? Status() : as_given;
}

// Finds the other nodes, if they are to be found; nullptr otherwise. The membership lives as long as the node.
Result<std::unique_ptr<EtcdMembership>> find_nodes(const Arguments& arguments, const std::atomic<bool>& stop,
                                                   TrainOptions& given) {
  constexpr double kFindWithin = 300;  // machines of a job start minutes apart
  if (!arguments.given("etcd")) return std::unique_ptr<EtcdMembership>();
  ClusterSettings& cluster = given.cluster;
  EtcdMembership::Options options;
  options.url = arguments.text("etcd");
  options.job = arguments.text("job");
  options.address = arguments.text("address");
  options.nodes = static_cast<int32_t>(arguments.integer("workers"));
  options.servers = cluster.servers;
  options.lease_s = kLeaderGone * cluster.dead_after_s;
  STREAMVEC_ASSIGN_OR_RETURN(auto membership, EtcdMembership::join(options));
  STREAMVEC_ASSIGN_OR_RETURN(const EtcdMembership::Roster roster, membership->await_roster(kFindWithin, &stop));
  cluster.servers = 0;
  cluster.nodes.clear();
  for (const Registry::Member& node : roster.nodes) {
    cluster.nodes.push_back(node.address);
    cluster.ids.push_back(node.node);
    cluster.servers += node.worker ? 0 : 1;
  }
  cluster.rank = roster.rank;
  cluster.joins = roster.joins;
  cluster.leader = roster.leader;
  cluster.registry = membership.get();
  cluster.job = options.url + " " + options.job + " " + std::to_string(roster.job);
  cluster.mpi = false;
  return membership;
}

// A stream is what never ends, what is asked to be one, and what options of streams are given for.
Status set_stream_options(const Arguments& arguments, StreamOptions& stream) {
  stream.on = arguments.flag("stream") || arguments.given("half-life") || arguments.given("replay-ratio") ||
              arguments.given("replay");
  STREAMVEC_ASSIGN_OR_RETURN(stream.half_life, HalfLife::parse(arguments.text("half-life")));
  stream.replay = arguments.text("replay");
  stream.replay_ratio = arguments.real("replay-ratio");
  stream.replay_chunks = arguments.integer("replay-chunks");
  stream.drop_duplicates = arguments.flag("drop-duplicates");
  stream.languages = arguments.list("language");
  stream.evaluate_every_s = arguments.real("evaluate-every");
  stream.snapshot_every = arguments.integer("snapshot-every");
  stream.drift = !arguments.flag("no-drift");
  stream.similarity = arguments.list("similarity");
  stream.analogy = arguments.list("analogy");
  return {};
}

// How all web sources of the process behave. Before any is opened.
void set_fetching(const Arguments& arguments) {
  const auto milliseconds = [&](const char* option) {
    return std::chrono::milliseconds(static_cast<int64_t>(arguments.real(option) * 1000));
  };
  Fetcher::Options fetching;
  fetching.private_hosts = arguments.list("allow-private");
  fetching.ca = arguments.text("ca");
  fetching.host_delay = milliseconds("fetch-delay");
  Fetcher::configure_process(std::move(fetching));
  CrawlSource::set_poll_min(milliseconds("poll-every"));
}

// All but what etcd will say.
Result<TrainOptions> options_of(const Arguments& arguments) {
  TrainOptions options = train_options(arguments);
  STREAMVEC_RETURN_IF_ERROR(set_stream_options(arguments, options.stream));
  STREAMVEC_RETURN_IF_ERROR(set_cluster_options(arguments, options.cluster));
  return options;
}

Status misuse_of_etcd(const Arguments& arguments) {
  if (arguments.given("nodes") || !arguments.given("address"))
    return error(Code::kInvalidArgument,
                 "--etcd needs --address HOST:PORT, where the others reach this node, and finds "
                 "the --nodes by itself");
  if (arguments.flag("divide")) return no_division_of_found_nodes();
  for (const std::string& source : arguments.words)
    if (source.find(kRankMark) != std::string::npos)
      return error(Code::kInvalidArgument, source, ": nodes that are found by --etcd have no numbers for ", kRankMark,
                   "; name the sources of each");
  return EtcdMembership::check_job(arguments.text("job"));
}

}  // namespace

Status misuse_of_train(const Arguments& arguments) {
  STREAMVEC_RETURN_IF_ERROR(misuse_of_service_if_wanted(arguments));
  STREAMVEC_ASSIGN_OR_RETURN(TrainOptions options, options_of(arguments));
  ClusterSettings& cluster = options.cluster;
  if (arguments.given("etcd")) {
    STREAMVEC_RETURN_IF_ERROR(misuse_of_etcd(arguments));
    cluster.nodes.assign(static_cast<size_t>(arguments.integer("workers")), "");
  }
  const int files = !cluster.ca.empty() + !cluster.certificate.empty() + !cluster.key.empty();
  if (cluster.on() && !cluster.mpi && files != 0 && files != 3)
    return error(Code::kInvalidArgument, "--cluster-ca, --cluster-certificate and --cluster-key go together; give all ",
                 "three, not ", files);
  STREAMVEC_RETURN_IF_ERROR(check_before_sources_are_opened(options));
  return own_sources(cluster, arguments.words).status();
}

Result<int> run_train(const Arguments& arguments) {
  const std::string out = arguments.text("out");
  const std::atomic<bool>& stop = stop_on_signals();
  STREAMVEC_ASSIGN_OR_RETURN(TrainOptions options, options_of(arguments));
  const auto membership = find_nodes(arguments, stop, options);
  if (membership.status().code() == Code::kCancelled) return 0;  // nothing was begun
  STREAMVEC_RETURN_IF_ERROR(membership.status());
  set_fetching(arguments);
  // A card is fed by many threads with pieces of text that come and go.
  options.cluster.on() || options.device != "cpu" ? keep_large_blocks() : return_large_blocks();
  ProgressLine line(2);
  // mpirun joins what all ranks print: the first speaks for all.
  const bool quiet = options.cluster.mpi && options.cluster.rank > 0;
  // Of a cluster the first node answers.
  std::unique_ptr<Service> service;
  if (options.cluster.rank == 0) {
    STREAMVEC_ASSIGN_OR_RETURN(service, service_if_wanted(arguments, out));
  }
  TrainHooks hooks = quiet ? quiet_hooks(stop) : hooks_on(line, stop);
  if (service != nullptr) show_on(*service, hooks);
  const bool numbered = options.cluster.on() && options.cluster.registry == nullptr;
  const auto result =
      train(options, numbered ? with_rank(arguments.words, options.cluster.rank) : arguments.words, out, hooks);
  line.clear();
  const bool stopped = stop && result.ok() && result->fraction < 1;  // a wish that comes after the end changes nothing
  if (result.ok() && !quiet) {
    warn(*result);
    STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json_of(*result, out, stopped, options.cluster.on()))
                                                     : print(summary_of(*result, out)));
  }
  leave_service(arguments, service.get(), result, stop);
  if (!result.ok()) return result.status();
  return 0;
}

}  // namespace streamvec::cli
