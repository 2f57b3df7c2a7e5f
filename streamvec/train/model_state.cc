#include "streamvec/train/model_state.h"

#include <algorithm>
#include <span>

#include "streamvec/train/glove_state.h"
#include "streamvec/train/hybrid_state.h"
#include "streamvec/train/rbsg_state.h"
#include "streamvec/train/subword_state.h"

namespace streamvec {

Status ModelState::check_options(const TrainOptions&) const {
  return {};
}

Status ModelState::check_same(const TrainOptions&, const Checkpoint&, const std::string&) const {
  return {};
}

Status ModelState::take_rows(Checkpoint&) const {
  return {};
}

Status ModelState::begin(const TrainOptions&, Checkpoint*, const Vocabulary&, Parameters&) const {
  return {};
}

void ModelState::finish(Parameters&) const {}

Result<Matrix> ModelState::input_rows(Parameters& parameters, int64_t rows) const {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix copy, Matrix::make(rows, parameters.dim()));
  for (Slot slot = 0; slot < rows; ++slot) {
    const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), {});
    std::copy_n(parameters.input.rows.row(slot), parameters.dim(), copy.row(slot));
  }
  return copy;
}

bool ModelState::has_halves() const {
  return true;
}

Status ModelState::add_to(CheckpointContent&, Parameters&) {
  return {};
}

Status ModelState::add_to(CheckpointContent&, const Snapshot&) {
  return {};
}

Result<std::shared_ptr<const WordGenerator>> ModelState::spellings(Parameters&, const LockWords&) const {
  return std::shared_ptr<const WordGenerator>();
}

Status ModelState::take_table(const char* name, Checkpoint& existing) {
  const auto own = existing.optimizer.find(name);
  if (own == existing.optimizer.end() || own->second.rows() != existing.input.rows() ||
      own->second.cols() != existing.input.cols())
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " has no table ", name,
                 " beside input; files of different checkpoints were mixed up");
  existing.input = std::move(own->second);
  existing.optimizer.erase(own);
  return {};
}

bool ModelState::is_for_queries(std::string_view) const {
  return false;
}

Result<std::shared_ptr<const WordGenerator>> ModelState::generator(Checkpoint&, const std::string&) const {
  return std::shared_ptr<const WordGenerator>();
}

std::unique_ptr<ModelState> make_model_state(std::string_view model) {
  if (model == "glove") return std::make_unique<GloveState>();
  if (model == "subword") return std::make_unique<SubwordState>();
  if (model == "rbsg") return std::make_unique<RbsgState>();
  if (model == "hybrid") return std::make_unique<HybridState>();
  return std::make_unique<ModelState>();
}

}  // namespace streamvec
