// One file, plain or compressed, read from its beginning as what it holds after decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/source/decoder.h"

namespace streamvec {

// A regular file as it was when it was looked at: enough to notice that it is another one now.
struct FileStamp {
  std::string path;
  int64_t size = 0;      // bytes as stored
  int64_t mtime_ns = 0;  // since 1970

  static Result<FileStamp> of(const std::string& path);  // kInvalidArgument for what is no regular file
};

// Memory: a 64 KB buffer when compressed, and what the decoder needs. Not thread-safe.
class DecodedFile {
 public:
  static Result<DecodedFile> open(const std::string& path);

  // Fills `out` and returns its size; less only where the text ends. kDataLoss, with path and offset, when a
  // compressed stream is damaged or cut short.
  Result<size_t> read(std::span<char> out);
  // Passes `count` bytes; a plain file jumps over them. The same errors; false when the text ends before.
  Result<bool> skip(int64_t count);

  int64_t stored_read() const { return stored_read_; }  // bytes of the file used so far
  // A plain file that has grown since its end was met is read on; a compressed one is not.
  Compression compression() const { return compression_; }
  int descriptor() const { return file_.get(); }  // for fstat(2) and pread(2)

 private:
  Result<size_t> read_stored(std::span<char> out);
  Status refill();
  Status damaged(const Status& why) const;

  std::string path_;
  FileHandle file_;
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decoder> decoder_;  // none for a plain file
  std::vector<char> buffer_;          // of stored bytes, when compressed
  std::string_view pending_;          // what the decoder has not taken yet of them
  bool stored_end_ = false;
  int64_t offset_ = 0;       // of the next stored byte to be read
  int64_t stored_read_ = 0;  // of the next stored byte to be used
};

}  // namespace streamvec
