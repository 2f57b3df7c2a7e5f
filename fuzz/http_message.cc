// Stored HTTP responses (source/archive/http_message.h): status and body are within their limits, chunks and codings
// undone or refused.
#include "streamvec/source/archive/http_message.h"

#include "fuzz/compressed.h"
#include "fuzz/fuzz.h"
#include "streamvec/source/archive/header_lines.h"

namespace streamvec {

FuzzStart fuzz_start() {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
  const std::string gzip = gzip_of("a page that was sent compressed");
  return {
      .seeds = {ok + "\r\nbody", ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
                ok + "Content-Encoding: gzip\r\n\r\n" + gzip, ok + "Content-Encoding: zstd\r\n\r\n" + zstd_of("page"),
                ok + "Content-Encoding: gzip\r\n\r\nstored without it",
                ok + "Content-Encoding: gzip\r\n\r\n" + gzip_of(std::string(size_t{1} << 20, 'a')),
                "HTTP/1.0 404\n\nnone"},
      .words = {"\r\n\r\n", "Transfer-Encoding: chunked\r\n", "Content-Encoding: br\r\n", "ffffffffffffffff\r\n",
                "0\r\n\r\n", "HTTP/1.1 ", "identity", "7fffffffffffffff"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  constexpr size_t kBodyMax = size_t{64} << 10;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  const size_t end = header_end(message);
  STREAMVEC_CHECK(end == std::string_view::npos || end <= message.size());
  std::string scratch;
  const Result<HttpMessage> parsed = parse_http(message, kBodyMax, scratch);
  if (!parsed.ok()) return 0;
  STREAMVEC_CHECK(parsed->status >= 0 && parsed->status < 1000);
  STREAMVEC_CHECK(parsed->body.size() <= std::max(kBodyMax, message.size()));
  return 0;
}
