// Small files of words that users give (stop words, lemmas): read whole, checked, line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

struct WordFile {
  std::string text;                     // the lines are views into it
  std::vector<std::string_view> lines;  // without their ends; line numbers for messages are index + 1
};

// Fails, naming the path (and the line, where there is one): kNotFound when it is not there, kPermissionDenied,
// kInvalidArgument when it is a directory, empty, or not UTF-8 text, kResourceExhausted past 1 GiB.
Result<WordFile> read_word_file(const std::string& path);

}  // namespace streamvec
