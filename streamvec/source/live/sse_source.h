// Server-Sent Events: sse+http://HOST[:PORT]/PATH, sse+https://...
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Each event's data is a record (source/record.h); its id goes back to the server as Last-Event-ID when a connection
// is lost or a saved cursor is taken up, and events that come again are passed over. A 204 ends the stream.
// Settings beside those of LiveName:
//   event=NAME   only events of this type
//   form=wikimedia   JSON as Wikimedia's EventStreams have it: text=/title,/comment&id=/meta/id&time=/meta/dt, places
//                by topic, partition and offset, lookback=604800. The default for stream.wikimedia.org; form=plain
//                else.
// Capabilities: endless, not pausable (a server may hang up on a slow reader; what it keeps is read on coming back),
// replayable for `lookback` seconds. Events of more than 4 MiB are passed over and counted.
class SseSource {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& name);
};

}  // namespace streamvec
