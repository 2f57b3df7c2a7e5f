#include "apps/streamvec/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace streamvec::cli {
namespace {

size_t columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

std::string short_count(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  int unit = 0;
  while (std::abs(count) >= 999.5 && unit < 4) {
    count /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, count, kUnits[unit]);
  return text;
}

std::string short_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::min(std::max(seconds, 0.0), 1e12)));
  const long long hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  char text[64];
  if (hours > 0)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, rest);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, rest);
  return text;
}

ProgressLine::ProgressLine(int fd, Clock::duration line_every)
    : fd_(fd), terminal_(::isatty(fd) == 1), line_every_(line_every), next_line_(Clock::now() + line_every) {}

void ProgressLine::show(const std::string& line) {
  if (terminal_) {
    shown_ = true;
    write("\r" + line.substr(0, columns_of(fd_) - 1) + "\x1b[K");
  } else if (Clock::now() >= next_line_) {
    next_line_ = Clock::now() + line_every_;
    write(line + "\n");
  }
}

void ProgressLine::say(const std::string& line) {
  clear();
  write(line + "\n");
}

void ProgressLine::clear() {
  if (shown_) write("\r\x1b[K");
  shown_ = false;
}

void ProgressLine::write(const std::string& text) const {
  [[maybe_unused]] const ssize_t written = ::write(fd_, text.data(), text.size());
}

}  // namespace streamvec::cli
