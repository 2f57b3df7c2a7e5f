// Who may ask what: tokens, certificates, and whose page a browser was on when it asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/serve/http_message.h"

namespace streamvec {

// Kept as its SHA-256, so that comparing takes the same time for every token, of any length.
struct Token {
  std::string digest;
  Role role = Role::kQuery;
  int64_t expires_s = 0;  // unix seconds; 0: never
};

// kInvalidArgument when it is shorter than 16 bytes or has blanks: such a one could be guessed, or not be sent.
Result<Token> make_token(std::string_view text, Role role = Role::kQuery, int64_t expires_s = 0);
// A token a line: TOKEN [query|metrics] [EXPIRES], the last as a date or time (source/time_text.h). Blank lines and '#'
// comments are skipped. kInvalidArgument with path and line, never with the token; kNotFound and the like for the file.
Result<std::vector<Token>> read_tokens(const std::string& path);

// kInvalidArgument for what no browser sends as Origin: one is https://example.org or null.
Status check_origin(const std::string& origin);

// Immutable (but for use_port(), before anybody asks) and thread-safe.
class Access {
 public:
  struct Options {
    std::vector<Token> tokens;
    bool certificates = false;         // clients have shown one when they are here
    std::vector<std::string> hosts;    // names this service goes by, beside localhost and addresses; of any port
    std::vector<std::string> origins;  // "https://example.org": pages elsewhere that may ask
  };
  // Names and origins may be written in capitals, an origin with a slash at its end.
  explicit Access(Options options);
  // Browsers give a cookie to every port of a host: services on several have cookies of several names.
  void use_port(uint16_t port) { cookie_ = "streamvec_token_" + std::to_string(port); }
  const std::string& cookie() const { return cookie_; }

  // Refuses names that are not ours in Host (a foreign name that leads here is DNS rebinding), and pages of other
  // sites in Origin and Sec-Fetch-Site. A page of a site may be led here by a link: `is_page`.
  std::optional<HttpResponse> check_site(const HttpRequest& request, bool tls, bool is_page) const;
  // What the caller has proven: the certificate's role, the token's (Authorization: Bearer, or the cookie), the lesser
  // of both where both are asked for. Everybody is kQuery where nothing is asked for.
  Role role_of(const HttpRequest& request, Role certificate, int64_t now_s) const;
  // The same with what stands in Authorization ("Bearer TOKEN"), for those who have no cookies.
  Role role_of_authorization(std::string_view authorization, Role certificate, int64_t now_s) const;
  Role role_of_token(std::string_view token, int64_t now_s) const;
  // Until when the caller's token is valid (unix seconds); 0: for good, or it has none.
  int64_t expiry_of(const HttpRequest& request, int64_t now_s) const;
  int64_t expiry_of_authorization(std::string_view authorization, int64_t now_s) const;
  // 401 for nobody, 403 for somebody who may not.
  std::optional<HttpResponse> check_role(const HttpRequest& request, Role needed) const;
  // Of an allowed page elsewhere, for Access-Control-Allow-Origin; "" otherwise.
  std::string allowed_origin(const HttpRequest& request) const;
  bool asks_for_tokens() const { return !options_.tokens.empty(); }
  bool asks_for_certificates() const { return options_.certificates; }

 private:
  bool is_allowed(std::string_view origin) const;
  // "Bearer TOKEN" of the header or, where there is none, of the cookie.
  std::string authorization_of(const HttpRequest& request) const;
  const Token* find_token(std::string_view text, int64_t now_s) const;  // a valid one; nullptr when there is none

  Options options_;
  std::string cookie_ = "streamvec_token";
};

}  // namespace streamvec
