#include "streamvec/train/save_snapshot.h"

#include "streamvec/train/checkpoint.h"
#include "streamvec/train/checkpoint_directory.h"
#include "streamvec/train/model_state.h"

namespace streamvec {

Status check_holds_no_model(const std::string& dir) {
  const auto checkpoints = list_checkpoints(dir);
  if (!checkpoints.ok() && checkpoints.status().code() != Code::kNotFound) return checkpoints.status();
  if (checkpoints.ok() && !checkpoints->empty())
    return error(Code::kAlreadyExists, dir, " holds a model already; try another directory");
  return {};
}

Status save_snapshot(const Snapshot& snapshot, const std::string& origin, const std::string& dir) {
  STREAMVEC_RETURN_IF_ERROR(check_holds_no_model(dir));
  // What their generators go on learning from is in the directory alone.
  if (snapshot.generator != nullptr && snapshot.model != "subword")
    return error(Code::kFailedPrecondition, "a ", snapshot.model,
                 " model cannot be saved from its vectors; copy the directory that it was loaded from");
  CheckpointContent content{.step = snapshot.step,
                            .model = snapshot.model,
                            .vocabulary = snapshot.vocabulary,
                            .input = snapshot.input.view(),
                            .output = snapshot.output.view(),
                            .optimizer = {},
                            .state = {{"imported", origin}},
                            .cursors = nlohmann::json::object()};
  const auto own = make_model_state(snapshot.model);  // which the content borrows from
  STREAMVEC_RETURN_IF_ERROR(own->add_to(content, snapshot));
  return save_checkpoint(dir, content);
}

}  // namespace streamvec
