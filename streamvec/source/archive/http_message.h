// A stored HTTP response: its header, and its body as it was before it was sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

struct HttpMessage {
  int status = 0;
  std::string content_type;  // as the header has it
  std::string_view body;     // of the message, or of `scratch`
};

// Undoes chunks and gzip or zstd where the body has them; crawlers often store it without and leave the header.
// kInvalidArgument: no response, or a content coding that is not known. kResourceExhausted: a body larger than
// `body_max` when decoded.
Result<HttpMessage> parse_http(std::string_view message, size_t body_max, std::string& scratch);

}  // namespace streamvec
