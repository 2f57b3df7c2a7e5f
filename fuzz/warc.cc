// Web archives (source/archive/warc_source.h), plain and compressed: texts are UTF-8, and reading on after any document
// gives just those that followed it.
#include "fuzz/archive_reading.h"
#include "fuzz/compressed.h"
#include "streamvec/source/archive/warc_source.h"

namespace streamvec {
namespace {

std::string record(const std::string& type, const std::string& content_type, const std::string& content) {
  return "WARC/1.0\r\nWARC-Type: " + type +
         "\r\nWARC-Target-URI: http://a.example/x\r\nWARC-Date: 2024-05-01T12:30:00Z" +
         "\r\nContent-Type: " + content_type + "\r\nContent-Length: " + std::to_string(content.size()) + "\r\n\r\n" +
         content + "\r\n\r\n";
}

std::string page() {
  return record(
      "response", "application/http; msgtype=response",
      "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<title>T</title><article><p>In the night "
      "the water came up to the bridge, and by the morning nobody could cross it.</p></article>");
}

std::string text() {
  return record("conversion", "text/plain", "some text\nin two lines\n");
}

}  // namespace

FuzzStart fuzz_start() {
  const std::string information = record("warcinfo", "application/warc-fields", "software: x\r\n");
  return {
      .seeds = {information + page() + text() + page(), text() + text() + text(),
                gzip_of(text()) + gzip_of(page()) + gzip_of(text()), zstd_of(text() + page()),
                text() + "garbage" + text()},
      .words = {"WARC/1.0\r\n", "WARC/1.1\r\n", "Content-Length: ", "WARC-Type: response", "\r\n\r\n", "HTTP/1.1 200 ",
                "Transfer-Encoding: chunked", "Content-Encoding: gzip", "99999999999999999999", "-1"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  streamvec::check_archive<streamvec::WarcSource>("warc", {reinterpret_cast<const char*>(data), size});
  return 0;
}
