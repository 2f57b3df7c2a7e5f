#include "streamvec/reproduce/experiment.h"

#include <algorithm>
#include <limits>

namespace streamvec {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Published {
  std::string_view model;
  int64_t dim, batch;
  Setting setting;
  Figures2018 figures;
};

constexpr Published kPublished[] = {
    {"sgns", 200, 1024, Setting::kOne, {34.10, 98'213, 123.6}},
    {"sgns", 200, 1024, Setting::kSeveral, {25.37, 132'061, 129.6}},
    {"sgns", 200, 1024, Setting::kSync, {394.27, 8'494, kNone, false}},
    {"sgns", 200, 8192, Setting::kOne, {28.6, 117'100, 129.3}},
    {"sgns", 200, 8192, Setting::kSeveral, {24.1, 138'965, kNone}},
    {"sgns", 200, 8192, Setting::kSync, {52.79, 63'441, 193.6}},
    {"sgns", 200, 8192, Setting::kAsync, {46.5, 72'023, kNone, false}},
    {"sgns", 50, 1024, Setting::kOne, {21.6, 155'049, 14.52}},
    {"sgns", 50, 1024, Setting::kSeveral, {24.08, 139'080, 15.44}},
    {"sgns", 50, 1024, Setting::kSync, {93.81, 35'700, 44.21}},
    {"sgns", 50, 8192, Setting::kOne, {29.32, 114'224, 15.19}},
    {"sgns", 50, 8192, Setting::kSeveral, {21.28, 157'380, kNone}},
    {"sgns", 50, 8192, Setting::kSync, {16.93, 197'818, 44.12}},
    {"rbsg", 200, 1024, Setting::kOne, {1133.9, 2'954, 1.11}},
};

constexpr std::pair<Setting, std::string_view> kSettings[] = {
    {Setting::kOne, "one"}, {Setting::kSeveral, "several"}, {Setting::kSync, "sync"}, {Setting::kAsync, "async"}};

// Words of a block that have about `pairs` pairs: a centre draws 1..5 words to each side.
int64_t centres_of(int64_t pairs) {
  constexpr int64_t kPairsPerCentre = 6;
  return std::min<int64_t>(4096, std::max<int64_t>(1, pairs / kPairsPerCentre));
}

bool is_cluster(Setting setting) {
  return setting == Setting::kSync || setting == Setting::kAsync;
}

std::vector<RowPlan> all_rows(bool quick) {
  const std::vector<int64_t> dims = quick ? std::vector<int64_t>{50} : std::vector<int64_t>{50, 200};
  const std::vector<int64_t> batches = quick ? std::vector<int64_t>{1024} : std::vector<int64_t>{1024, 8192};
  std::vector<RowPlan> rows;
  for (const int64_t dim : dims)
    for (const int64_t batch : batches)
      for (const auto& [setting, name] : kSettings) rows.push_back({Arm::kPublished, "sgns", setting, dim, batch});
  rows.push_back({Arm::kPublished, "rbsg", Setting::kOne, dims.back(), 1024});
  for (const int64_t dim : dims)
    for (const int64_t batch : {int64_t{1024}, int64_t{8192}, int64_t{0}})
      for (const auto& [setting, name] : kSettings)
        if (batch == 0 || batch == batches.front() || batch == batches.back())
          rows.push_back({Arm::kSound, "sgns", setting, dim, batch});
  rows.push_back({Arm::kSound, "rbsg", Setting::kOne, dims.back(), 1024});
  return rows;
}

}  // namespace

std::string RowPlan::name() const {
  std::string text = (arm == Arm::kPublished ? "published-" : "sound-") + model + "-" + std::to_string(dim) + "-" +
                     (batch > 0 ? std::to_string(batch) : "own") + "-";
  for (const auto& [each, spelling] : kSettings)
    if (each == setting) text += spelling;
  return text;
}

std::string RowPlan::setting_text() const {
  switch (setting) {
    case Setting::kOne:
      return "one process, a node's threads";
    case Setting::kSeveral:
      return "one process, all nodes' threads";
    case Setting::kSync:
      return "cluster, synchronous";
    default:
      return "cluster, asynchronous";
  }
}

std::vector<RowPlan> plan_rows(const ExperimentOptions& options) {
  std::vector<RowPlan> rows = all_rows(options.quick);
  std::erase_if(rows, [&](const RowPlan& row) {
    if (row.arm == Arm::kPublished && !options.as_published) return true;
    // The careless rows of 2018 had batches of 8192; the quick scale has one batch for all.
    if (row.arm == Arm::kPublished && row.setting == Setting::kAsync && row.batch != 8192 && !options.quick)
      return true;
    return row.name().find(options.only) == std::string::npos;
  });
  return rows;
}

std::optional<Figures2018> figures_2018(const RowPlan& plan) {
  for (const Published& row : kPublished)
    if (row.model == plan.model && row.dim == plan.dim && row.batch == plan.batch && row.setting == plan.setting)
      return row.figures;
  return std::nullopt;
}

std::vector<int64_t> measured_epochs(int64_t epochs) {
  std::vector<int64_t> measured;
  for (int64_t epoch = 1; epoch < epochs; epoch *= 2) measured.push_back(epoch);
  measured.push_back(epochs);
  return measured;
}

std::vector<std::string> train_command(const RowPlan& plan, const ExperimentOptions& options, int64_t epochs,
                                       const std::string& corpus, const std::string& out) {
  std::vector<std::string> words;
  if (is_cluster(plan.setting)) words = {"launch", "-n", std::to_string(options.nodes), "--pin", "--"};
  const int32_t threads =
      plan.setting == Setting::kSeveral ? options.nodes * options.node_threads : options.node_threads;
  for (const std::string& word :
       {std::string("train"), corpus, std::string("--out"), out, std::string("--dim"), std::to_string(plan.dim),
        std::string("--epochs"), std::to_string(epochs), std::string("--threads"), std::to_string(threads),
        std::string("--seed"), std::to_string(options.seed), std::string("--json")})
    words.push_back(word);
  if (!options.stem.empty()) words.insert(words.end(), {"--stem", options.stem});
  if (plan.model != "sgns") words.insert(words.end(), {"--model", plan.model});
  if (plan.model == "rbsg" && options.quick) words.insert(words.end(), {"--hidden", "32", "--char-dim", "16"});
  const bool fits_card = !is_cluster(plan.setting) && (plan.model == "rbsg" || plan.batch == 0);
  if (options.device != "cpu" && fits_card) words.insert(words.end(), {"--device", options.device});
  if (plan.batch > 0)
    words.insert(words.end(), {"--batch", std::to_string(plan.model == "rbsg" ? plan.batch : centres_of(plan.batch))});
  if (plan.arm == Arm::kPublished)
    words.insert(words.end(), {"--optimizer", "adam", "--lr", "1e-4", "--schedule", "constant"});
  if (is_cluster(plan.setting))
    words.insert(words.end(), {"--sync", plan.setting == Setting::kSync ? "bsp" : "async", "--sync-words", "1000"});
  return words;
}

std::string shell_text(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

double RowResult::best_mean_square() const {
  double best = std::numeric_limits<double>::infinity();
  for (const RowPoint& point : points) best = std::min(best, point.pip.mean_square);
  return best;
}

}  // namespace streamvec
