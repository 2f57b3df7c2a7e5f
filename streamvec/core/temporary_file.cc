#include "streamvec/core/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

namespace streamvec {

Result<FileHandle> open_nameless_file(const std::string& dir) {
#ifdef O_TMPFILE
  if (const int nameless = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); nameless >= 0)
    return FileHandle(nameless);
#endif
  // Not every file system has nameless files.
  std::string path = dir + "/.temporary-XXXXXX";
  FileHandle file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return file_error(errno, "make a temporary file", dir);
  if (::unlink(path.c_str()) != 0) return file_error(errno, "remove", path);
  return file;
}

Result<TemporaryFile> TemporaryFile::create(const std::string& dir) {
  TemporaryFile made;
  made.dir_ = dir;
  STREAMVEC_ASSIGN_OR_RETURN(made.file_, open_nameless_file(dir));
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
