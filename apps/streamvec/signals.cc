#include "apps/streamvec/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace streamvec::cli {
namespace {

constexpr int kQuiet = 0x73766563;  // comes with the signal

std::atomic<bool> stop_wanted{false};
std::atomic<int64_t> first_ms{0};
std::atomic<const char*> said_when_stopping{kSaving};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Only async-signal-safe calls here.
void on_signal(int signal, siginfo_t* info, void*) {
  const int errno_before = errno;
  if (!stop_wanted.exchange(true)) {
    first_ms = now_ms();
    const char* text = info->si_code == SI_QUEUE && info->si_value.sival_int == kQuiet ? "" : said_when_stopping.load();
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  } else if (signal == SIGINT && now_ms() - first_ms >= 500) {
    ::_exit(130);
  }
  errno = errno_before;
}

// `nohup` has a program ignore it, and it stays ignored.
bool ignores_hangup() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

const std::atomic<bool>& stop_on_signals(const char* said) {
  said_when_stopping = said;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;  // without SA_RESTART: a read from a silent pipe comes back
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  if (!ignores_hangup()) ::sigaction(SIGHUP, &action, nullptr);
  ::sigaddset(&action.sa_mask, SIGTERM);
  ::sigprocmask(SIG_UNBLOCK, &action.sa_mask, nullptr);
  return stop_wanted;
}

void stop_quietly(pid_t process) {
  sigval value{};
  value.sival_int = kQuiet;
  if (::sigqueue(process, SIGTERM, value) != 0) ::kill(process, SIGTERM);  // no room for what comes with it
}

void ignore_broken_pipes() {
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace streamvec::cli
