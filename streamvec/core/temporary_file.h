// A file without a name, for what does not fit in memory: it is gone when it is closed, and when the process dies.
#pragma once

#include <cstdint>
#include <string>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"

namespace streamvec {

// For reading and writing, on the file system that directory `dir` lies on.
Result<FileHandle> open_nameless_file(const std::string& dir);

// Written at its end, read anywhere. Threads may read at once while nobody writes.
class TemporaryFile {
 public:
  // On the file system that directory `dir` lies on.
  static Result<TemporaryFile> create(const std::string& dir);

  Status append(const void* bytes, int64_t count);
  // kDataLoss when the file ends before that.
  Status read(int64_t offset, void* bytes, int64_t count) const;
  int64_t size() const { return size_; }

 private:
  std::string dir_;
  FileHandle file_;
  int64_t size_ = 0;
};

}  // namespace streamvec
