#include "streamvec/serve/access.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <sstream>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/time_text.h"

namespace streamvec {
namespace {

constexpr size_t kTokenBytesMin = 16, kTokenBytesMax = 4'096;
constexpr int64_t kTokenFileBytesMax = 1 << 20;

std::string digest_of(std::string_view text) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_sha256(), nullptr);
  return digest;
}

// An IPv4 address or an IPv6 one in brackets: nobody can make a name of their own lead to us by such.
bool is_address(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return host.find_first_not_of("0123456789abcdef:.", 1) == host.size() - 1;
  return !host.empty() && host.find_first_not_of("0123456789.") == host.npos &&
         std::count(host.begin(), host.end(), '.') == 3;
}

// "name" or "name:port" without the port; "" for anything else.
std::string name_of(std::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  const std::string_view port = colon == authority.npos ? "" : authority.substr(colon + 1);
  if (colon != authority.npos && (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos))
    return "";
  std::string name = lower_case(authority.substr(0, colon));
  if (name.size() > 1 && name.back() == '.') name.pop_back();
  return name;
}

// The value of the cookie `name`.
std::string_view find_cookie(std::string_view cookies, const std::string& name) {
  const std::string wanted = name + "=";
  for (size_t at = 0; at < cookies.size();) {
    const size_t end = std::min(cookies.find(';', at), cookies.size());
    std::string_view part = cookies.substr(at, end - at);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    if (part.starts_with(wanted)) return part.substr(wanted.size());
    at = end + 1;
  }
  return {};
}

// Of "Bearer TOKEN"; "" of anything else.
std::string_view token_of(std::string_view authorization) {
  return lower_case(authorization.substr(0, 7)) == "bearer " ? authorization.substr(7) : std::string_view();
}

}  // namespace

Result<Token> make_token(std::string_view text, Role role, int64_t expires_s) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f && c != ';'; });
  if (text.size() < kTokenBytesMin || text.size() > kTokenBytesMax || !plain)
    return error(Code::kInvalidArgument, "a token has ", kTokenBytesMin,
                 " visible ASCII characters or more, without ';'; try the output of `openssl rand -hex 24`");
  return Token{digest_of(text), role, expires_s};
}

Result<std::vector<Token>> read_tokens(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, file.read_all(kTokenFileBytesMax));
  std::vector<Token> tokens;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream parts(line);
    std::string token, role = "query", expires, more;
    if (!(parts >> token) || token.front() == '#') continue;
    parts >> role >> expires;
    if (!role.empty() && role != "query" && role != "metrics")
      return error(Code::kInvalidArgument, path, ":", number, ": a role is query or metrics");
    Result<int64_t> time = int64_t{0};
    if (!expires.empty()) time = parse_time(expires);
    if (!time.ok() || parts >> more)
      return error(Code::kInvalidArgument, path, ":", number, ": a line is TOKEN [query|metrics] [EXPIRES]");
    auto made = make_token(token, role == "metrics" ? Role::kMetrics : Role::kQuery,
                           expires.empty() ? 0 : std::max<int64_t>(*time, 1));  // 0 would be never
    if (!made.ok()) return error(made.status().code(), path, ":", number, ": ", made.status().message());
    tokens.push_back(std::move(*made));
  }
  if (tokens.empty()) return error(Code::kInvalidArgument, path, " holds no token");
  return tokens;
}

Status check_origin(const std::string& origin) {
  const size_t slashes = origin.find("://"), begin = slashes + 3;
  const size_t end = origin.ends_with('/') ? origin.size() - 1 : origin.size();
  const bool whole =
      slashes != origin.npos && slashes > 0 && end > begin && origin.find_first_of("/?#@ ", begin) >= end;
  if (whole || origin == "null") return {};
  return error(Code::kInvalidArgument, "--allow-origin ", origin,
               " is no site; give scheme and host as browsers do, as in https://example.org");
}

Access::Access(Options options) : options_(std::move(options)) {
  for (std::string& host : options_.hosts) host = name_of(host);
  for (std::string& origin : options_.origins) {
    origin = lower_case(origin);
    if (origin.ends_with('/')) origin.pop_back();
  }
}

