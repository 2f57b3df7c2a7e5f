// WebSocket streams: ws://HOST[:PORT]/PATH, wss://...
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Each text message is a record (source/record.h). Settings beside those of LiveName:
//   cursor=/POINTER   where a message has its number (or any token); of numbers the greatest one is the place
//   cursor-param=KEY  the parameter of the URL that asks the server to go on from there
//   overlap=N         asks for N less than the last number, and passes over what comes again
//   form=jetstream    Bluesky's Jetstream: format=json, text=/commit/record/text&id=/did,/commit/rkey
//                     &time=/time_us&delete=/commit/operation:delete&cursor=/time_us&cursor-param=cursor
//                     &overlap=5000000&lookback=86400, and wantedCollections=app.bsky.feed.post unless the name has
//                     one. The default for hosts that begin with "jetstream"; form=plain else.
// Capabilities: endless, not pausable, replayable for `lookback` seconds. Messages of more than 4 MiB, binary ones
// and such as are no UTF-8 are passed over and counted; permessage-deflate is not offered.
class WebSocketSource {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& name);
};

}  // namespace streamvec
