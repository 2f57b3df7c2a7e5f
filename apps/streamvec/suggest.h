// What somebody probably meant: the known name nearest to the one that was typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace streamvec::cli {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (bytes, not letters).
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, the first of equals; "" when there are none. Case, dashes and underscores do not count, a
// beginning counts as almost right (`checkpoint` for `checkpoint-every`), and the names that word2vec, gensim and
// fastText use for the same thing are known (`size` for `dim`).
std::string nearest_name(std::string_view typed, const std::vector<std::string_view>& names);

}  // namespace streamvec::cli
