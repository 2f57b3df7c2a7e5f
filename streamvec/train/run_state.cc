#include "streamvec/train/run_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {
double RunState::fraction(int32_t epochs) const {
  if (epoch_tokens < 0) return -1;
  const double total = static_cast<double>(epoch_tokens) * epochs;
  return total > 0 ? std::min(1.0, static_cast<double>(tokens) / total) : 1;
}

nlohmann::json describe_run(const TrainOptions& options, double lr, const std::vector<std::string>& sources) {
  const TokenizerOptions& tokenizer = options.tokenizer;
  const nlohmann::json description = {
      {"sources", sources},
      {"window", options.window},
      {"negatives", options.negatives},
      {"sample", options.sample},
      {"min-count", options.min_count},
      {"epochs", options.epochs},
      {"lr", lr},
      {"schedule", options.schedule},
      {"optimizer", options.optimizer},
      {"batch", options.batch},
      {"vocab-max", options.vocab_max},
      {"seed", options.seed},
      {"tokenizer", tokenizer.split == TokenizerOptions::Split::kWords ? "words" : "whitespace"},
      {"keep-case", !tokenizer.fold_case},
      {"no-nfkc", !tokenizer.nfkc},
      {"stop-words", options.stop_words},
      {"stem", options.stem},
      {"lemmas", options.lemmas}};
  return read_back(description);  // paths are any bytes
}

std::string differences(const nlohmann::json& a, const nlohmann::json& b) {
  std::string names;
  for (const auto& [name, value] : b.items())
    if (!a.is_object() || !a.contains(name) || a[name] != value) names += (names.empty() ? "" : ", ") + name;
  return names;
}

namespace {

constexpr int64_t kPieceMost = int64_t{1} << 60;  // numbers up to it can be added

nlohmann::json ranges_to_json(const std::vector<PieceRange>& ranges) {
  nlohmann::json list = nlohmann::json::array();
  for (const PieceRange& range : ranges) list.push_back({range.begin, range.end});
  return list;
}

// False when it is no list of ranges as joined() has them.
bool ranges_from_json(const nlohmann::json& list, std::vector<PieceRange>& ranges) {
  if (!list.is_array()) return false;
  int64_t least = 0;
  for (const nlohmann::json& range : list) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer())
      return false;
    const PieceRange read{range[0].get<int64_t>(), range[1].get<int64_t>()};
    if (read.begin < least || read.end <= read.begin || read.end > kPieceMost) return false;
    ranges.push_back(read);
    least = read.end + 1;
  }
  return true;
}

}  // namespace

nlohmann::json to_json(const RunState& state) {
  return {{"epoch", state.epoch},
          {"tokens", state.tokens},
          {"pairs", state.pairs},
          {"seconds", state.seconds},
          {"loss", state.loss},
          {"loss_pairs", state.loss_pairs},
          {"epoch_tokens", state.epoch_tokens},
          {"bytes_replaced", state.bytes_replaced},
          {"words_dropped", state.words_dropped},
          {"updates_refused", state.updates_refused},
          {"finished", state.finished},
          {"finished_ahead", ranges_to_json(state.finished_ahead)}};
}

Result<RunState> run_state_from_json(const nlohmann::json& state, const nlohmann::json& cursors) {
  const auto damaged = [](const std::string& what) {
    return error(Code::kDataLoss, "state.json does not say where the run stopped (", what,
                 "); it was written by another program or another version");
  };
  RunState run;
  try {
    run.epoch = static_cast<int32_t>(whole_number(state, "epoch"));
    run.tokens = whole_number(state, "tokens");
    run.pairs = whole_number(state, "pairs");
    run.seconds = state.at("seconds");
    run.loss = state.at("loss");
    run.loss_pairs = whole_number(state, "loss_pairs");
    run.epoch_tokens = whole_number(state, "epoch_tokens");
    run.bytes_replaced = whole_number(state, "bytes_replaced");
    run.words_dropped = whole_number(state, "words_dropped");
    run.updates_refused = whole_number(state, "updates_refused");
    run.finished = state.at("finished");
    run.cursor = cursors.at("sources");
    const auto ahead = state.find("finished_ahead");
    if (ahead != state.end() && !ranges_from_json(*ahead, run.finished_ahead))
      return damaged("finished_ahead is not a list of ranges, one after the other");
  } catch (const nlohmann::json::exception& e) {
    return damaged(e.what());
  }
  return run;
}

}  // namespace streamvec
