// streamvec demo: learns from text with a planted truth, and tells whether it was found.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/training.h"
#include "streamvec/eval/analogy.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/source/planted.h"

namespace streamvec::cli {
namespace {

constexpr int64_t kTokens = 1'000'000;
constexpr size_t kWordsShown = 2;     // of each class
constexpr int32_t kNeighbours = 5;    // of each word
constexpr double kShareWanted = 0.8;  // right answers that count as "found"

// A directory under the system's temporary one that goes away with everything in it.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make() {
    std::error_code failure;
    std::string path = (std::filesystem::temp_directory_path(failure) / "streamvec-demo-XXXXXX").string();
    if (failure || ::mkdtemp(path.data()) == nullptr)
      return error(Code::kUnavailable, path, ": cannot be made (", std::strerror(errno), "); set TMPDIR");
    return TemporaryDirectory(std::move(path));
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Tally {
  int64_t right = 0, asked = 0;
  bool found() const { return asked > 0 && static_cast<double>(right) >= kShareWanted * static_cast<double>(asked); }
  std::string text() const { return std::to_string(right) + " of " + std::to_string(asked); }
};

// Trains until `seconds` have passed or the user stops it; the clock alone decides, so that every machine takes the
// same.
Result<TrainProgress> learn(const Arguments& arguments, const std::string& out, const std::atomic<bool>& user_stop) {
  TrainOptions options;
  options.dim = 64;
  options.epochs = 1'000'000;
  options.schedule = "constant";
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  const double seconds = arguments.real("seconds");
  std::atomic<bool> stop = false;
  ProgressLine line(2);
  TrainHooks hooks = hooks_on(line, stop);
  hooks.progress = [&, show = hooks.progress](TrainProgress progress) {
    progress.fraction = std::min(1.0, progress.seconds / seconds);
    if (progress.seconds >= seconds || user_stop) stop = true;
    show(progress);
  };
  hooks.counting = [&, show = hooks.counting](int64_t tokens, double fraction) {
    if (user_stop) stop = true;
    show(tokens, fraction);
  };
  const std::string source = "planted:?tokens=" + std::to_string(kTokens) + "&seed=" + std::to_string(options.seed);
  return train(options, {source}, out, hooks);
}

// Looks at neighbours of a few words of each class, adds them to `text`, and counts those of the same class.
Result<Tally> look_at_classes(const NeighbourIndex& index, std::string& text) {
  Tally tally;
  for (const PlantedTruth::WordClass& planted : planted_truth().classes) {
    text += planted.name + "\n";
    for (size_t i = 0; i < std::min(kWordsShown, planted.words.size()); ++i) {
      const std::string& word = planted.words[i];
      const auto count = std::min<int64_t>(kNeighbours, static_cast<int64_t>(planted.words.size()) - 1);
      STREAMVEC_ASSIGN_OR_RETURN(const auto found, index.nearest(word, static_cast<int32_t>(count)));
      text += "  " + word + ":";
      for (const Neighbour& neighbour : found) {
        const std::string_view other = index.vocabulary().word(neighbour.slot);
        const bool right = std::find(planted.words.begin(), planted.words.end(), other) != planted.words.end();
        text += (right ? " " : " !") + std::string(other);
        tally.right += right;
      }
      tally.asked += count;
      text += "\n";
    }
  }
  return tally;
}

AnalogySet planted_questions() {
  AnalogySet set{.name = "planted", .sections = {}};
  for (const PlantedTruth::Relation& relation : planted_truth().relations) {
    AnalogySet::Section section{.name = relation.name, .questions = {}};
    for (const auto& [a, b] : relation.pairs)
      for (const auto& [c, d] : relation.pairs)
        if (a != c) section.questions.push_back({a, b, c, d});
    set.sections.push_back(std::move(section));
  }
  return set;
}

Result<Tally> ask_analogies(const Snapshot& snapshot, std::string& text) {
  STREAMVEC_ASSIGN_OR_RETURN(const AnalogyResult result, measure_analogy(snapshot, planted_questions()));
  text += "analogies\n";
  for (const AnalogyScore& section : result.sections) {
    const auto& pairs =
        std::find_if(planted_truth().relations.begin(), planted_truth().relations.end(), [&](const auto& relation) {
          return relation.name == section.name;
        })->pairs;
    text += "  " + section.name + " (" + pairs[0].first + " : " + pairs[0].second + " = " + pairs[1].first +
            " : ?): " + Tally{section.cos_add_correct, section.questions}.text() + " right\n";
  }
  return Tally{result.total.cos_add_correct, result.total.questions};
}

Json json_of(const TrainProgress& trained, const Tally& neighbours, const Tally& analogies) {
  return {{"found", neighbours.found() && analogies.found()},
          {"neighbours", {{"right", neighbours.right}, {"asked", neighbours.asked}}},
          {"analogies", {{"right", analogies.right}, {"asked", analogies.asked}}},
          {"tokens", trained.tokens},
          {"seconds", rounded(trained.seconds)},
          {"kernel", trained.kernel}};
}

}  // namespace

Result<int> run_demo(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::make());
  const std::atomic<bool>& stop = stop_on_signals();
  if (!arguments.flag("json"))
    STREAMVEC_RETURN_IF_ERROR(print("Text with planted word classes and relations is made up and learned.\n"));
  STREAMVEC_ASSIGN_OR_RETURN(const TrainProgress trained, learn(arguments, directory.path() + "/model", stop));
  if (stop) return 0;
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(directory.path() + "/model"));
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex index, NeighbourIndex::make(snapshot));
  std::string text = short_count(static_cast<double>(trained.tokens)) + " tokens in " +
                     short_duration(trained.seconds) + ", kernel " + trained.kernel +
                     ". Nearest words of some words of each class (! marks strangers):\n";
  STREAMVEC_ASSIGN_OR_RETURN(const Tally neighbours, look_at_classes(index, text));
  STREAMVEC_ASSIGN_OR_RETURN(const Tally analogies, ask_analogies(snapshot, text));
  const bool found = neighbours.found() && analogies.found();
  text += (found ? "The planted truth was found: " : "The planted truth was NOT found: ") + neighbours.text() +
          " neighbours and " + analogies.text() + " analogies are right.\n";
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json_of(trained, neighbours, analogies)) : print(text));
  return found ? 0 : 1;
}

}  // namespace streamvec::cli
