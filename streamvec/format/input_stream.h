// A file read once from its beginning, line by line or in pieces, plain or compressed (gzip, zstd, xz, bzip2: found out
// by looking at its first bytes).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"

struct archive;

namespace streamvec {

// Memory: a buffer of 1 MB, more only for a longer line or piece. Not thread-safe. Views end with the next call.
class InputStream {
 public:
  static constexpr int64_t kLineBytesMax = int64_t{16} << 20;

  static Result<InputStream> open(const std::string& path);

  const std::string& path() const { return path_; }
  bool compressed() const { return archive_ != nullptr; }
  int64_t size() const { return file_.size(); }  // of the file as stored
  int64_t offset() const { return offset_; }     // of the next byte, after decompression
  int64_t line() const { return line_; }         // the number of the line that next_line() gave last, from 1

  // The next bytes without taking them: `count` of them, fewer only where the stream ends. kDataLoss when a compressed
  // stream is damaged or cut short.
  Result<std::string_view> peek(int64_t count);
  void skip(int64_t count);  // REQUIRES: that many were peeked

  // The next line without its end ("\n" or "\r\n"), nothing when the stream has ended. A last line that has no end is
  // kDataLoss: every writer ends its lines, so the file was cut short. kResourceExhausted past kLineBytesMax.
  Result<std::optional<std::string_view>> next_line();

 private:
  struct CloseArchive {
    void operator()(archive* reader) const;
  };
  InputStream() = default;
  Status open_archive();
  Status fill();  // appends at least one byte to the buffer, or sets ended_
  Result<int64_t> read_some(char* bytes, int64_t count);

  std::string path_;
  FileReader file_;
  std::unique_ptr<archive, CloseArchive> archive_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // what is not taken yet
  int64_t stored_ = 0;          // bytes of a plain file that were read
  int64_t offset_ = 0;
  int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace streamvec
