#include "streamvec/core/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "streamvec/core/disk_change.h"

namespace streamvec {
namespace {

using Kind = DiskChange::Kind;

constexpr size_t kBufferBytes = size_t{1} << 20;

struct Advice {
  Code code;
  const char* try_this;
};

Advice advice_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {Code::kResourceExhausted, "free some space or write to another disk"};
    case EMFILE:
    case ENFILE:
      return {Code::kResourceExhausted, "raise the limit of open files (ulimit -n)"};
    case ENOMEM:
      return {Code::kResourceExhausted, "free some memory"};
    case EACCES:
    case EPERM:
      return {Code::kPermissionDenied, "check the owner and the mode of the path"};
    case EROFS:
      return {Code::kPermissionDenied, "choose a path on a file system that can be written"};
    case ENOENT:
      return {Code::kNotFound, "check the path for a misspelling"};
    case ENOTDIR:
      return {Code::kNotFound, "a part of the path is a file where a directory is needed"};
    case EEXIST:
    case ENOTEMPTY:
      return {Code::kAlreadyExists, "choose another path or remove what is there"};
    case EISDIR:
      return {Code::kInvalidArgument, "give the path of a file"};
    case ENAMETOOLONG:
      return {Code::kInvalidArgument, "choose a shorter path"};
    case ELOOP:
      return {Code::kInvalidArgument, "its symbolic links lead in a circle; look where they point (ls -l)"};
    case EIO:
      return {Code::kDataLoss, "the device reports errors; check the disk and its cable or network"};
    default:
      return {Code::kUnknown, "check the path and the file system"};
  }
}

// Opens again when a signal came in between, and never hands a descriptor on to a child program.
int open_file(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// Pipes and terminals cannot be synced and say so; that is no error.
Status sync_descriptor(int descriptor, const std::string& path, Kind kind) {
  if (const auto instead = ask_watch({.kind = kind, .path = path, .to = {}, .bytes = {}}))
    return *instead == 0 ? Status() : file_error(*instead, "sync", path);
  if (::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP) return {};
  return file_error(errno, "sync", path);
}

}  // namespace

Status file_error(int error_number, std::string_view doing, const std::string& path) {
  const Advice advice = advice_for(error_number);
  return error(advice.code, "cannot ", doing, " ", path, ": ", std::strerror(error_number), "; ", advice.try_this);
}

Checksum::Checksum() : state_(XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }) {
  STREAMVEC_CHECK(state_ != nullptr);
  reset();
}
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::update(std::string_view bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}
void Checksum::reset() {
  XXH3_64bits_reset(state_.get());
}
uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}

std::string Checksum::to_text(uint64_t sum) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

std::string Checksum::of(std::string_view bytes) {
  return to_text(XXH3_64bits(bytes.data(), bytes.size()));
}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int FileHandle::release() {
  return std::exchange(descriptor_, -1);
}

Result<FileReader> FileReader::open(const std::string& path) {
  FileReader reader;
  reader.path_ = path;
  // Without O_NONBLOCK the open of a pipe that nobody writes to would never return.
  reader.file_ = FileHandle(open_file(path, O_RDONLY | O_NONBLOCK));
  if (reader.file_.get() < 0) return file_error(errno, "open", path);
  struct stat info;
  if (::fstat(reader.file_.get(), &info) != 0) return file_error(errno, "look at", path);
  if (S_ISDIR(info.st_mode)) return file_error(EISDIR, "read", path);
  if (!S_ISREG(info.st_mode))
    return error(Code::kInvalidArgument, path, " is not a regular file; copy its content into one first");
  reader.size_ = info.st_size;
  return reader;
}

