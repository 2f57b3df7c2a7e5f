// The name of a source that is no plain path: SCHEME:[//[USER[:PASSWORD]@]HOST[:PORT]]PATH[?KEY=VALUE&...].
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

// The name of a source with *** for its password, for a token, which stands alone before the @, and for settings that
// are secret.
std::string presentable(std::string_view name);
// What a source says of a fault, without its name at the front: for lines that begin with it.
std::string_view without_name(std::string_view message, std::string_view name);

// "%41" in user, password, path, keys and values is read as "A". A host may be an address in brackets ("[::1]").
struct Location {
  std::string scheme;  // without its colon, lower case: "nats", "sse+https"
  std::string user, password;
  std::string host;  // lower case, without brackets; "" when there is none
  int32_t port = 0;  // 0 when none is given
  std::string path;  // with its "/" when there is a host
  std::map<std::string, std::string> query;
  std::string name;  // as it was given, but presentable()

  // kInvalidArgument says what is wrong and where.
  static Result<Location> parse(std::string_view name);

  // kInvalidArgument when the query has a key that is not among `known`; the message lists those.
  Status check_keys(std::initializer_list<std::string_view> known) const;
  // The value of a key, `otherwise` when it is not given.
  std::string text(const std::string& key, std::string_view otherwise = "") const;
  // kInvalidArgument when it is no whole number from `least` to `most`.
  Result<int64_t> integer(const std::string& key, int64_t otherwise, int64_t least, int64_t most) const;
};

}  // namespace streamvec
