// A request as the service sees it and an answer as it gives it: plain values, checked and decoded.
#pragma once

#include <cstddef>
#include <cstdint>
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
  int64_t role_until_s = 0;  // unix seconds; 0: for good

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

std::string lower_case(std::string_view text);  // of ASCII letters

// Of Content-Type: "application/json" of "Application/JSON; charset=utf-8".
std::string media_type(std::string_view header);
// Whether If-None-Match has the tag: "*", or a list, in which tags marked as weak count as well.
bool names_tag(std::string_view header, std::string_view tag);

// Splits and decodes the target of a request line into path and query. kInvalidArgument for what could mean another
// path to somebody else: no '/' first, bad escapes, NUL or control bytes, "." and ".." parts (escaped or not), '\',
// "//", escaped '/'.
Status parse_target(std::string_view target, std::string& path, std::vector<NameAndText>& query);
// Takes "http://host" (or https) off a target that is a whole address, as proxies send it, and returns the host; "" of
// any other target.
std::string_view take_authority(std::string_view& target);
// A form's text: %xx and '+'. kInvalidArgument for a bad escape.
Result<std::string> decode_form(std::string_view text);

}  // namespace streamvec
