#include "streamvec/source/http/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <unicode/uidna.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

namespace streamvec {
namespace {

using Handle = std::unique_ptr<CURLU, void (*)(CURLU*)>;

constexpr std::string_view kBlanks = "\t\n\f\r ";
constexpr size_t kShownBytes = 200;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool unreserved(unsigned char c) {
  return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '.' || c == '_' || c == '~';
}

// As browsers do: blanks around a link do not count, nor do line ends and tabs inside of it.
std::string tidied(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  std::string tidy(text.substr(begin, end > begin ? end - begin : 0));
  std::erase_if(tidy, [](char c) { return c == '\t' || c == '\n' || c == '\r'; });
  return normal_escapes(tidy);
}

std::string part_of(CURLU* handle, CURLUPart part, unsigned flags = 0) {
  char* value = nullptr;
  if (curl_url_get(handle, part, &value, flags) != CURLUE_OK) return "";
  std::string copy(value);
  curl_free(value);
  return copy;
}

Status refusal(std::string_view text, std::string_view why) {
  return error(Code::kInvalidArgument, text.substr(0, kShownBytes), text.size() > kShownBytes ? "..." : "", ": ", why);
}

// By ICU, because libcurl's way depends on the locale. "" for what is no name.
std::string punycode(const std::string& host) {
  UErrorCode failure = U_ZERO_ERROR;
  static const UIDNA* const idna = uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII, &failure);
  if (idna == nullptr) return "";
  failure = U_ZERO_ERROR;
  UIDNAInfo info = UIDNA_INFO_INITIALIZER;
  char ascii[256];
  const int32_t size = uidna_nameToASCII_UTF8(idna, host.data(), static_cast<int32_t>(host.size()), ascii, sizeof ascii,
                                              &info, &failure);
  return U_SUCCESS(failure) && info.errors == 0 && size < 256 ? std::string(ascii, static_cast<size_t>(size)) : "";
}

// IPv6 addresses have many spellings, too.
std::string normal_address(const std::string& bracketed) {
  in6_addr address;
  char text[INET6_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET6, bracketed.substr(1, bracketed.size() - 2).c_str(), &address) != 1) return "";
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return "[" + std::string(text) + "]";
}

std::string host_of(CURLU* handle) {
  std::string host = part_of(handle, CURLUPART_HOST);
  if (host.starts_with('[')) return normal_address(host);
  if (std::any_of(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    host = punycode(host);
  for (char& c : host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (host.size() > 1 && host.ends_with('.')) host.pop_back();
  return host.ends_with('.') ? "" : host;
}

bool plain_host(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](unsigned char c) {
    return unreserved(c) || (bracketed && (c == ':' || c == '[' || c == ']'));
  });
}

Result<Url> url_of(CURLU* handle, std::string_view text) {
  Url url;
  url.scheme = part_of(handle, CURLUPART_SCHEME);
  if (url.scheme != "http" && url.scheme != "https") return refusal(text, "only http and https are read");
  if (!part_of(handle, CURLUPART_USER).empty() || !part_of(handle, CURLUPART_PASSWORD).empty())
    return refusal(text, "addresses with a user name or password are refused");
  url.host = host_of(handle);
  if (!plain_host(url.host) || !part_of(handle, CURLUPART_ZONEID).empty()) return refusal(text, "its host is no name");
  const std::string port = part_of(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (url.port < 1 || url.port > 65535) return refusal(text, "its port is none");
  url.path = normal_escapes(part_of(handle, CURLUPART_PATH));
  const std::string query = part_of(handle, CURLUPART_QUERY);
  if (!query.empty()) url.query = "?" + normal_escapes(query);
  url.text = url.origin() + url.target();
  if (url.text.size() > kUrlBytesMax) return refusal(url.text, "longer than 2048 bytes");
  return url;
}

Result<Url> parsed_once(std::string_view base, std::string_view text) {
  if (text.size() > 2 * kUrlBytesMax) return refusal(text, "longer than 2048 bytes");
  const Handle handle(curl_url(), curl_url_cleanup);
  if (!base.empty() && curl_url_set(handle.get(), CURLUPART_URL, std::string(base).c_str(), 0) != CURLUE_OK)
    return refusal(base, "no base for links");
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, tidied(text).c_str(),
                                      CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME | CURLU_DISALLOW_USER);
  if (code == CURLUE_USER_NOT_ALLOWED) return refusal(text, "addresses with a user name or password are refused");
  if (code != CURLUE_OK) return refusal(text, curl_url_strerror(code));
  return url_of(handle.get(), text);
}

// A name without the dot at its end, or in ASCII, may turn out to be an address, which the second time shows.
Result<Url> parsed(std::string_view base, std::string_view text) {
  Result<Url> url = parsed_once(base, text);
  return url.ok() ? parsed_once("", url->text) : url;
}

}  // namespace

std::string normal_escapes(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string normal;
  normal.reserve(text.size());
  size_t decode_from = 0;  // a "%" that begins no escape must not become one by what is decoded behind it
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low < 0) {
      if (text[i] == '%') decode_from = normal.size() + 3;
      normal += text[i];
      continue;
    }
    const auto byte = static_cast<unsigned char>(high * 16 + low);
    if (unreserved(byte) && normal.size() >= decode_from) {
      normal += static_cast<char>(byte);
    } else {
      (((normal += '%') += kDigits[high])) += kDigits[low];
    }
    i += 2;
  }
  return normal;
}

Result<Url> Url::parse(std::string_view text) {
  return parsed("", text);
}

Result<Url> Url::resolve(std::string_view link) const {
  const size_t first = link.find_first_not_of(kBlanks);
  if (first == std::string_view::npos || link[first] == '#') return *this;
  return parsed(text, link);
}

std::string Url::origin() const {
  return scheme + "://" + authority();
}

std::string Url::authority() const {
  return port == (scheme == "https" ? 443 : 80) ? host : host + ":" + std::to_string(port);
}

}  // namespace streamvec
