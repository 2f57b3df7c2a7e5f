// streamvec import: a model directory of vectors that another program wrote.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "streamvec/format/vectors.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/checkpoint_directory.h"
#include "streamvec/train/model_state.h"

namespace streamvec::cli {
namespace {

Status refuse_a_model(const std::string& directory) {
  const auto checkpoints = list_checkpoints(directory);
  if (!checkpoints.ok() && checkpoints.status().code() != Code::kNotFound) return checkpoints.status();
  if (checkpoints.ok() && !checkpoints->empty())
    return error(Code::kAlreadyExists, directory, " holds a model already; try another --out");
  return {};
}

Status save(const Snapshot& snapshot, const std::string& source, const std::string& directory) {
  CheckpointContent content{.step = snapshot.step,
                            .model = snapshot.model,
                            .vocabulary = snapshot.vocabulary,
                            .input = snapshot.input.view(),
                            .output = snapshot.output.view(),
                            .optimizer = {},
                            .state = {{"imported", source}},
                            .cursors = nlohmann::json::object()};
  const auto own = make_model_state(snapshot.model);
  STREAMVEC_RETURN_IF_ERROR(own->add_to(content, snapshot));
  return save_checkpoint(directory, content);
}

}  // namespace

Result<int> run_import(const Arguments& arguments) {
  const std::string& source = arguments.words[0];
  const std::string out = arguments.text("out");
  STREAMVEC_RETURN_IF_ERROR(refuse_a_model(out));
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, import_vectors(source));
  STREAMVEC_RETURN_IF_ERROR(save(snapshot, source, out));
  const Json json = {{"out", out}, {"vocab", snapshot.vocabulary.size()}, {"dim", snapshot.dim()}};
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json")
                                ? print_json(json)
                                : print(out + ": " + std::to_string(snapshot.vocabulary.size()) + " words, " +
                                        std::to_string(snapshot.dim()) + " dimensions\n"));
  return 0;
}

}  // namespace streamvec::cli
