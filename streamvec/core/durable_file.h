// Files that survive a crash. What is written appears under its name whole or not at all: it is written beside,
// synced, renamed, and the directory synced, so that at every instant the name leads to the old bytes or the new.
// Every system error becomes a Status that says what was being done to which path, why it failed, and what to try.
// Nothing here is thread-safe; one object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

struct XXH3_state_s;

namespace streamvec {

// The Status of a failed system call: file_error(errno, "write", path). ENOSPC and the like are kResourceExhausted,
// EACCES and EROFS kPermissionDenied, ENOENT kNotFound, EEXIST kAlreadyExists, EIO kDataLoss.
Status file_error(int error_number, std::string_view doing, const std::string& path);

// XXH3, 64 bits, of bytes given piece by piece. It finds damage, not malice.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void update(std::string_view bytes);
  void reset();
  uint64_t value() const;
  std::string text() const { return to_text(value()); }
  static std::string to_text(uint64_t sum);  // 16 hexadecimal digits, as `xxhsum -H3` prints them
  static std::string of(std::string_view bytes);

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};

// A file descriptor that closes itself.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  int get() const { return descriptor_; }
  int release();  // the caller closes it

 private:
  int descriptor_ = -1;
};

// Reads a regular file at any place. The size is the one found when it was opened; a file that has shrunk since then
// is an error like one cut short, never a crash.
class FileReader {
 public:
  static Result<FileReader> open(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  // Fills `bytes` with what stands at `offset`. kDataLoss, with path and offset, when the file ends before that.
  Status read(int64_t offset, char* bytes, int64_t count) const;
  // The whole file. kResourceExhausted when it is larger than `size_max`; nothing is allocated then.
  Result<std::string> read_all(int64_t size_max) const;
  // The checksum of `count` bytes from `offset`, read through a small buffer.
  Result<uint64_t> checksum(int64_t offset, int64_t count) const;

 private:
  std::string path_;
  FileHandle file_;
  int64_t size_ = 0;
};

// Writes a file from its beginning to its end through a 1 MB buffer and sums what passes. The first error sticks:
// later calls return it again, so that a writer of many rows may look once in a while. A file that was not closed
// with close() may hold anything.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);  // an existing file is emptied

  const std::string& path() const { return path_; }
  Status write(std::string_view bytes);
  // Flushes, syncs to the device, closes; says the same when called again. Only after an ok is the file's content on
  // the disk.
  Status close();
  int64_t size() const { return size_; }                   // bytes written so far
  uint64_t checksum() const { return checksum_.value(); }  // of those bytes

 private:
  Status flush();
  Status write_through(std::string_view bytes);

  std::string path_;
  FileHandle file_;
  std::string buffer_;
  Checksum checksum_;
  int64_t size_ = 0;
  Status failed_;
};

// A file that replaces `path` when it is committed. Without commit() nothing of it remains. It is written as
// `PATH.partial-PID-N` in the same directory; a crash may leave that one behind. A path that leads to something other
// than a regular file (a pipe, /dev/stdout) is written directly; a symbolic link is followed and stays.
class DurableFile {
 public:
  static Result<DurableFile> create(const std::string& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  FileWriter& writer() { return writer_; }
  Status write(std::string_view bytes) { return writer_.write(bytes); }
  // All is written and synced, beside its place: a full disk is met here, where nothing has changed yet. For files that
  // belong together; commit() does it by itself.
  Status prepare() { return writer_.close(); }
  Status commit();

 private:
  DurableFile(std::string path, std::string partial_path, FileWriter writer);

  std::string path_;
  std::string partial_path_;  // "" when there is nothing to rename or remove
  FileWriter writer_;
};

// A directory that appears as `path` when it is committed. Files are put into partial_path(), which is `PATH.partial`,
// emptied first if a broken-off attempt left it; the caller keeps two writers apart. Without commit() it is removed.
class DurableDirectory {
 public:
  static Result<DurableDirectory> create(const std::string& path);
  DurableDirectory(DurableDirectory&& other) noexcept;
  DurableDirectory& operator=(DurableDirectory&&) = delete;
  ~DurableDirectory();

  const std::string& partial_path() const { return partial_path_; }
  // Syncs the directory, renames it, syncs the one above. The files in it must have been closed by FileWriter.
  // kAlreadyExists when `path` is there and not empty; it is left alone.
  Status commit();

 private:
  explicit DurableDirectory(std::string path);

  std::string path_;
  std::string partial_path_;  // "" once committed
};

// Replaces `path` by `bytes` in the manner of DurableFile.
Status write_file_durably(const std::string& path, std::string_view bytes);

// rename(2), which replaces a file or an empty directory at `to`. Lasts only after sync_directory().
Status rename_path(const std::string& from, const std::string& to);

// Makes renames, creations and removals in a directory last.
Status sync_directory(const std::string& path);

// The directory a path lies in: "." for a bare name.
std::string directory_of(const std::string& path);

}  // namespace streamvec
