// A directory under the system's temporary one that goes away with everything in it.
#pragma once

#include <string>
#include <utility>

#include "streamvec/core/status.h"

namespace streamvec::cli {

class TemporaryDirectory {
 public:
  // Its name begins with `name`.
  static Result<TemporaryDirectory> make(const std::string& name);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace streamvec::cli
