#include "streamvec/eval/word_vector.h"

#include <algorithm>
#include <string>

#include "streamvec/eval/set_file.h"

namespace streamvec {

Result<WordVector> vector_of(const Snapshot& snapshot, std::string_view word) {
  WordVector vector;
  vector.slot = find_word(snapshot.vocabulary, word);
  if (vector.seen()) {
    const std::span<const float> row = snapshot.input.view().row_span(vector.slot);
    vector.values.assign(row.begin(), row.end());
    return vector;
  }
  if (snapshot.generator == nullptr) return error(Code::kNotFound, "\"", word, "\" is not in the model's vocabulary");
  vector.values.resize(static_cast<size_t>(snapshot.dim()));
  const std::string spelling = snapshot.generator->folds_case() ? folded_word(word) : std::string(word);
  STREAMVEC_RETURN_IF_ERROR(snapshot.generator->generate(spelling, vector.values));
  if (std::all_of(vector.values.begin(), vector.values.end(), [](float value) { return value == 0; }))
    return error(Code::kNotFound, "nothing of the spelling of \"", word, "\" is known to the model");
  return vector;
}

}  // namespace streamvec
