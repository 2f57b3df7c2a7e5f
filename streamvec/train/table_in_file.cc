#include "streamvec/train/table_in_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "streamvec/core/durable_file.h"

namespace streamvec {

void TableInFile::Unmap::operator()(float* data) const {
  ::munmap(data, bytes);
}

Result<TableInFile> TableInFile::make(int64_t rows, int64_t cols, const std::string& dir) {
  STREAMVEC_CHECK(rows > 0 && cols > 0);
  std::string path = dir + "/.table-XXXXXX";
  const FileHandle file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return file_error(errno, "make a temporary file", dir);
  if (::unlink(path.c_str()) != 0) return file_error(errno, "remove", path);
  const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(float);
  if (const int failed = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); failed != 0)
    return file_error(failed, "take space for a temporary file", dir);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return file_error(errno, "map a temporary file", dir);
  TableInFile table;
  table.data_ = std::unique_ptr<float, Unmap>(static_cast<float*>(memory), Unmap{bytes});
  table.rows_ = rows;
  table.cols_ = cols;
  return table;
}

}  // namespace streamvec
