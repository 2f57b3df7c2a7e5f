#include "streamvec/train/table_in_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "streamvec/core/temporary_file.h"

namespace streamvec {

void TableInFile::Unmap::operator()(float* data) const {
  ::munmap(data, bytes);
}

Result<TableInFile> TableInFile::make(int64_t rows, int64_t cols, const std::string& dir) {
  STREAMVEC_CHECK(rows > 0 && cols > 0);
  STREAMVEC_ASSIGN_OR_RETURN(const FileHandle file, open_nameless_file(dir));
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

Result<TablesInFiles> TablesInFiles::make(int64_t rows, int64_t cols, const std::string& dir) {
  TablesInFiles both;
  STREAMVEC_ASSIGN_OR_RETURN(both.input, TableInFile::make(rows, cols, dir));
  STREAMVEC_ASSIGN_OR_RETURN(both.output, TableInFile::make(rows, cols, dir));
  return both;
}

}  // namespace streamvec
