// What time it is: by the clock that only goes forward, and by the calendar.
#pragma once

#include <chrono>

namespace streamvec {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of the same clock, from a moment that means nothing by itself.
inline double clock_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Seconds since 1970.
inline double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace streamvec
