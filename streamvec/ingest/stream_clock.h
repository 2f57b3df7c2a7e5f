// The clock that half-lives are measured by: what "now" is for a document of the stream.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "streamvec/core/forward_decay.h"
#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// How fast the past fades: after this many tokens, or after this much of the documents' own time.
struct HalfLife {
  double value = ForwardDecay::kForever;  // tokens or seconds
  bool seconds = false;

  // "never", "5000000" or "5M" (tokens; k, M and G count), "90s", "15m", "12h", "30d", "8w", "2y".
  // kInvalidArgument for anything else.
  static Result<HalfLife> parse(std::string_view text);
};

// Never goes back. Not thread-safe.
class StreamClock {
 public:
  explicit StreamClock(bool seconds) : seconds_(seconds) {}

  // The time of `document`, before which `tokens` tokens were read. In seconds: when it was written. Where that is not
  // known, or is in the future, the latest time if its source's documents are dated, so that one wrong date does not
  // age everything in an archive; now while none of them was. `dated`, of the source, is set by the first.
  double at(const Document& document, int64_t tokens, bool& dated) {
    if (!seconds_) return latest_ = std::max(latest_, static_cast<double>(tokens));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const auto written = static_cast<double>(document.time_s);
    const bool known = written > 0 && written <= now;
    dated = dated || known;
    return latest_ = std::max(latest_, known ? written : dated ? latest_ : now);
  }
  double latest() const { return latest_; }
  void go_to(double t) { latest_ = t; }

 private:
  bool seconds_;
  double latest_ = 0;
};

}  // namespace streamvec
