// The files that evaluation sets come in: a few words a line, and how such a word is found in a vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct SetLine {
  int64_t number = 0;  // in the file, from 1: for messages
  std::vector<std::string> fields;
};

// The lines of a set file, split where the line has tabs, else where it has commas, else at white space; fields are
// trimmed. Blank lines and lines that begin with '#' are left out; a byte order mark and carriage returns are dropped.
// kNotFound when the file cannot be opened, kInvalidArgument when it is a directory or holds no line.
Result<std::vector<SetLine>> read_set_file(const std::string& path);

// "path" without folders and ending: the name a set goes by in reports.
std::string set_name(const std::string& path);

// The word as written, else case-folded and NFKC-normalised (Unicode NFKC_Casefold): sets write "Jerusalem" where a
// folded vocabulary has "jerusalem". kNoSlot when neither is there.
Slot find_word(const Vocabulary& vocabulary, std::string_view word);
// Case-folded and NFKC-normalised, as find_word() has it; the word as it is where that fails.
std::string folded_word(std::string_view word);

}  // namespace streamvec
