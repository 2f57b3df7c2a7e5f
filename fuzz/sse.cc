// Server-Sent Events (source/live/sse_parser.h): a byte gives the size of the pieces. Pieces of any size give the
// events of the whole, and no event is larger than allowed.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "streamvec/source/live/sse_parser.h"

namespace streamvec {
namespace {

constexpr size_t kEventBytesMax = 100;

struct Read {
  std::vector<SseEvent> events;
  std::string last_id;
  int64_t oversized = 0;
};

Read read(std::string_view bytes, size_t piece_size) {
  SseParser parser(kEventBytesMax);
  Read read;
  for (size_t at = 0; at < bytes.size(); at += piece_size) parser.feed(bytes.substr(at, piece_size), read.events);
  if (parser.retry_ms()) STREAMVEC_CHECK(*parser.retry_ms() >= 0);
  read.last_id = parser.last_id();
  read.oversized = parser.oversized();
  return read;
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {"\x05:ok\n\nevent: message\nid: 7\ndata: {\"a\":1}\ndata: more\n\n",
                    "\x01\xEF\xBB\xBFretry: 10\rdata\r\rid\r\n"
                    "data:x\r\n\r\ndata: y",
                    "\x03"
                    "data: " +
                        std::string(120, 'x') + "\n\ndata: z\n\n",
                    "\x02id: a\n\nretry: 99999999999999999999\nunknown: x\ndata:\n\n"},
          .words = {"data:", "id:", "event:", "retry:", "\r\n", "\n\n", ":"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const size_t piece_size = 1 + input.byte();
  const std::string_view bytes = input.rest();
  const Read whole = read(bytes, std::max<size_t>(1, bytes.size())), pieces = read(bytes, piece_size);
  STREAMVEC_CHECK_EQ(whole.events.size(), pieces.events.size());
  STREAMVEC_CHECK(whole.last_id == pieces.last_id && whole.oversized == pieces.oversized);
  for (size_t i = 0; i < whole.events.size(); ++i) {
    const SseEvent &a = whole.events[i], &b = pieces.events[i];
    STREAMVEC_CHECK(a.type == b.type && a.data == b.data && a.id == b.id);
    STREAMVEC_CHECK(!a.type.empty() && a.data.size() <= kEventBytesMax);
  }
  return 0;
}
