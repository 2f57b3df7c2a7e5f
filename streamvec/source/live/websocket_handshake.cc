#include "streamvec/source/live/websocket_handshake.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

#include "streamvec/source/feed_text.h"
#include "streamvec/source/live/live_name.h"

namespace streamvec {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// "HTTP/1.1 101 Switching Protocols" gives 101; 0 for what is no status line.
int status_of(std::string_view line) {
  int status = 0;
  if (!line.starts_with("HTTP/1.") || line.size() < 12) return 0;
  std::from_chars(line.data() + 9, line.data() + 12, status);
  return status;
}

bool has_token(std::string_view list, std::string_view token) {
  const std::string lowered = lower(list);
  for (std::string_view rest = lowered; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    if (feed::trimmed(part) == token) return true;
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return false;
}

void sha1_block(const uint8_t* block, std::array<uint32_t, 5>& state) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (size_t i = 0; i < 80; ++i) {
    const uint32_t choice = i < 20   ? (b & c) | (~b & d)
                            : i < 40 ? b ^ c ^ d
                            : i < 60 ? (b & c) | (b & d) | (c & d)
                                     : b ^ c ^ d;
    constexpr uint32_t kRounds[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
    const uint32_t next = std::rotl(a, 5) + choice + e + kRounds[i / 20] + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::array<uint8_t, 20> sha1(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64, '\0');
  for (size_t i = 0; i < 8; ++i)
    padded[padded.size() - 1 - i] = static_cast<char>(uint64_t{bytes.size()} * 8 >> (8 * i) & 0xFF);
  std::array<uint32_t, 5> state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (size_t at = 0; at < padded.size(); at += 64)
    sha1_block(reinterpret_cast<const uint8_t*>(padded.data()) + at, state);
  std::array<uint8_t, 20> digest;
  for (size_t i = 0; i < 20; ++i) digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    const size_t size = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < size ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= size ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string websocket_accept(std::string_view key) {
  const auto digest = sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  return base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::optional<size_t> head_bytes(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return {};
  return end + 4;
}

std::string header_value(std::string_view head, std::string_view lower_case_name) {
  std::string value;
  take_line(head);
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || lower(line.substr(0, colon)) != lower_case_name) continue;
    value += (value.empty() ? "" : ",") + std::string(feed::trimmed(line.substr(colon + 1)));
  }
  return value;
}

std::string Handshake::request() const {
  std::string text = "GET " + target + " HTTP/1.1\r\nHost: " + host +
                     "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: " +
                     key + "\r\nUser-Agent: " + std::string(kUserAgent) + "\r\n";
  if (!authorization.empty()) text += "Authorization: " + authorization + "\r\n";
  return text + "\r\n";
}

Status Handshake::check(std::string_view head) const {
  std::string_view rest = head;
  const int status = status_of(take_line(rest));
  if (status == 0) return error(Code::kInvalidArgument, "the server does not speak HTTP");
  if (status != 101) return refusal(status, header_value(head, "location"));
  if (!has_token(header_value(head, "upgrade"), "websocket") || !has_token(header_value(head, "connection"), "upgrade"))
    return error(Code::kInvalidArgument, "the server upgrades to something that is no WebSocket");
  if (header_value(head, "sec-websocket-accept") != websocket_accept(key))
    return error(Code::kInvalidArgument, "the server's Sec-WebSocket-Accept is not the answer to our key");
  if (!header_value(head, "sec-websocket-extensions").empty() || !header_value(head, "sec-websocket-protocol").empty())
    return error(Code::kInvalidArgument, "the server uses an extension or protocol that nobody asked for");
  return {};
}

}  // namespace streamvec
