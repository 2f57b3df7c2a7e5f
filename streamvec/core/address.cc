#include "streamvec/core/address.h"

#include <algorithm>
#include <charconv>

namespace streamvec {

Result<HostPort> parse_host_port(const std::string& address) {
  HostPort parsed;
  const size_t colon = address.rfind(':');
  bool good = colon != std::string::npos && colon > 0 && colon + 1 < address.size();
  if (good) {
    const char* end = address.data() + address.size();
    const auto [stopped, failed] = std::from_chars(address.data() + colon + 1, end, parsed.port);
    good = failed == std::errc() && stopped == end;
    parsed.host = address.substr(0, colon);
  }
  if (parsed.host.size() > 2 && parsed.host.front() == '[' && parsed.host.back() == ']')
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  else if (parsed.host.find(':') != std::string::npos)
    good = false;
  if (!good) return error(Code::kInvalidArgument, address, " is no host:port (of IPv6: [host]:port)");
  return parsed;
}

Result<std::string> host_of(const std::string& address) {
  STREAMVEC_ASSIGN_OR_RETURN(HostPort parsed, parse_host_port(address));
  return std::move(parsed.host);
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string without_credentials(std::string_view text) {
  std::string shown;
  for (size_t scheme; (scheme = text.find("://")) != std::string_view::npos;) {
    const size_t begin = scheme + 3, end = std::min(text.find_first_of("/?# \t\r\n\"", begin), text.size());
    const size_t at = text.substr(0, end).rfind('@');
    shown += text.substr(0, begin);
    text.remove_prefix(at != std::string_view::npos && at >= begin ? at + 1 : begin);
  }
  return shown.append(text);
}

bool same_token(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

}  // namespace streamvec
