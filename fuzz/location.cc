// Names of sources (source/location.h, source/live/live_name.h): port and key values are in range, and no message shows
// a password.
#include "streamvec/source/location.h"

#include "fuzz/fuzz.h"
#include "streamvec/source/live/live_name.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {
      .seeds = {"nats://user:secret@example.org:4222/stream?subject=a.b&durable=x", "redis://[::1]:6379/news?group=g",
                "sse+https://stream.example/v2/page-create?text=/meta/uri&send-id=1&idle=5&retry=10",
                "wss://jetstream.example/subscribe?wantedCollections=a&wantedCollections=b", "warc:/data/%41.warc.gz",
                "http://A.EXAMPLE/x?y=z#f", "tail:log.txt?text=2", "kafka://h1:9092/topic?private=1"},
      .words = {"://", "@", "[::1]", "%00", "%zz", ":65536", "?", "&", "=", "lookback=", "idle=", "private=1"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string name(reinterpret_cast<const char*>(data), size);
  if (const Result<Location> location = Location::parse(name); location.ok()) {
    STREAMVEC_CHECK(!location->scheme.empty());
    STREAMVEC_CHECK(location->port >= 0 && location->port < 65'536);
    if (!location->password.empty()) STREAMVEC_CHECK(location->name.find(":***@") != std::string::npos);
    const Result<int64_t> idle = location->integer("idle", 7, 1, 100);
    if (idle.ok()) STREAMVEC_CHECK(*idle >= 1 && *idle <= 100);
  }
  if (Result<LiveName> live = LiveName::parse(name, {"cursor"}); live.ok() && live->take_settings().ok()) {
    STREAMVEC_CHECK(live->idle.count() > 0 && live->retry.count() >= 0 && live->lookback_s >= 0);
    STREAMVEC_CHECK(live->target.find_first_of(std::string_view(" \r\n\0", 4)) == std::string::npos);
  }
  return 0;
}
