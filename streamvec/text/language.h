// Which language is a text in? CLD2, which knows about 80 by their letters and letter sequences.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

struct LanguageGuess {
  std::string code;       // ISO 639-1 where there is one ("en", "ko"), "zh-Hant" for traditional Chinese; "": no idea
  bool reliable = false;  // long enough, and far enough ahead of the next
};

// Looks at the first 4 KB (0.1 ms). Text that is not UTF-8 is read up to the first bad byte. Thread-safe.
LanguageGuess guess_language(std::string_view utf8);

// The code of a reliable guess, else "".
std::string detect_language(std::string_view utf8);

// Lets texts in the wanted languages pass.
class LanguageFilter {
 public:
  struct Options {
    std::vector<std::string> wanted;  // codes as above; "zh" means both scripts. Empty: everything passes
    bool keep_unsure = true;          // texts whose language is not certain, such as short ones, pass
  };

  // kInvalidArgument for a code that CLD2 does not know.
  static Result<LanguageFilter> create(Options options);
  bool passes(std::string_view utf8) const;  // thread-safe

 private:
  explicit LanguageFilter(Options options) : options_(std::move(options)) {}
  Options options_;
};

}  // namespace streamvec
