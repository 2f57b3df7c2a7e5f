// From the spelling met in a text to the form that is counted and trained: stop words, stems, lemmas.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace streamvec {

// The form of a word, or nullopt for a word that is left out. Must be a pure function of the spelling: it is asked
// once or a few times per word type, not per token. A form is not empty. An empty function means: every word as it is.
using FormOf = std::function<std::optional<std::string>(std::string_view)>;

// A spelling's form as the vocabulary understands it. A form that would itself be left out takes its spellings with
// it: where "be" is a stop word and the lemma of "been", "been" is left out too. REQUIRES: form_of is not empty.
inline std::optional<std::string> settled_form(const FormOf& form_of, std::string_view spelling) {
  std::optional<std::string> form = form_of(spelling);
  if (!form || form->empty()) return std::nullopt;
  if (*form != spelling && !form_of(*form)) return std::nullopt;
  return form;
}

}  // namespace streamvec
