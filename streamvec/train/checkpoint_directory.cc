#include "streamvec/train/checkpoint_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include "streamvec/core/disk_change.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

constexpr size_t kStepDigitsMax = 18;

// "120.partial" is step 120 with the ending ".partial"; nothing when the name is not one of ours.
struct StepName {
  int64_t step = 0;
  std::string ending;
};
std::optional<StepName> parse_name(const std::string& name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0 || digits > kStepDigitsMax || (name[0] == '0' && digits > 1)) return std::nullopt;
  StepName parsed;
  std::from_chars(name.data(), name.data() + digits, parsed.step);
  parsed.ending = name.substr(digits);
  return parsed;
}

bool is_leftover(const std::string& name) {
  if (name.starts_with("latest.partial-")) return true;
  const auto parsed = parse_name(name);
  return parsed && (parsed->ending == ".partial" || parsed->ending.ends_with(".removed"));
}

// What a stream writes beside its checkpoints; one that was killed before its first has left only that.
bool is_of_stream(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename();
  std::error_code ignored;
  return entry.is_directory(ignored) ? name == "history" || name == "tensorboard" : name.starts_with("metrics.jsonl");
}

// What may stand in a directory that counts as empty: our own leftovers, and what file systems and desktops put there.
bool is_harmless(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename();
  std::error_code ignored;
  return is_leftover(name) || is_of_stream(entry) || name == "latest" || name == "lost+found" ||
         (name.starts_with('.') && entry.is_regular_file(ignored));
}

Result<std::vector<fs::directory_entry>> list_entries(const std::string& dir) {
  std::error_code failed;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(dir, failed), end; !failed && at != end; at.increment(failed)) entries.push_back(*at);
  if (failed) return file_error(failed.value(), "list", dir);
  return entries;
}

uint64_t identity_of(const fs::path& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return 0;
  return mix(info.st_ino, static_cast<uint64_t>(info.st_ctim.tv_sec), static_cast<uint64_t>(info.st_ctim.tv_nsec));
}

void remove_files(const std::string& path) {
  // The state goes last: a directory with a state is a checkpoint, one without it never was.
  if (const auto entries = list_entries(path); entries.ok())
    for (const fs::directory_entry& entry : *entries)
      if (is_extra_file(entry.path().filename().string())) remove_file(entry.path().string());
  for (const char* name : {kModelFile, kVocabularyFile, kCursorsFile, kStateFile}) remove_file(path + "/" + name);
  remove_directory(path);
}

Status refuse_foreign(const std::string& dir) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, list_entries(dir));
  for (const fs::directory_entry& entry : entries)
    if (!is_harmless(entry))
      return error(Code::kFailedPrecondition, dir, " holds other things than a model (",
                   entry.path().filename().string(), "); choose a directory that is new or empty");
  return {};
}

Status make_directories(const std::string& dir) {
  std::error_code ignored;
  if (dir.empty() || fs::is_directory(dir, ignored)) return {};
  int failed = make_directory(dir);
  if (failed == ENOENT && directory_of(dir) != dir) {
    STREAMVEC_RETURN_IF_ERROR(make_directories(directory_of(dir)));
    failed = make_directory(dir);  // some file systems say the same of what they do not make at all
  }
  if (failed != 0 && !fs::is_directory(dir, ignored)) return file_error(failed, "create the directory", dir);
  return {};
}

// The names on the way to `dir` last, whoever made them: one that ended before it could sync them may have. What lies
// on another file system was there before, and what may not be read is not ours.
Status sync_way_to(const std::string& dir) {
  std::error_code failed;
  struct stat own = {}, above = {};
  fs::path at = fs::canonical(dir, failed);
  if (failed || ::stat(at.c_str(), &own) != 0) return file_error(failed ? failed.value() : errno, "look at", dir);
  while (at.has_relative_path()) {
    at = at.parent_path();
    if (::stat(at.c_str(), &above) != 0 || above.st_dev != own.st_dev) break;
    const Status synced = sync_directory(at.string());
    if (!synced.ok() && synced.code() != Code::kPermissionDenied) return synced;
  }
  return {};
}

// What a lock's file says of its holder, for messages and for those of the same job. The lock itself does not depend on
// it.
struct LockHolder {
  std::string process, job;
};

LockHolder read_holder(int descriptor) {
  char text[1024] = {};
  const ssize_t count = ::pread(descriptor, text, sizeof text - 1, 0);
  std::istringstream lines(std::string(text, static_cast<size_t>(std::max<ssize_t>(count, 0))));
  LockHolder holder;
  std::getline(lines, holder.process);
  std::getline(lines, holder.job);
  return holder;
}