Status FileReader::read(int64_t offset, char* bytes, int64_t count) const {
  while (count > 0) {
    const ssize_t got = ::pread(file_.get(), bytes, static_cast<size_t>(std::min<int64_t>(count, INT_MAX)), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read at byte " + std::to_string(offset) + " of", path_);
    if (got == 0)
      return error(Code::kDataLoss, path_, " ends at byte ", offset, ", ", count,
                   " bytes early; it was cut short: fetch or write it again");
    offset += got;
    bytes += got;
    count -= got;
  }
  return {};
}

Result<std::string> FileReader::read_all(int64_t size_max) const {
  if (size_ > size_max)
    return error(Code::kResourceExhausted, path_, " has ", size_, " bytes where at most ", size_max,
                 " make sense; check that it is the right file");
  std::string bytes(static_cast<size_t>(size_), '\0');
  STREAMVEC_RETURN_IF_ERROR(read(0, bytes.data(), size_));
  return bytes;
}

Result<uint64_t> FileReader::checksum(int64_t offset, int64_t count) const {
  Checksum sum;
  std::string buffer(static_cast<size_t>(std::min<int64_t>(count, kBufferBytes)), '\0');
  while (count > 0) {
    const int64_t piece = std::min<int64_t>(count, kBufferBytes);
    STREAMVEC_RETURN_IF_ERROR(read(offset, buffer.data(), piece));
    sum.update({buffer.data(), static_cast<size_t>(piece)});
    offset += piece;
    count -= piece;
  }
  return sum.value();
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  FileWriter writer;
  writer.path_ = path;
  if (const auto instead = ask_watch({.kind = Kind::kCreate, .path = path, .to = {}, .bytes = {}}))
    return file_error(*instead, "create", path);
  writer.file_ = FileHandle(open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  if (writer.file_.get() < 0) return file_error(errno, "create", path);
  writer.buffer_.reserve(kBufferBytes);
  return writer;
}

Status FileWriter::write(std::string_view bytes) {
  if (!failed_.ok()) return failed_;
  checksum_.update(bytes);
  size_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) STREAMVEC_RETURN_IF_ERROR(flush());
  if (bytes.size() > kBufferBytes) return write_through(bytes);
  buffer_.append(bytes);
  return {};
}

Status FileWriter::flush() {
  const Status status = write_through(buffer_);
  buffer_.clear();
  return status;
}

Status FileWriter::write_through(std::string_view bytes) {
  if (const auto instead = ask_watch({.kind = Kind::kWrite, .path = path_, .to = {}, .bytes = bytes});
      instead && failed_.ok())
    failed_ = file_error(*instead, "write", path_);
  while (!bytes.empty() && failed_.ok()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put >= 0)
      bytes.remove_prefix(static_cast<size_t>(put));
    else if (errno != EINTR)
      failed_ = file_error(errno, "write", path_);
  }
  return failed_;
}

Status FileWriter::close() {
  if (file_.get() < 0) return failed_;  // it was closed before
  if (failed_.ok()) failed_ = flush();
  if (failed_.ok()) failed_ = sync_descriptor(file_.get(), path_, Kind::kSync);
  const int descriptor = file_.release();
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR && failed_.ok())
    failed_ = file_error(errno, "close", path_);
  return failed_;
}

DurableFile::DurableFile(std::string path, std::string partial_path, FileWriter writer)
    : path_(std::move(path)), partial_path_(std::move(partial_path)), writer_(std::move(writer)) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      partial_path_(std::exchange(other.partial_path_, {})),
      writer_(std::move(other.writer_)) {}

Result<DurableFile> DurableFile::create(const std::string& path) {
  static std::atomic<int> serial{0};
  std::string target = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return file_error(EISDIR, "write", path);
    if (!S_ISREG(info.st_mode)) {
      STREAMVEC_ASSIGN_OR_RETURN(FileWriter direct, FileWriter::create(path));
      return DurableFile(path, "", std::move(direct));
    }
    std::error_code ignored;
    if (const auto real = std::filesystem::canonical(path, ignored); !ignored) target = real.string();
  }
  const std::string partial =
      target + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(serial.fetch_add(1));
  STREAMVEC_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(partial));
  return DurableFile(target, partial, std::move(writer));
}

DurableFile::~DurableFile() {
  if (!partial_path_.empty()) remove_file(partial_path_);
}

Status DurableFile::commit() {
  STREAMVEC_RETURN_IF_ERROR(prepare());
  if (partial_path_.empty()) return {};
  STREAMVEC_RETURN_IF_ERROR(rename_path(partial_path_, path_));
  partial_path_.clear();
  return sync_directory(directory_of(path_));
}

DurableDirectory::DurableDirectory(std::string path) : path_(std::move(path)), partial_path_(path_ + ".partial") {}

DurableDirectory::DurableDirectory(DurableDirectory&& other) noexcept
    : path_(std::move(other.path_)), partial_path_(std::exchange(other.partial_path_, {})) {}

Result<DurableDirectory> DurableDirectory::create(const std::string& path) {
  DurableDirectory directory(path);
  if (const int failed = remove_tree(directory.partial_path_); failed != 0)
    return file_error(failed, "empty", directory.partial_path_);
  if (const int failed = make_directory(directory.partial_path_); failed != 0)
    return file_error(failed, "create the directory", directory.partial_path_);
  return directory;
}

DurableDirectory::~DurableDirectory() {
  if (!partial_path_.empty()) remove_tree(partial_path_);
}

Status DurableDirectory::commit() {
  STREAMVEC_RETURN_IF_ERROR(sync_directory(partial_path_));
  STREAMVEC_RETURN_IF_ERROR(rename_path(partial_path_, path_));
  partial_path_.clear();
  return sync_directory(directory_of(path_));
}

Status write_file_durably(const std::string& path, std::string_view bytes) {
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::create(path));
  STREAMVEC_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

Status rename_path(const std::string& from, const std::string& to) {
  const int failed = rename_entry(from, to);
  return failed == 0 ? Status() : file_error(failed, "rename " + from + " to", to);
}

Status sync_directory(const std::string& path) {
  const FileHandle directory(open_file(path, O_RDONLY | O_DIRECTORY));
  if (directory.get() < 0) return file_error(errno, "open", path);
  return sync_descriptor(directory.get(), path, Kind::kSyncDirectory);
}

std::string directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

}  // namespace streamvec
