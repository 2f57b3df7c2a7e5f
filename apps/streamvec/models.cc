#include "apps/streamvec/models.h"

#include <iostream>

#include "apps/streamvec/commands.h"
#include "streamvec/train/checkpoint.h"

namespace streamvec::cli {
Result<Snapshot> open_model(const std::string& directory) {
  std::vector<std::string> notes;
  auto snapshot = load_snapshot(directory, &notes);
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
  return snapshot;
}

Status misuse_of_words(const Arguments& arguments) {
  for (size_t i = 1; i < arguments.words.size(); ++i)
    if (arguments.words[i].empty())
      return error(Code::kInvalidArgument, "WORD ", i, " is empty; give a word that ", arguments.words[0], " may know");
  return {};
}

void name_unseen(const std::vector<std::string>& unseen) {
  if (unseen.empty()) return;
  std::cerr << "note: never seen, made from the spelling:";
  for (size_t i = 0; i < unseen.size(); ++i) std::cerr << (i == 0 ? " " : ", ") << unseen[i];
  std::cerr << std::endl;
}

void name_unknown(const std::vector<std::string>& unknown, const std::string& directory) {
  if (unknown.empty()) return;
  std::cerr << "streamvec: " << directory << " does not know";
  for (size_t i = 0; i < unknown.size(); ++i) std::cerr << (i == 0 ? " " : ", ") << unknown[i];
  std::cerr << "; stop words and words rarer than its --min-count were left out" << std::endl;
}

}  // namespace streamvec::cli
