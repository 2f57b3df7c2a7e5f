#include "streamvec/source/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace streamvec {
namespace {

DirectoryWatch::Event::Kind kind_of(uint32_t mask) {
  using Kind = DirectoryWatch::Event::Kind;
  if ((mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0) return Kind::kLost;
  if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0) return Kind::kComplete;
  if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return Kind::kGone;
  return Kind::kWritten;
}

}  // namespace

DirectoryWatch::DirectoryWatch(const std::string& directory) : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  constexpr uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
  if (inotify_.get() >= 0 && ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) < 0)
    inotify_ = FileHandle();
}

void DirectoryWatch::await(Deadline deadline, std::chrono::milliseconds wait, std::vector<Event>& events) {
  const auto now = Deadline::Clock::now();
  const auto until = std::min(deadline.when(), now + wait);
  const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - now), std::chrono::milliseconds(0));
  if (inotify_.get() < 0) {
    std::this_thread::sleep_for(left);
    return;
  }
  pollfd wanted = {inotify_.get(), POLLIN, 0};
  if (::poll(&wanted, 1, static_cast<int>(left.count())) > 0) drain(events);
}

void DirectoryWatch::drain(std::vector<Event>& events) {
  alignas(inotify_event) char buffer[16 << 10];
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), buffer, sizeof buffer);
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      events.push_back({kind_of(event->mask), event->len > 0 ? std::string(event->name) : std::string()});
    }
  }
}

}  // namespace streamvec
