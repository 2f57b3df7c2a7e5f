// Undoes a response's Content-Encoding as it arrives, and stops at a limit of decoded bytes. Our own, because libcurl
// hands out a compressed body that was cut short as if it were whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

// What can be decoded, as an Accept-Encoding header says it.
constexpr std::string_view kAcceptEncoding = "gzip, br, zstd";

// Memory: what it decodes plus at most the window that the stream asks for (gzip 32 KB, br 16 MB, zstd 128 MB; of it
// no more is touched than was decoded).
class ContentDecoder {
 public:
  // `encoding` is the header's value; "" and "identity" pass bytes on. kInvalidArgument for one not offered.
  static Result<std::unique_ptr<ContentDecoder>> make(std::string_view encoding);
  virtual ~ContentDecoder() = default;

  // Appends what `bytes` decode to. kResourceExhausted as soon as `out` would hold more than `size_max`, which it then
  // holds exactly; kDataLoss for what is no such stream.
  virtual Status add(std::string_view bytes, size_t size_max, std::string& out) = 0;
  // kDataLoss when the stream is not at its end. A body without a byte is whole.
  virtual Status finish() = 0;
};

// Decodes a whole file in memory if it is compressed (a sitemap.xml.gz), up to `size_max` bytes; otherwise returns it
// as it is. The same errors.
Result<std::string> decoded_file(std::string bytes, size_t size_max);

}  // namespace streamvec
