// streamvec vector: the numbers themselves.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "streamvec/eval/word_vector.h"
#include "streamvec/format/number_text.h"

namespace streamvec::cli {
namespace {

std::string line_of(const std::string& word, std::span<const float> values) {
  std::string line = word;
  for (const float value : values) {
    line += ' ';
    append_float(line, value);
  }
  return line + "\n";
}

}  // namespace

Result<int> run_vector(const Arguments& arguments) {
  const std::string& directory = arguments.words[0];
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(directory));
  Json answers = Json::array();
  std::string text;
  std::vector<std::string> unknown, unseen;
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    const std::string& word = arguments.words[i];
    const auto found = vector_of(snapshot, word);
    if (!found.ok() && found.status().code() != Code::kNotFound) return found.status();
    if (!found.ok()) unknown.push_back(word);
    const WordVector vector = found.ok() ? *found : WordVector();
    answers.push_back({{"word", word}, {"seen", vector.seen()}, {"vector", vector.values}});
    if (found.ok() && !vector.seen()) unseen.push_back(word);
    if (found.ok()) text += line_of(word, vector.values);
  }
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(answers) : print(text));
  name_unseen(unseen);
  name_unknown(unknown, directory);
  return unknown.empty() ? 0 : 1;
}

}  // namespace streamvec::cli
