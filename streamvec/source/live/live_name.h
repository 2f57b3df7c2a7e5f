// The name of a live stream: settings of ours and of the server's in one query.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/source/live/connection.h"
#include "streamvec/source/location.h"

namespace streamvec {

constexpr std::string_view kUserAgent = "streamvec/0.1 (reads public text streams for word vectors)";

// Keys that are ours stay here; all others go to the server as they were written, in their order, repeats too. A key
// of ours that the server shall have is written "send-KEY". Ours are those of RecordFormat and
//   idle=S       comes back when nothing was heard for so long (60)
//   lookback=S   how long ago the server can begin; 0 when it keeps nothing
//   retry=MS     how long it stays away after a first loss; twice as long after each further one, up to a minute (500)
//   private=1    allows loopback and private networks
//   ca=FILE      certificates to trust
// and what the kind adds.
struct LiveName {
  Location location;  // query: our keys only
  Peer peer;
  std::string target;  // path and query for the server, as written

  std::chrono::milliseconds idle{60'000}, retry{500};
  double lookback_s = 0;

  // kInvalidArgument says what is wrong.
  static Result<LiveName> parse(const std::string& name, std::initializer_list<std::string_view> others);
  // Sets a key that was not given.
  void set_default(const std::string& key, std::string_view value) { location.query.emplace(key, value); }
  // Takes the settings above, after the defaults are set.
  Status take_settings();
};

// What an HTTP answer other than the one hoped for means: kOutOfRange for 204 (the stream is over), kUnavailable when
// it may pass, a final error otherwise. Redirects are not followed: the user names where to go.
Status refusal(long http_status, std::string_view redirect);

}  // namespace streamvec
