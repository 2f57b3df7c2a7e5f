#include "apps/streamvec/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "apps/streamvec/signals.h"
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
    if (stop && !std::exchange(told, true)) stop_quietly(pid);
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

int await_end(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The child from its beginning on: only async-signal-safe calls. Why it could not be goes to `trouble`.
[[noreturn]] void become(char* const* argv, const ChildFiles& files, pid_t parent, int trouble) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it was gone before
  const std::pair<int, int> standard[] = {
      {files.input, STDIN_FILENO}, {files.output, STDOUT_FILENO}, {files.complaints, STDERR_FILENO}};
  for (const auto& [file, number] : standard) {
    if (file >= 0) ::dup2(file, number);
    if (file == ChildFiles::kNone) ::dup2(::open("/dev/null", O_RDWR | O_CLOEXEC), number);
  }
  sigset_t waits;
  ::sigemptyset(&waits);
  ::sigaddset(&waits, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &waits, nullptr);
  ::execve("/proc/self/exe", argv, environ);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(trouble, &why, sizeof why);
  ::_exit(1);
}

}  // namespace

Result<pid_t> start_program(const std::vector<std::string>& words, const ChildFiles& files) {
  std::vector<char*> argv;
  std::string program = "streamvec";
  argv.push_back(program.data());
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  STREAMVEC_ASSIGN_OR_RETURN(Pipe trouble, make_pipe());
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // a signal to the child is not to be heard by our handlers in it
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) become(argv.data(), files, parent, trouble.write_end.get());
  int failed = pid < 0 ? errno : 0;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  trouble.write_end = FileHandle();
  while (pid > 0 && ::read(trouble.read_end.get(), &failed, sizeof failed) < 0 && errno == EINTR) {
  }
  if (failed == 0) return pid;
  if (pid > 0) await_end(pid);
  return error(Code::kUnavailable, "cannot start ", words.front(), ": ", std::strerror(failed));
}

Result<std::string> run_program(const std::vector<std::string>& words, const std::atomic<bool>& stop) {
  STREAMVEC_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  const FileHandle complaints(::memfd_create("complaints", MFD_CLOEXEC));
  STREAMVEC_ASSIGN_OR_RETURN(const pid_t pid, start_program(words, {.input = ChildFiles::kNone,
                                                                    .output = output.write_end.get(),
                                                                    .complaints = complaints.get()}));
  output.write_end = FileHandle();
  std::string text = read_all(output.read_end.get(), pid, stop);
  const int status = await_end(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFSIGNALED(status))
    return error(Code::kInternal, words.front(), " was ended by ", ::strsignal(WTERMSIG(status)));
  return error(Code::kInternal, last_line(complaints.get()));
}

}  // namespace streamvec::cli
