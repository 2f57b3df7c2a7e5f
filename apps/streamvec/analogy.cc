// streamvec analogy: what is to C as B is to A.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/neighbour_lines.h"
#include "apps/streamvec/output.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/word_vector.h"

namespace streamvec::cli {

Result<int> run_analogy(const Arguments& arguments) {
  const std::string& directory = arguments.words[0];
  const std::string &a = arguments.words[1], &b = arguments.words[2], &c = arguments.words[3];
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(directory));
  std::vector<std::string> unknown, unseen;
  for (const std::string& word : {a, b, c}) {
    const auto found = vector_of(snapshot, word);
    if (!found.ok() && found.status().code() != Code::kNotFound) return found.status();
    if (!found.ok()) unknown.push_back(word);
    if (found.ok() && !found->seen()) unseen.push_back(word);
  }
  name_unknown(unknown, directory);
  if (!unknown.empty()) return 1;
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex index, NeighbourIndex::make(snapshot));
  const std::vector<WeightedWord> sum = {{b, 1}, {a, -1}, {c, 1}};
  STREAMVEC_ASSIGN_OR_RETURN(const auto found, index.nearest(sum, static_cast<int32_t>(arguments.integer("k"))));
  const Json json = {
      {"a", a}, {"b", b}, {"c", c}, {"unseen", unseen}, {"answers", json_of(found, snapshot.vocabulary)}};
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json) : print(lines_of(found, snapshot.vocabulary)));
  name_unseen(unseen);
  return 0;
}

}  // namespace streamvec::cli
