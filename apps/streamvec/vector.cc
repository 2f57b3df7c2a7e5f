// streamvec vector: the numbers themselves.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "streamvec/eval/set_file.h"
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
  std::vector<std::string> unknown;
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    const std::string& word = arguments.words[i];
    const Slot slot = find_word(snapshot.vocabulary, word);
    const std::span<const float> values =
        slot == kNoSlot ? std::span<const float>() : snapshot.input.view().row_span(slot);
    answers.push_back({{"word", word}, {"seen", slot != kNoSlot}, {"vector", values}});
    if (slot != kNoSlot) text += line_of(word, values);
    if (slot == kNoSlot) unknown.push_back(word);
  }
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(answers) : print(text));
  name_unknown(unknown, directory);
  return unknown.empty() ? 0 : 1;
}

}  // namespace streamvec::cli
