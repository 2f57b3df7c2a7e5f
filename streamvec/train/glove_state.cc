#include "streamvec/train/glove_state.h"

#include <cmath>
#include <string>
#include <utility>

#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

constexpr const char* kCellsFile = "glove.bin";
constexpr int64_t kAnyRows = -1;
constexpr int64_t kMemoryMbMax = 1 << 24;
constexpr const char* kSides[2] = {"glove.words", "glove.contexts"};

// What a checkpoint keeps beside the rows, by name.
std::vector<std::pair<std::string, Matrix*>> tables_of(GloveTables& glove) {
  std::vector<std::pair<std::string, Matrix*>> tables;
  for (int side = 0; side < 2; ++side) {
    tables.push_back({kSides[side] + std::string(".sums"), &glove.sums[side]});
    tables.push_back({kSides[side] + std::string(".biases"), &glove.biases[side]});
  }
  return tables;
}

// Moves a table of the checkpoint to `to`.
Status take(Checkpoint& existing, const std::string& name, int64_t rows, int64_t cols, Matrix& to) {
  const auto found = existing.optimizer.find(name);
  if (found == existing.optimizer.end() || (rows != kAnyRows && found->second.rows() != rows) ||
      found->second.cols() != cols)
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " has no table ", name,
                 " beside input; files of different checkpoints were mixed up");
  to = std::move(found->second);
  existing.optimizer.erase(found);
  return {};
}

// Options of other models that ask for what glove has not.
Status check_what_it_has(const TrainOptions& options) {
  if (options.optimizer == "adam")
    return error(Code::kInvalidArgument,
                 "--model glove has AdaGrad of its own, --optimizer asks for adam; leave it out");
  if (options.vocab_max > CellKey::kSlotsMax)
    return error(Code::kInvalidArgument, "--vocab-max is ", options.vocab_max, "; it must be at most ",
                 CellKey::kSlotsMax, " with --model glove");
  return parse_glove_kernel(options.kernel).status();
}

}  // namespace

Status GloveState::check_options(const TrainOptions& options) const {
  const auto wrong = [](const char* name, const auto& value, const char* range) {
    return error(Code::kInvalidArgument, name, " is ", value, "; it must be ", range);
  };
  const GloveOptions& glove = options.glove;
  if (!(glove.x_max > 0) || !std::isfinite(glove.x_max)) return wrong("--x-max", glove.x_max, "above 0");
  if (!(glove.alpha >= 0) || glove.alpha > 10) return wrong("--alpha", glove.alpha, "0 to 10");
  if (glove.memory_mb < 1 || glove.memory_mb > kMemoryMbMax) return wrong("--memory", glove.memory_mb, "1 to 16777216");
  return options.model.value_or("") == "glove" ? check_what_it_has(options) : Status();
}

// Of a directory that is continued the model need not be named.
Status GloveState::check_same(const TrainOptions& options, const Checkpoint&, const std::string&) const {
  return check_what_it_has(options);
}

void describe_glove(const TrainOptions& options, nlohmann::json& description) {
  description["x-max"] = options.glove.x_max;
  description["alpha"] = options.glove.alpha;
}

Status GloveState::take_rows(Checkpoint& existing) const {
  const int64_t rows = existing.input.rows(), dim = existing.input.cols();
  STREAMVEC_RETURN_IF_ERROR(take(existing, kSides[0], rows, dim, existing.input));
  return take(existing, kSides[1], rows, dim, existing.output);
}

Status GloveState::begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                         Parameters& parameters) const {
  GloveTables& glove = *parameters.glove;
  glove.weighting = {options.glove.x_max, options.glove.alpha};
  CellTable::Options cells;
  cells.memory_bytes = options.glove.memory_mb << 20;
  STREAMVEC_RETURN_IF_ERROR(
      check_memory("co-occurrences", static_cast<double>(cells.memory_bytes), "a smaller --memory"));
  cells.window = options.window;
  cells.half_life = options.stream.half_life.value;
  cells.seed = options.seed;
  glove.cells = std::make_unique<CellTable>(cells);
  if (existing == nullptr) return {};
  for (auto& [name, table] : tables_of(glove)) {
    STREAMVEC_RETURN_IF_ERROR(take(*existing, name, kAnyRows, table->cols(), *table));
    if (table->rows() > vocabulary.size())
      return error(Code::kDataLoss, "table ", name, " has rows of ", table->rows(), " words, there are ",
                   vocabulary.size(), "; files of different checkpoints were mixed up");
    table->grow(vocabulary.size());
  }
  const auto saved = existing->extra.find(kCellsFile);
  return saved == existing->extra.end() ? Status() : glove.cells->restore(saved->second, vocabulary.size());
}

Result<Matrix> GloveState::input_rows(Parameters& parameters, int64_t rows) const {
  return glove_vectors(parameters, rows);
}

Status GloveState::add_to(CheckpointContent& content, Parameters& parameters) {
  STREAMVEC_ASSIGN_OR_RETURN(vectors_, glove_vectors(parameters, parameters.rows()));
  content.input = std::as_const(vectors_).view();
  content.output = {};
  content.optimizer.push_back({kSides[0], parameters.input.rows.view()});
  content.optimizer.push_back({kSides[1], parameters.output.rows.view()});
  for (const auto& [name, table] : tables_of(*parameters.glove)) content.optimizer.push_back({name, table->view()});
  const CellTable* cells = parameters.glove->cells.get();
  if (cells->cells() > 0)
    content.extra.push_back({kCellsFile, [cells](const auto& sink) { return cells->write(sink); }});
  return {};
}

}  // namespace streamvec
