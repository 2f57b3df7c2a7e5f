// Words of scripts that are written without spaces, by ICU's dictionaries.
#pragma once

#include <unicode/ubrk.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {

// Not thread-safe: one per thread. Opens ICU's data at the first run.
class WordBreaker {
 public:
  // Replaces `ends` by the rising ends, in bytes, of the words that `run` consists of; the last is run.size().
  // REQUIRES: run is valid UTF-8 of less than 1 GiB, not empty.
  void find_ends(std::string_view run, std::vector<size_t>& ends);

 private:
  struct Close {
    void operator()(UBreakIterator* iterator) const { ubrk_close(iterator); }
  };
  void open();

  std::unique_ptr<UBreakIterator, Close> iterator_;
  std::u16string units_;
};

}  // namespace streamvec
