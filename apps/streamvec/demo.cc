// streamvec demo: crawls a news site of its own, learns from what it writes, and tells whether what was planted there
// was found.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/demo_report.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/service.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/temporary_directory.h"
#include "apps/streamvec/training.h"
#include "streamvec/eval/drift.h"
#include "streamvec/eval/history.h"
#include "streamvec/source/newsroom/writer.h"

namespace streamvec::cli {
namespace {

// Chosen so that the planted truth is found with room to spare: with half the articles it still is.
constexpr int64_t kArticles = 6'000;      // 1.8 M words
constexpr int64_t kReplayChunks = 1'000;  // 250,000 words: the newest seventh, so that old meanings fade
constexpr double kReplayRatio = 2;
constexpr int64_t kSnapshotTokens = 100'000;
constexpr double kLookEvery_s = 3;         // while somebody watches
constexpr double kBeforeTheChange = 0.48;  // of the text; the meanings change at the half

std::string source_name(const Arguments& arguments) {
  const double rate = std::ceil(static_cast<double>(kArticles) / arguments.real("seconds"));
  return "newsroom:?articles=" + std::to_string(kArticles) + "&rate=" + std::to_string(static_cast<int64_t>(rate)) +
         "&seed=" + std::to_string(arguments.integer("seed"));
}

double share_read(const TrainProgress& progress) {
  return std::min(1.0, static_cast<double>(progress.documents) / static_cast<double>(kArticles));
}

// Reads the site to its end, as it is written, or until the user stops it.
Result<TrainProgress> learn(const Arguments& arguments, const std::string& out, Service* service,
                            const std::atomic<bool>& stop) {
  TrainOptions options;
  options.dim = 64;
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.checkpoint_every_s = 0;
  options.stream.on = true;
  options.stream.replay_chunks = kReplayChunks;
  options.stream.replay_ratio = kReplayRatio;
  options.stream.snapshot_every = kSnapshotTokens;
  if (service != nullptr) options.stream.evaluate_every_s = kLookEvery_s;
  ProgressLine line(2);
  TrainHooks hooks = hooks_on(line, stop);
  if (service != nullptr) show_on(*service, hooks);
  hooks.progress = [show = hooks.progress](TrainProgress progress) {
    progress.fraction = share_read(progress);
    show(progress);
  };
  STREAMVEC_ASSIGN_OR_RETURN(TrainProgress trained, train(options, {source_name(arguments)}, out, hooks));
  trained.fraction = stop ? share_read(trained) : 1;
  return trained;
}

// What changed between the last snapshot before the change of meaning, half-way through the text, and the end.
Result<DriftReport> find_changes(const std::string& directory, const Snapshot& now, int64_t tokens) {
  const History history(directory);
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<HistoryEntry> entries, history.list());
  const auto wanted = static_cast<int64_t>(kBeforeTheChange * static_cast<double>(tokens));
  auto old_entry = entries.rend();
  for (auto entry = entries.rbegin(); entry != entries.rend() && old_entry == entries.rend(); ++entry)
    if (entry->moment.tokens <= wanted) old_entry = entry;
  if (old_entry == entries.rend())
    return error(Code::kFailedPrecondition, "the text was read too fast for a look at it before the change; try a ",
                 "longer --seconds");
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot then, History::load(*old_entry));
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, history.load_halves(old_entry->moment.step, now.step));
  if (!halves) return find_drift({then}, {now});
  return find_drift({then, &halves->old_a, &halves->old_b}, {now, &halves->new_a, &halves->new_b});
}

Json json_of(const TrainProgress& trained, const DemoReport& report) {
  Json json = report.json();
  json["documents"] = trained.documents;
  json["tokens"] = trained.tokens;
  json["seconds"] = rounded(trained.seconds);
  json["kernel"] = trained.kernel;
  return json;
}

// Holds what was learned against what was planted, and says so.
Result<int> report(const Arguments& arguments, const std::string& model, const TrainProgress& trained) {
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(model));
  STREAMVEC_ASSIGN_OR_RETURN(const DriftReport drift, find_changes(model, snapshot, trained.tokens));
  STREAMVEC_ASSIGN_OR_RETURN(const DemoReport found, report_on_demo(snapshot, drift, newsroom::truth()));
  const std::string text = short_count(static_cast<double>(trained.documents)) + " articles, " +
                           short_count(static_cast<double>(trained.tokens)) + " words in " +
                           short_duration(trained.seconds) + ", kernel " + trained.kernel + ".\n" + found.text;
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json_of(trained, found)) : print(text));
  return found.found() ? 0 : 1;
}

}  // namespace

Status misuse_of_demo(const Arguments& arguments) {
  return misuse_of_service_if_wanted(arguments);
}

Result<int> run_demo(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::make("streamvec-demo"));
  const std::string model = directory.path() + "/model";
  const std::atomic<bool>& stop = stop_on_signals("\nstopping\n");
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service, service_if_wanted(arguments, model));
  if (!arguments.flag("json"))
    STREAMVEC_RETURN_IF_ERROR(
        print("A news site on this machine writes made-up articles with a planted truth; they are crawled and learned "
              "as they appear.\n"));
  const Result<TrainProgress> trained = learn(arguments, model, service.get(), stop);
  Result<int> exit_code = trained.ok() ? Result<int>(0) : trained.status();
  if (trained.ok() && !stop) exit_code = report(arguments, model, *trained);
  leave_service(arguments, service.get(), exit_code.ok() ? trained : exit_code.status(), stop);
  return exit_code;
}

}  // namespace streamvec::cli
