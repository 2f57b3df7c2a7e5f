#include "streamvec/core/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

namespace streamvec {

Result<TemporaryFile> TemporaryFile::create(const std::string& dir) {
  TemporaryFile made;
  made.dir_ = dir;
#ifdef O_TMPFILE
  if (const int nameless = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); nameless >= 0) {
    made.file_ = FileHandle(nameless);
    return made;
  }
#endif
  // Not every file system has nameless files.
  std::string path = dir + "/.temporary-XXXXXX";
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return file_error(errno, "make a temporary file", dir);
  made.file_ = FileHandle(descriptor);
  if (::unlink(path.c_str()) != 0) return file_error(errno, "remove", path);
  return made;
}

Status TemporaryFile::append(const void* bytes, int64_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::pwrite(file_.get(), from, static_cast<size_t>(count), size_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(errno, "write to a temporary file", dir_);
    from += written;
    count -= written;
    size_ += written;
  }
  return {};
}

Status TemporaryFile::read(int64_t offset, void* bytes, int64_t count) const {
  char* to = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = ::pread(file_.get(), to, static_cast<size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read a temporary file", dir_);
    if (got == 0) return error(Code::kDataLoss, "a temporary file in ", dir_, " ends at byte ", offset);
    to += got;
    count -= got;
    offset += got;
  }
  return {};
}

}  // namespace streamvec
