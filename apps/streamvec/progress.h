// The live line of a long command, and numbers as people read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace streamvec::cli {

// 950, 12.3k, 1.23M, 4.56G.
std::string short_count(double count);
// 1:05, 2:03:04.
std::string short_duration(double seconds);

// On a terminal one line that is overwritten, cut to its width; elsewhere a line each `line_every`, so that logs stay
// short. Not thread-safe. A reader that has gone away is no reason to stop: failed writes are ignored.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;

  // `fd` is where it goes (2: standard error).
  explicit ProgressLine(int fd, Clock::duration line_every = std::chrono::seconds(5));
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& line);
  // A line that stays, above the live one.
  void say(const std::string& line);
  // Takes the live line away, so that something else can be printed.
  void clear();

 private:
  void write(const std::string& text) const;

  int fd_;
  bool terminal_;
  bool shown_ = false;
  Clock::duration line_every_;
  Clock::time_point next_line_;
};

}  // namespace streamvec::cli
