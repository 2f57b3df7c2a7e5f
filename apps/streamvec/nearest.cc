// streamvec nearest: the words around a word.
#include <cstdio>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/neighbour_lines.h"
#include "apps/streamvec/output.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/set_file.h"

namespace streamvec::cli {

Json json_of(const std::vector<Neighbour>& neighbours, const Vocabulary& vocabulary) {
  Json list = Json::array();
  for (const Neighbour& neighbour : neighbours)
    list.push_back({{"word", vocabulary.word(neighbour.slot)}, {"cosine", rounded(neighbour.cosine)}});
  return list;
}

std::string lines_of(const std::vector<Neighbour>& neighbours, const Vocabulary& vocabulary) {
  std::string lines;
  for (const Neighbour& neighbour : neighbours) {
    char cosine[32];
    std::snprintf(cosine, sizeof cosine, "  %7.4f  ", neighbour.cosine);
    lines += cosine + std::string(vocabulary.word(neighbour.slot)) + "\n";
  }
  return lines;
}

Result<int> run_nearest(const Arguments& arguments) {
  const std::string& directory = arguments.words[0];
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(directory));
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex index, NeighbourIndex::make(snapshot));
  Json answers = Json::array();
  std::string text;
  std::vector<std::string> unknown;
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    const std::string& word = arguments.words[i];
    const auto found = index.nearest(word, static_cast<int32_t>(arguments.integer("k")));
    if (!found.ok() && found.status().code() != Code::kNotFound) return found.status();
    if (!found.ok()) unknown.push_back(word);
    const std::vector<Neighbour> neighbours = found.ok() ? *found : std::vector<Neighbour>{};
    const bool seen = find_word(snapshot.vocabulary, word) != kNoSlot;
    answers.push_back({{"word", word}, {"seen", seen}, {"neighbours", json_of(neighbours, snapshot.vocabulary)}});
    if (found.ok())
      text += word + (seen ? "\n" : "  (unseen, from its spelling)\n") + lines_of(neighbours, snapshot.vocabulary);
  }
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(answers) : print(text));
  name_unknown(unknown, directory);
  return unknown.empty() ? 0 : 1;
}

}  // namespace streamvec::cli
