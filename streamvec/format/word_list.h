// The words beside a table of vectors that has none in itself: .npy and .safetensors.
//
// An exported list is a vocab.tsv (vocab_file.h) whose header ends with one more column, empty in every row, named
// `xxh3=DIGITS`: the XXH3 sum of the values that the words were exported with. Whoever reads vocab.tsv skips it as a
// column that it does not know; import sees by it that words and values are of one export.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct WordList {
  std::string path;
  Vocabulary vocabulary;
  std::string values_sum;  // 16 digits; "" in lists of other programs and of older exports, which fit any values
};

// Where the words of the table at `path` are exported to.
std::string word_list_path(const std::string& path, std::string_view ending);

// Writes the whole list; the caller closes the file.
Status write_word_list(const Vocabulary& vocabulary, uint64_t values_sum, FileWriter& file);

// The words of the table at `path`: beside it under its name less `ending` + .vocab.tsv or .vocab.txt (a word a line),
// or in vocab.tsv of the same directory. kNotFound says what to write.
Result<WordList> find_word_list(const std::string& path, std::string_view ending);

// kInvalidArgument, with both paths, when the list says that it was exported with other values than these.
Status check_same_export(const WordList& words, const std::string& path, uint64_t values_sum);

// `path` less the ending, where it has it.
std::string without_ending(const std::string& path, std::string_view ending);
bool file_exists(const std::string& path);

}  // namespace streamvec
