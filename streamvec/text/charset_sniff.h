// Which encoding are these bytes in? The steps of to_utf8 (charset.h). Encodings are named as ICU does, from string
// constants; nullptr: no answer. Thread-safe.
#pragma once

#include <string_view>

namespace streamvec {

// What the web means by `label` ("latin1" is windows-1252); punctuation and case do not matter.
const char* encoding_of_label(std::string_view label);
// `declared`: a label, or a Content-Type with "charset=".
const char* encoding_of_content_type(std::string_view declared);
// By the XML declaration or, when `html`, the <meta> in the first 1,024 bytes.
const char* encoding_of_document(std::string_view bytes, bool html);
// By what the bytes look like; always an answer.
const char* encoding_by_looks(std::string_view bytes, bool html);

}  // namespace streamvec
