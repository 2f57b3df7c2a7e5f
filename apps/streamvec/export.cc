// streamvec export: vectors for other programs.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "streamvec/format/vectors.h"

namespace streamvec::cli {

Result<int> run_export(const Arguments& arguments) {
  const std::string& out = arguments.words[1];
  STREAMVEC_ASSIGN_OR_RETURN(const VectorFormat format, parse_format(arguments.text("format")));
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(arguments.words[0]));
  STREAMVEC_RETURN_IF_ERROR(export_vectors(snapshot, format, out));
  const Json json = {
      {"out", out}, {"format", format_name(format)}, {"vocab", snapshot.vocabulary.size()}, {"dim", snapshot.dim()}};
  if (arguments.flag("json")) STREAMVEC_RETURN_IF_ERROR(print_json(json));
  return 0;
}

}  // namespace streamvec::cli
