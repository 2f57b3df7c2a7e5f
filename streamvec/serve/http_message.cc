#include "streamvec/serve/http_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

struct CodeRow {
  Code code;
  int status;
  std::string_view name;
};
constexpr CodeRow kCodes[] = {{Code::kOk, 200, "OK"},
                              {Code::kCancelled, 499, "CANCELLED"},
                              {Code::kUnknown, 500, "UNKNOWN"},
                              {Code::kInvalidArgument, 400, "INVALID_ARGUMENT"},
                              {Code::kDeadlineExceeded, 504, "DEADLINE_EXCEEDED"},
                              {Code::kNotFound, 404, "NOT_FOUND"},
                              {Code::kAlreadyExists, 409, "ALREADY_EXISTS"},
                              {Code::kPermissionDenied, 403, "PERMISSION_DENIED"},
                              {Code::kResourceExhausted, 429, "RESOURCE_EXHAUSTED"},
                              {Code::kFailedPrecondition, 409, "FAILED_PRECONDITION"},
                              {Code::kAborted, 409, "ABORTED"},
                              {Code::kOutOfRange, 400, "OUT_OF_RANGE"},
                              {Code::kUnimplemented, 501, "UNIMPLEMENTED"},
                              {Code::kInternal, 500, "INTERNAL"},
                              {Code::kUnavailable, 503, "UNAVAILABLE"},
                              {Code::kDataLoss, 500, "DATA_LOSS"},
                              {Code::kUnauthenticated, 401, "UNAUTHENTICATED"}};

struct StatusRow {
  int status;
  std::string_view reason, name;  // `name`: for errors that have no Code of their own
};
constexpr StatusRow kStatuses[] = {{200, "OK", "OK"},
                                   {204, "No Content", "OK"},
                                   {304, "Not Modified", "OK"},
                                   {400, "Bad Request", "INVALID_ARGUMENT"},
                                   {401, "Unauthorized", "UNAUTHENTICATED"},
                                   {403, "Forbidden", "PERMISSION_DENIED"},
                                   {404, "Not Found", "NOT_FOUND"},
                                   {405, "Method Not Allowed", "UNIMPLEMENTED"},
                                   {408, "Request Timeout", "DEADLINE_EXCEEDED"},
                                   {409, "Conflict", "FAILED_PRECONDITION"},
                                   {411, "Length Required", "INVALID_ARGUMENT"},
                                   {413, "Content Too Large", "RESOURCE_EXHAUSTED"},
                                   {414, "URI Too Long", "RESOURCE_EXHAUSTED"},
                                   {415, "Unsupported Media Type", "INVALID_ARGUMENT"},
                                   {417, "Expectation Failed", "INVALID_ARGUMENT"},
                                   {421, "Misdirected Request", "PERMISSION_DENIED"},
                                   {429, "Too Many Requests", "RESOURCE_EXHAUSTED"},
                                   {431, "Request Header Fields Too Large", "RESOURCE_EXHAUSTED"},
                                   {499, "Client Closed Request", "CANCELLED"},
                                   {500, "Internal Server Error", "INTERNAL"},
                                   {501, "Not Implemented", "UNIMPLEMENTED"},
                                   {503, "Service Unavailable", "UNAVAILABLE"},
                                   {504, "Gateway Timeout", "DEADLINE_EXCEEDED"},
                                   {505, "HTTP Version Not Supported", "UNIMPLEMENTED"}};

const StatusRow& row_of(int status) {
  for (const StatusRow& row : kStatuses)
    if (row.status == status) return row;
  return row_of(500);
}

HttpResponse error_of(int status, std::string_view name, std::string_view message) {
  const nlohmann::ordered_json json = {{"error", {{"code", name}, {"message", message}}}};
  HttpResponse response;
  response.status = status;
  response.body = json_text(json) + "\n";
  if (status == 429 || status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      plain += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
      if (low < 0) return error(Code::kInvalidArgument, "a '%' in the address is not followed by two hex digits");
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.find("//") != path.npos || path.find('\\') != path.npos) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string folded(text);
  std::transform(folded.begin(), folded.end(), folded.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return folded;
}

std::string media_type(std::string_view header) {
  return lower_case(trimmed(header.substr(0, header.find(';'))));
}

bool names_tag(std::string_view header, std::string_view tag) {
  if (header == "*") return true;
  for (size_t at = 0; at < header.size();) {
    const size_t end = std::min(header.find(',', at), header.size());
    std::string_view one = trimmed(header.substr(at, end - at));
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag) return true;
    at = end + 1;
  }
  return false;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

size_t HttpRequest::header_count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const NameAndText& header) { return header.first == name; }));
}

int http_status_of(Code code) {
  for (const CodeRow& row : kCodes)
    if (row.code == code) return row.status;
  return 500;
}

std::string_view code_name(Code code) {
  for (const CodeRow& row : kCodes)
    if (row.code == code) return row.name;
  return "UNKNOWN";
}

HttpResponse error_response(const Status& status) {
  return error_of(http_status_of(status.code()), code_name(status.code()), status.message());
}

HttpResponse error_response(int http_status, std::string_view message) {
  return error_of(http_status, row_of(http_status).name, message);
}

std::string_view reason_of(int status) {
  return row_of(status).reason;
}

Result<std::string> decode_form(std::string_view text) {
  return decoded(text, true);
}

std::string_view take_authority(std::string_view& target) {
  const size_t slashes = target.find("://");
  const std::string scheme = lower_case(target.substr(0, slashes));
  if (slashes == target.npos || (scheme != "http" && scheme != "https")) return {};
  const size_t begin = slashes + 3, end = std::min(target.find_first_of("/?#", begin), target.size());
  if (end == begin || (end < target.size() && target[end] != '/')) return {};
  const std::string_view authority = target.substr(begin, end - begin);
  target = end < target.size() ? target.substr(end) : "/";
  return authority;
}

Status parse_target(std::string_view target, std::string& path, std::vector<NameAndText>& query) {
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string_view raw = target.substr(0, mark);
  const std::string folded = lower_case(raw);
  STREAMVEC_ASSIGN_OR_RETURN(path, decoded(raw, false));
  // A path that still has an escape after decoding was escaped twice, which only serves to mislead.
  const bool escaped = folded.find("%2f") != folded.npos || folded.find("%5c") != folded.npos ||
                       folded.find("%2e") != folded.npos || path.find('%') != path.npos;
  if (escaped || !is_plain_path(path) || target.find('#') != target.npos)
    return error(Code::kInvalidArgument, "the address has no plain path; try one that begins with / and has no ..");
  query.clear();
  for (size_t at = mark + 1; at < target.size();) {
    const size_t end = std::min(target.find('&', at), target.size());
    const std::string_view part = target.substr(at, end - at);
    const size_t equals = std::min(part.find('='), part.size());
    STREAMVEC_ASSIGN_OR_RETURN(std::string name, decode_form(part.substr(0, equals)));
    STREAMVEC_ASSIGN_OR_RETURN(std::string value, decode_form(part.substr(std::min(equals + 1, part.size()))));
    if (!part.empty()) query.push_back({std::move(name), std::move(value)});
    at = end + 1;
  }
  return {};
}

}  // namespace streamvec
