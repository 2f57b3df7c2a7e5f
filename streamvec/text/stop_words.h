// Words too common to mean much.
#pragma once

#include <span>
#include <string_view>

namespace streamvec {

// English: articles, pronouns, prepositions, conjunctions, auxiliary and modal verbs with their contractions, and a few
// adverbs of degree, time and place; lower-case, apostrophes straight. No word that carries a topic or an opinion.
std::span<const std::string_view> english_stop_words();

}  // namespace streamvec
