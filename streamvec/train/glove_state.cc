#include "streamvec/train/glove_state.h"

#include <cmath>
#include <string>
#include <utility>

namespace streamvec {
namespace {

constexpr const char* kCellsFile = "glove.bin";
constexpr const char* kSides[2] = {"glove.words", "glove.contexts"};

// Every table that a checkpoint keeps, by name.
std::vector<std::pair<std::string, Matrix*>> tables_of(Parameters& parameters) {
  std::vector<std::pair<std::string, Matrix*>> tables;
  for (int side = 0; side < 2; ++side) {
    const std::string name = kSides[side];
    tables.push_back({name, side == 0 ? &parameters.input.rows : &parameters.output.rows});
    tables.push_back({name + ".sums", &parameters.glove->sums[side]});
    tables.push_back({name + ".biases", &parameters.glove->biases[side]});
  }
  return tables;
}

}  // namespace

Status check_glove(const TrainOptions& options) {
  const auto wrong = [](const char* name, const auto& value, const char* range) {
    return error(Code::kInvalidArgument, name, " is ", value, "; it must be ", range);
  };
  const GloveOptions& glove = options.glove;
  if (!(glove.x_max > 0) || !std::isfinite(glove.x_max)) return wrong("--x-max", glove.x_max, "above 0");
  if (!(glove.alpha >= 0) || glove.alpha > 10) return wrong("--alpha", glove.alpha, "0 to 10");
  if (glove.memory_mb < 1) return wrong("--memory", glove.memory_mb, "1 or more");
  if (options.model.value_or("") != "glove") return {};
  if (options.optimizer == "adam")
    return error(Code::kInvalidArgument,
                 "--model glove has AdaGrad of its own, --optimizer asks for adam; leave it out");
  if (options.vocab_max > CellKey::kSlotsMax)
    return wrong("--vocab-max", options.vocab_max, "at most 16777216 with --model glove");
  return parse_glove_kernel(options.kernel).status();
}

void describe_glove(const TrainOptions& options, nlohmann::json& description) {
  description["x-max"] = options.glove.x_max;
  description["alpha"] = options.glove.alpha;
}

Status restore_glove(Checkpoint& existing, Parameters& parameters) {
  for (auto& [name, table] : tables_of(parameters)) {
    const auto found = existing.optimizer.find(name);
    if (found == existing.optimizer.end() || found->second.rows() != table->rows() ||
        found->second.cols() != table->cols())
      return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " has no table ", name,
                   " beside input; files of different checkpoints were mixed up");
    *table = std::move(found->second);
    existing.optimizer.erase(found);
  }
  return {};
}

void set_glove(const TrainOptions& options, Parameters& parameters) {
  parameters.glove->weighting = {options.glove.x_max, options.glove.alpha};
}

Status add_cells(const TrainOptions& options, double half_life, const Checkpoint* existing, Parameters& parameters) {
  CellTable::Options table;
  table.memory_bytes = options.glove.memory_mb << 20;
  table.window = options.window;
  table.half_life = half_life;
  table.seed = options.seed;
  parameters.glove->cells = std::make_unique<CellTable>(table);
  if (existing == nullptr) return {};
  const auto saved = existing->extra.find(kCellsFile);
  if (saved == existing->extra.end()) return {};
  return parameters.glove->cells->restore(saved->second, parameters.rows());
}

Status GloveState::add_to(CheckpointContent& content, Parameters& parameters) {
  if (!parameters.glove) return {};
  STREAMVEC_ASSIGN_OR_RETURN(vectors_, glove_vectors(parameters));
  content.input = std::as_const(vectors_).view();
  content.output = {};
  for (const auto& [name, table] : tables_of(parameters)) content.optimizer.push_back({name, table->view()});
  if (const CellTable* cells = parameters.glove->cells.get(); cells != nullptr)
    content.extra.push_back({kCellsFile, [cells](const auto& sink) { return cells->write(sink); }});
  return {};
}

}  // namespace streamvec