bool Access::is_allowed(std::string_view origin) const {
  return std::find(options_.origins.begin(), options_.origins.end(), lower_case(origin)) != options_.origins.end();
}

std::optional<HttpResponse> Access::check_site(const HttpRequest& request, bool tls, bool is_page) const {
  const std::string_view host = request.header("host");
  const std::string name = name_of(host);
  const bool ours = name == "localhost" || is_address(name) ||
                    std::find(options_.hosts.begin(), options_.hosts.end(), name) != options_.hosts.end();
  if (request.header_count("host") != 1 || !ours)
    return error_response(421, "this service does not go by that name; see --allow-host");
  if (request.header_count("origin") > 1) return error_response(403, "a request has one Origin at most");
  const std::string_view origin = request.header("origin");
  const bool allowed = is_allowed(origin);
  // What a browser says of the page itself holds behind a proxy, too, which may speak TLS where we do not.
  const std::string_view site = request.header("sec-fetch-site");
  const bool own = site == "same-origin" || lower_case(origin) == (tls ? "https://" : "http://") + lower_case(host);
  if (!origin.empty() && !allowed && !own)
    return error_response(403, "pages of other sites may not ask here; see --allow-origin");
  const bool led_here = is_page && request.method == "GET" && request.header("sec-fetch-mode") == "navigate";
  if (!site.empty() && site != "same-origin" && site != "none" && !led_here && !(allowed && !origin.empty()))
    return error_response(403, "pages of other sites may not ask here; see --allow-origin");
  return std::nullopt;
}

const Token* Access::find_token(std::string_view text, int64_t now_s) const {
  const std::string digest = digest_of(text);
  const Token* found = nullptr;
  for (const Token& known : options_.tokens) {  // all of them, so that the time says nothing of which one it was
    const bool same = CRYPTO_memcmp(known.digest.data(), digest.data(), digest.size()) == 0;
    if (same && (known.expires_s == 0 || now_s < known.expires_s)) found = &known;
  }
  return found;
}

Role Access::role_of_token(std::string_view token, int64_t now_s) const {
  const Token* found = find_token(token, now_s);
  return found == nullptr ? Role::kNobody : found->role;
}

Role Access::role_of_authorization(std::string_view authorization, Role certificate, int64_t now_s) const {
  const Role role = options_.certificates ? certificate : Role::kQuery;
  if (options_.tokens.empty()) return role;
  return std::min(role, role_of_token(token_of(authorization), now_s));
}

int64_t Access::expiry_of_authorization(std::string_view authorization, int64_t now_s) const {
  const Token* found = find_token(token_of(authorization), now_s);
  return found == nullptr ? 0 : found->expires_s;
}

std::string Access::authorization_of(const HttpRequest& request) const {
  const std::string_view header = request.header("authorization");
  const std::string_view cookie = find_cookie(request.header("cookie"), cookie_);
  return !header.empty() || cookie.empty() ? std::string(header) : "Bearer " + std::string(cookie);
}

Role Access::role_of(const HttpRequest& request, Role certificate, int64_t now_s) const {
  return role_of_authorization(authorization_of(request), certificate, now_s);
}

int64_t Access::expiry_of(const HttpRequest& request, int64_t now_s) const {
  return expiry_of_authorization(authorization_of(request), now_s);
}

std::optional<HttpResponse> Access::check_role(const HttpRequest& request, Role needed) const {
  if (request.role >= needed) return std::nullopt;
  if (request.role != Role::kNobody) return error_response(403, "these credentials do not allow this call");
  if (options_.tokens.empty()) return error_response(403, "this certificate has no role here");
  HttpResponse refusal = error_response(401, "a valid token is needed: Authorization: Bearer TOKEN");
  const bool tried = !request.header("authorization").empty() || !request.header("cookie").empty();
  refusal.headers.push_back({"WWW-Authenticate", tried ? "Bearer error=\"invalid_token\"" : "Bearer"});
  return refusal;
}

std::string Access::allowed_origin(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  return is_allowed(origin) && !origin.empty() ? std::string(origin) : "";
}

}  // namespace streamvec