void write_holder(int descriptor, const std::string& job) {
  const std::string text = std::to_string(::getpid()) + "\n" + job + "\n";
  if (::ftruncate(descriptor, 0) == 0) (void)!::pwrite(descriptor, text.data(), text.size(), 0);
}

}  // namespace

bool is_extra_file(std::string_view name) {
  constexpr std::string_view kEnding = ".bin";
  if (name.size() <= kEnding.size() || !name.ends_with(kEnding)) return false;
  name.remove_suffix(kEnding.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

Result<std::vector<CheckpointPath>> list_checkpoints(const std::string& dir) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, list_entries(dir));
  std::vector<CheckpointPath> found;
  for (const fs::directory_entry& entry : entries) {
    const auto name = parse_name(entry.path().filename());
    std::error_code ignored;
    if (!name || (name->ending != "" && name->ending != ".replaced")) continue;
    if (fs::exists(entry.path() / kStateFile, ignored) || fs::exists(entry.path() / kModelFile, ignored))
      found.push_back({name->step, name->ending != "", entry.path().string(), identity_of(entry.path())});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointPath& a, const CheckpointPath& b) {
    return a.step != b.step ? a.step > b.step : a.replaced < b.replaced;
  });
  return found;
}

namespace {

// Another file under the name of the lock: its holder has one that nobody looks at any more.
Result<FileHandle> replace_lock(const std::string& path, const std::string& job) {
  const std::string beside = path + "." + std::to_string(::getpid());
  FileHandle lock(::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (lock.get() < 0) return file_error(errno, "create", beside);
  (void)::flock(lock.get(), LOCK_EX | LOCK_NB);  // nobody else has it; file systems without locks go by the name alone
  write_holder(lock.get(), job);
  if (::rename(beside.c_str(), path.c_str()) == 0) return lock;
  const int failed = errno;
  ::unlink(beside.c_str());
  return file_error(failed, "replace", path);
}

}  // namespace

Status check_lock(const std::string& dir, const FileHandle& lock) {
  const std::string path = dir + "/.lock";
  struct stat held = {}, named = {};
  if (::fstat(lock.get(), &held) != 0) return file_error(errno, "look at", path);
  if (::stat(path.c_str(), &named) != 0) return errno == ENOENT ? Status() : file_error(errno, "look at", path);
  if (held.st_ino == named.st_ino && held.st_dev == named.st_dev) return {};
  return error(Code::kAborted, dir, " was taken over by another process, which leads in place of this one; nothing ",
               "more is written here");
}

Result<FileHandle> lock_model_directory(const std::string& dir, const std::string& job) {
  STREAMVEC_RETURN_IF_ERROR(make_directories(dir));
  STREAMVEC_ASSIGN_OR_RETURN(const auto checkpoints, list_checkpoints(dir));
  if (checkpoints.empty()) {  // whoever has saved one has done it
    STREAMVEC_RETURN_IF_ERROR(refuse_foreign(dir));
    STREAMVEC_RETURN_IF_ERROR(sync_way_to(dir));
  }
  const std::string path = dir + "/.lock";
  FileHandle lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.get() < 0) return file_error(errno, "create", path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int failed = errno;
    const LockHolder holder = read_holder(lock.get());
    if (!job.empty() && holder.job == job) return replace_lock(path, job);
    if (failed == EWOULDBLOCK)
      return error(Code::kFailedPrecondition, dir, " is being written by another ",
                   holder.process == std::to_string(::getpid()) ? "training of this process" : "process",
                   holder.process.empty() ? "" : " (process " + holder.process + ")",
                   "; wait for it, stop it, or choose another directory");
    // A network file system without locks: the user keeps writers apart.
    if (failed != ENOTSUP && failed != ENOSYS && failed != ENOLCK) return file_error(failed, "lock", path);
  }
  write_holder(lock.get(), job);
  return lock;
}

void remove_checkpoint(const std::string& path) {
  const std::string removed = path + ".removed";
  if (rename_entry(path, removed) == 0) remove_files(removed);
}

void remove_leftovers(const std::string& dir) {
  const auto entries = list_entries(dir);
  if (!entries.ok()) return;
  for (const fs::directory_entry& entry : *entries) {
    const std::string name = entry.path().filename();
    if (!is_leftover(name)) continue;
    if (name.starts_with("latest"))
      remove_file(entry.path().string());
    else
      remove_files(entry.path().string());
  }
}

}  // namespace streamvec
