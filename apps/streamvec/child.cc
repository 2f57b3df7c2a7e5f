#include "apps/streamvec/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "streamvec/core/durable_file.h"

extern char** environ;

namespace streamvec::cli {
namespace {

constexpr int kPollMs = 50;
constexpr off_t kComplaintBytes = 4096;

struct Pipe {
  FileHandle read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return error(Code::kUnavailable, "no pipe for a child process (", std::strerror(errno), ")");
  return Pipe{FileHandle(ends[0]), FileHandle(ends[1])};
}

// Everything until the other end is closed; passes a wish to stop on, once.
std::string read_all(int fd, pid_t pid, const std::atomic<bool>& stop) {
  std::string text;
  char bytes[4096];
  bool told = false;
  while (true) {
    if (stop && !std::exchange(told, true)) ::kill(pid, SIGTERM);
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, kPollMs) <= 0) continue;
    const ssize_t count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes, static_cast<size_t>(count));
  }
}

std::string last_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END), from = std::max<off_t>(0, size - kComplaintBytes);
  std::string text(static_cast<size_t>(size - from), '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), from);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

}  // namespace

Result<pid_t> start_program(const std::vector<std::string>& words, const ChildFiles& files) {
  std::vector<char*> argv;
  std::string program = "streamvec";
  argv.push_back(program.data());
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [file, standard] : {std::pair(files.input, STDIN_FILENO), std::pair(files.output, STDOUT_FILENO),
                                       std::pair(files.complaints, STDERR_FILENO)}) {
    if (file >= 0) posix_spawn_file_actions_adddup2(&actions, file, standard);
    if (file == ChildFiles::kNone) posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t waits;
  ::sigemptyset(&waits);
  ::sigaddset(&waits, SIGTERM);
  posix_spawnattr_setsigmask(&attributes, &waits);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return error(Code::kUnavailable, "cannot start ", words.front(), ": ", std::strerror(failed));
  return pid;
}

Result<std::string> run_program(const std::vector<std::string>& words, const std::atomic<bool>& stop) {
  STREAMVEC_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  const FileHandle complaints(::memfd_create("complaints", MFD_CLOEXEC));
  STREAMVEC_ASSIGN_OR_RETURN(const pid_t pid, start_program(words, {.input = ChildFiles::kNone,
                                                                    .output = output.write_end.get(),
                                                                    .complaints = complaints.get()}));
  output.write_end = FileHandle();
  std::string text = read_all(output.read_end.get(), pid, stop);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFSIGNALED(status))
    return error(Code::kInternal, words.front(), " was ended by ", ::strsignal(WTERMSIG(status)));
  return error(Code::kInternal, last_line(complaints.get()));
}

}  // namespace streamvec::cli
