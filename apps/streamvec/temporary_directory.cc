#include "apps/streamvec/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace streamvec::cli {

Result<TemporaryDirectory> TemporaryDirectory::make(const std::string& name) {
  std::error_code failure;
  std::string path = (std::filesystem::temp_directory_path(failure) / (name + "-XXXXXX")).string();
  if (failure || ::mkdtemp(path.data()) == nullptr)
    return error(Code::kUnavailable, path, ": cannot be made (", std::strerror(errno), "); set TMPDIR");
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace streamvec::cli
