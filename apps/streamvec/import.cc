// streamvec import: a model directory of vectors that another program wrote.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/output.h"
#include "streamvec/format/vectors.h"
#include "streamvec/train/save_snapshot.h"

namespace streamvec::cli {

Result<int> run_import(const Arguments& arguments) {
  const std::string& source = arguments.words[0];
  const std::string out = arguments.text("out");
  STREAMVEC_RETURN_IF_ERROR(check_holds_no_model(out));
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, import_vectors(source));
  STREAMVEC_RETURN_IF_ERROR(save_snapshot(snapshot, source, out));
  const Json json = {{"out", out}, {"vocab", snapshot.vocabulary.size()}, {"dim", snapshot.dim()}};
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json")
                                ? print_json(json)
                                : print(out + ": " + std::to_string(snapshot.vocabulary.size()) + " words, " +
                                        std::to_string(snapshot.dim()) + " dimensions\n"));
  return 0;
}

}  // namespace streamvec::cli
