#include "streamvec/source/archive/http_message.h"

#include <algorithm>
#include <charconv>

#include "streamvec/source/archive/header_lines.h"
#include "streamvec/source/decoder.h"

namespace streamvec {
namespace {

// False when it is not in chunks after all.
bool unchunk(std::string_view body, std::string& out) {
  out.clear();
  for (;;) {
    size_t size = 0;
    const auto [end, failure] = std::from_chars(body.data(), body.data() + body.size(), size, 16);
    if (failure != std::errc()) return false;
    const size_t line_end = body.find('\n');
    const auto digits = static_cast<size_t>(end - body.data());
    if (line_end == std::string_view::npos || line_end < digits) return false;
    const std::string_view extension = trim_blanks(body.substr(digits, line_end - digits));
    if (!extension.empty() && extension[0] != ';') return false;
    body.remove_prefix(line_end + 1);
    if (size == 0) return true;
    if (size > body.size()) {  // the response was cut
      out += body;
      return true;
    }
    out += body.substr(0, size);
    body.remove_prefix(size);
    if (body.starts_with("\r\n"))
      body.remove_prefix(2);
    else if (body.starts_with('\n'))
      body.remove_prefix(1);
    else
      return body.empty();
  }
}

Result<std::string> decompressed(Compression compression, std::string_view in, size_t size_max) {
  const std::unique_ptr<Decoder> decoder = Decoder::make(compression);
  std::string out;
  for (;;) {
    const size_t size_before = out.size();
    out.resize(size_before + (size_t{64} << 10));
    std::span<char> room = std::span(out).subspan(size_before);
    STREAMVEC_RETURN_IF_ERROR(decoder->decode(in, room));
    out.resize(out.size() - room.size());
    if (out.size() > size_max)
      return error(Code::kResourceExhausted, "a body larger than ", size_max, " bytes when decoded");
    if (out.size() == size_before) return out;
  }
}

bool looks_like_text(std::string_view body) {
  body = trim_blanks(body.substr(0, 1024));
  return body.starts_with('<') || body.starts_with("\xef\xbb\xbf");
}

}  // namespace

Result<HttpMessage> parse_http(std::string_view message, size_t body_max, std::string& scratch) {
  const size_t end = header_end(message);
  if (!message.starts_with("HTTP/") || end == std::string_view::npos)
    return error(Code::kInvalidArgument, "not an HTTP response");
  const std::string_view header = message.substr(0, end);
  const std::string_view status_line = header.substr(0, header.find('\n'));
  HttpMessage response;
  const size_t blank = status_line.find(' ');
  if (blank == std::string_view::npos ||
      std::from_chars(status_line.data() + blank + 1, status_line.data() + status_line.size(), response.status).ec !=
          std::errc() ||
      response.status < 100 || response.status > 999)
    return error(Code::kInvalidArgument, "an HTTP response without a status");
  response.content_type = header_field(header, "content-type");
  response.body = message.substr(end);
  std::string unchunked;
  if (header_field(header, "transfer-encoding").find("chunked") != std::string_view::npos &&
      unchunk(response.body, unchunked)) {
    scratch = std::move(unchunked);
    response.body = scratch;
  }
  const std::string_view coding = header_field(header, "content-encoding");
  const Compression compression = recognise_compression(response.body);
  if (!coding.empty() && compression != Compression::kNone) {
    STREAMVEC_ASSIGN_OR_RETURN(std::string decoded, decompressed(compression, response.body, body_max));
    scratch = std::move(decoded);
    response.body = scratch;
  } else if (!coding.empty() && !same_name(coding, "identity") && !looks_like_text(response.body)) {
    return error(Code::kInvalidArgument, "the content coding ", coding.substr(0, 40), " is not known");
  }
  if (response.body.size() > body_max)
    return error(Code::kResourceExhausted, "a body larger than ", body_max, " bytes");
  return response;
}

}  // namespace streamvec
