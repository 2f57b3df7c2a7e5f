// A request as the service sees it and an answer as it gives it: plain values, checked and decoded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

using NameAndText = std::pair<std::string, std::string>;

// What a caller may do. Each may do what those before it may.
enum class Role {
  kNobody,   // only what needs no proof: the pages of the dashboard
  kMetrics,  // health and figures, for a monitor
  kQuery,    // every call
};

struct HttpRequest {
  std::string method;                // "GET"
  std::string path;                  // decoded, begins with '/', without "." and ".." parts
  std::vector<NameAndText> query;    // decoded, in order
  std::vector<NameAndText> headers;  // names in lower case, in order
  std::string body = {};
  std::string client;  // the address it came from
  Role role = Role::kNobody;

  // The first of that name (in lower case); "" when there is none.
  std::string_view header(std::string_view name) const;
  size_t header_count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<NameAndText> headers = {};                     // further ones
  std::shared_ptr<const std::string> shared_body = nullptr;  // in place of `body`, where many are given the same
};

// {"error":{"code":"NOT_FOUND","message":...}} under the HTTP status that gRPC's transcoding has for the code.
HttpResponse error_response(const Status& status);
HttpResponse error_response(int http_status, std::string_view message);
int http_status_of(Code code);
std::string_view code_name(Code code);  // "NOT_FOUND"

// The words for a status: "Not Found".
std::string_view reason_of(int status);

// Splits and decodes the target of a request line into path and query. kInvalidArgument for what could mean another
// path to somebody else: no '/' first, bad escapes, NUL or control bytes, "." and ".." parts (escaped or not), '\',
// "//", escaped '/'.
Status parse_target(std::string_view target, std::string& path, std::vector<NameAndText>& query);
// A form's text: %xx and '+'. kInvalidArgument for a bad escape.
Result<std::string> decode_form(std::string_view text);

}  // namespace streamvec
