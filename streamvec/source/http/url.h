// Web addresses in one normal form, so that a page has one name however a link spells it. Parsing is libcurl's, which
// also fetches them: what is checked here is what is asked for there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

constexpr size_t kUrlBytesMax = 2048;

// Normal form: scheme and host in lower case, the host in punycode, without a dot at its end and as four decimal
// numbers when it is an IPv4 address in any spelling; no default port; dot segments resolved; %-escapes in upper case
// and only where they are needed; no fragment.
struct Url {
  std::string text;    // all of it
  std::string scheme;  // "http" or "https"
  std::string host;    // an IPv6 address has its brackets
  int32_t port = 0;
  std::string path;   // from its "/"
  std::string query;  // from its "?", "" when there is none

  // Blanks around it are left off. kInvalidArgument: no http or https URL, longer than kUrlBytesMax, or with a user
  // name in it, which pages would make readers send on.
  static Result<Url> parse(std::string_view text);
  // What `link` on this page leads to; the same errors.
  Result<Url> resolve(std::string_view link) const;

  std::string target() const { return path + query; }  // what robots.txt has rules for
  std::string origin() const;                          // "https://example.org", "http://example.org:8080"
  std::string authority() const;                       // "example.org", "example.org:8080"
};

// `text` with escapes of letters, digits and "-._~" undone and the hexadecimal digits of others in upper case
// (RFC 3986, 6.2.2): equal addresses become equal strings.
std::string normal_escapes(std::string_view text);

}  // namespace streamvec
