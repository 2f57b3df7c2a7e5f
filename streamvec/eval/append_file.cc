#include "streamvec/eval/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace streamvec {

Result<FileHandle> open_for_append(const std::string& path) {
  FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) return file_error(errno, "open", path);
  return file;
}

Status append_all(const FileHandle& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace streamvec
