#include "streamvec/text/word_break.h"

#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

void to_utf16(std::string_view run, std::u16string& units) {
  units.clear();
  for (size_t i = 0; i < run.size();) {
    UChar32 c;
    U8_NEXT_UNSAFE(run.data(), i, c);
    char16_t pair[U16_MAX_LENGTH];
    int32_t length = 0;
    U16_APPEND_UNSAFE(pair, length, c);
    units.append(pair, static_cast<size_t>(length));
  }
}

size_t utf8_length(std::u16string_view units) {
  size_t bytes = 0;
  for (size_t i = 0; i < units.size();) {
    UChar32 c;
    U16_NEXT(units.data(), i, units.size(), c);
    bytes += static_cast<size_t>(U8_LENGTH(c));
  }
  return bytes;
}

}  // namespace

void WordBreaker::open() {
  UErrorCode status = U_ZERO_ERROR;
  iterator_.reset(ubrk_open(UBRK_WORD, "", nullptr, 0, &status));
  STREAMVEC_CHECK(U_SUCCESS(status));
}

void WordBreaker::find_ends(std::string_view run, std::vector<size_t>& ends) {
  if (iterator_ == nullptr) open();
  to_utf16(run, units_);
  UErrorCode status = U_ZERO_ERROR;
  ubrk_setText(iterator_.get(), units_.data(), static_cast<int32_t>(units_.size()), &status);
  STREAMVEC_CHECK(U_SUCCESS(status));
  ends.clear();
  size_t bytes = 0;
  int32_t begin = ubrk_first(iterator_.get());
  for (int32_t end; (end = ubrk_next(iterator_.get())) != UBRK_DONE; begin = end) {
    bytes +=
        utf8_length(std::u16string_view(units_).substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    ends.push_back(bytes);
  }
}

}  // namespace streamvec
