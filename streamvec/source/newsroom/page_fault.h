// Which articles' pages are not as they should be, and how. Private to the newsroom.
#pragma once

#include <cstdint>

#include "streamvec/core/random.h"

namespace streamvec::newsroom {

enum class PageFault {
  kNone,
  kMoved,         // lists name an old address, which leads to the new one
  kTruncated,     // the HTML ends in the last paragraph
  kWrongCharset,  // the header says another one than the bytes are in
  kSlow,          // the answer takes a while
  kBusy,          // the first request is answered by 500
  kCutOff,        // the first answer ends before its length
  kGone,          // 404
  kEmpty,         // 200 without a byte
};

// Shares of all pages in 1/1000. About 1 in 25 has some fault, as on the sites one meets.
struct FaultShare {
  PageFault fault;
  uint32_t per_mille;
};
inline constexpr FaultShare kFaultShares[] = {
    {PageFault::kMoved, 10}, {PageFault::kTruncated, 8}, {PageFault::kWrongCharset, 8}, {PageFault::kSlow, 2},
    {PageFault::kBusy, 4},   {PageFault::kCutOff, 3},    {PageFault::kGone, 4},         {PageFault::kEmpty, 3}};

// The same for equal seeds and numbers. `scale` multiplies the shares; 0: no faults.
inline PageFault page_fault(uint64_t seed, int64_t number, double scale) {
  double at = Random(mix(seed, 0x6661756c7473, number)).uniform() * 1000.0;
  for (const FaultShare& share : kFaultShares)
    if ((at -= share.per_mille * scale) < 0) return share.fault;
  return PageFault::kNone;
}

// Whether a reader who tries again gets at least some of the story.
inline bool is_readable(PageFault fault) {
  return fault != PageFault::kGone && fault != PageFault::kEmpty;
}

}  // namespace streamvec::newsroom
