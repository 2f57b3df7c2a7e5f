#include "streamvec/source/location.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace streamvec {
namespace {

constexpr size_t kNameBytesMax = 8192;

bool scheme_byte(unsigned char byte) {
  return std::isalnum(byte) != 0 || byte == '+' || byte == '-' || byte == '.';
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low;
}

bool decode_percent(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (text.size() - i < 3) return false;
    const char* first = text.data() + i + 1;
    const auto [end, failure] = std::from_chars(first, first + 2, value, 16);
    if (failure != std::errc() || end != first + 2) return false;
    out += static_cast<char>(value);
    i += 2;
  }
  return true;
}

template <typename Number>
bool whole_number(std::string_view text, Number& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

// Takes what lies before `mark` off the front of `rest`, and the mark; all of it when there is no mark.
std::string_view take_until(std::string_view& rest, char mark) {
  const size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

bool parse_credentials(std::string_view text, Location& location) {
  const std::string_view user = take_until(text, ':');
  return decode_percent(user, location.user) && decode_percent(text, location.password);
}

bool parse_host(std::string_view text, Location& location) {
  std::string_view port;
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    if (text.find(']') == std::string_view::npos) return false;
    location.host = lower(take_until(text, ']'));
    if (!text.empty() && text[0] != ':') return false;
    port = text.substr(std::min<size_t>(1, text.size()));
  } else {
    location.host = lower(take_until(text, ':'));
    port = text;
  }
  if (location.host.empty()) return false;
  return port.empty() || (whole_number(port, location.port) && location.port > 0 && location.port < 65536);
}

bool parse_query(std::string_view query, Location& location) {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    if (value.empty()) continue;
    std::string key, decoded;
    if (!decode_percent(take_until(value, '='), key) || !decode_percent(value, decoded)) return false;
    location.query[key] = decoded;
  }
  return true;
}

// Of Kafka's settings (sasl.password, ssl.key.pem) and of those that a web server asks for.
bool is_secret(std::string_view key) {
  for (const char* part : {"password", "secret", "token", "api_key", "apikey", "key.pem", "oauthbearer.config"})
    if (key.find(part) != key.npos) return true;
  return false;
}

// What stands after ?, the values of secret settings hidden.
std::string presentable_query(std::string_view query) {
  std::string shown;
  while (!query.empty()) {
    const std::string_view setting = take_until(query, '&');
    const std::string_view key = setting.substr(0, setting.find('='));
    const bool secret = is_secret(lower(key));
    shown += (shown.empty() ? "?" : "&") + std::string(secret ? key : setting) + (secret ? "=***" : "");
  }
  return shown;
}

}  // namespace

std::string presentable(std::string_view name) {
  const size_t begin = name.find("://");
  if (begin == std::string_view::npos) return std::string(name);
  const size_t end = std::min(name.find_first_of("/?", begin + 3), name.size());
  const size_t at = name.substr(0, end).rfind('@');
  const size_t query = std::min(name.find('?', at == name.npos ? begin : at), name.size());
  const std::string shown_query = presentable_query(name.substr(std::min(query + 1, name.size())));
  if (at == std::string_view::npos) return std::string(name.substr(0, query)) + shown_query;
  const size_t colon = name.find(':', begin + 3);
  const size_t shown = colon < at ? colon + 1 : begin + 3;
  return std::string(name.substr(0, shown)) + "***" + std::string(name.substr(at, query - at)) + shown_query;
}

std::string_view without_name(std::string_view message, std::string_view name) {
  if (!message.starts_with(name)) return message;
  const std::string_view rest = message.substr(name.size());
  return rest.starts_with(": ") ? rest.substr(2) : message;
}

Result<Location> Location::parse(std::string_view name) {
  Location location;
  location.name = presentable(name.substr(0, kNameBytesMax));
  const auto bad = [&](std::string_view what) {
    return error(Code::kInvalidArgument, location.name, ": ", what,
                 "; a source is named SCHEME://[USER:PASSWORD@]HOST[:PORT]/PATH[?KEY=VALUE&...]");
  };
  if (name.size() > kNameBytesMax) return bad("the name is longer than 8192 bytes");
  const size_t colon = name.find(':');
  const std::string_view scheme = name.substr(0, std::min(colon, name.size()));
  if (colon == std::string_view::npos || scheme.empty() || !std::all_of(scheme.begin(), scheme.end(), scheme_byte))
    return bad("it does not begin with a scheme");
  location.scheme = lower(scheme);
  std::string_view rest = name.substr(colon + 1);
  std::string_view query = rest;
  rest = take_until(query, '?');
  if (!parse_query(query, location)) return bad("a % in the query is not followed by two hexadecimal digits");
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view authority = rest.substr(0, slash);
    rest.remove_prefix(slash);
    if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
      if (!parse_credentials(authority.substr(0, at), location)) return bad("user or password has a stray %");
      authority.remove_prefix(at + 1);
    }
    if (!parse_host(authority, location)) return bad("there is no valid host and port after //");
  }
  if (!decode_percent(rest, location.path)) return bad("a % in the path is not followed by two hexadecimal digits");
  return location;
}

Status Location::check_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : query) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
    return error(Code::kInvalidArgument, name, ": \"", key, "\" is not known here; after ? come ",
                 list.empty() ? "no settings" : list);
  }
  return {};
}

std::string Location::text(const std::string& key, std::string_view otherwise) const {
  const auto found = query.find(key);
  return found == query.end() ? std::string(otherwise) : found->second;
}

Result<int64_t> Location::integer(const std::string& key, int64_t otherwise, int64_t least, int64_t most) const {
  const auto found = query.find(key);
  if (found == query.end()) return otherwise;
  int64_t value = 0;
  if (!whole_number(found->second, value) || value < least || value > most)
    return error(Code::kInvalidArgument, name, ": ", key, "=", found->second, " is not a whole number from ", least,
                 " to ", most);
  return value;
}

}  // namespace streamvec
