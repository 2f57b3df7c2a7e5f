// How a stream of text is cut into documents, and how what is no text is told from text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

constexpr size_t kPieceBytes = size_t{64} << 10;

// How many bytes of `text` make the next piece, when more text follows. At most kPieceBytes, cut after the last line
// end of their second half; else after the last white space; else (a run of 64 KB) between two characters.
// The answer depends on the first kPieceBytes + 1 bytes alone. REQUIRES: text.size() > kPieceBytes.
size_t piece_bytes(std::string_view text);
// The same for a stream that pauses: up to and with the last line end of `text`, 0 when there is none.
size_t line_bytes(std::string_view text);

// Whether `head`, the beginning of a stream (64 KB are enough), is text. Bytes below 32 that no text uses (NUL among
// them) make it binary when they are more than 1 in 10, or more than 8 and 1 in 100: a stray NUL does not matter,
// the tokenizer drops and counts it. kInvalidArgument names `name`, what the content seems to be, and what to try.
Status check_text(std::string_view head, const std::string& name);

// The length of a byte order mark in UTF-8 at the beginning of `head`: 3 or 0.
size_t utf8_mark_bytes(std::string_view head);

}  // namespace streamvec
