// An archive's decoded bytes, read forward, each place of which can be found again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/source/decoder.h"

namespace streamvec {

// Plain, or compressed by gzip, zstd, xz or bzip2. Archives are often compressed record by record, so that a place is
// where a compressed member begins and how many decoded bytes come after that: going there costs what that one member
// costs. Not thread-safe. Memory: what the caller asks to see at once, 128 KB, and what the decoder needs.
class ArchiveFile {
 public:
  struct Place {
    int64_t stored = 0;  // in the file; of a plain file the place itself
    int64_t skip = 0;    // decoded bytes from there
  };

  static Result<ArchiveFile> open(const std::string& path) { return open(path, Place()); }
  // kFailedPrecondition when the file ends before `place`.
  static Result<ArchiveFile> open(const std::string& path, Place place);

  // What comes next: at least `size` bytes, fewer only where the file ends or a damaged member begins; often more.
  // Holds until the next call. kDataLoss, with path and offset, when what comes next is damaged.
  Result<std::string_view> peek(size_t size);
  // Passes bytes that peek() has shown.
  void take(size_t size);
  // Passes `count` bytes without keeping them; false when the file ends before. Errors as in peek().
  Result<bool> skip(int64_t count);
  // Goes back to a place that place() gave, or on to one. kFailedPrecondition when the file ends before it.
  Status seek(Place place);
  // After kDataLoss: goes on where a compressed member begins behind the damaged one; false when there is none.
  Result<bool> recover();

  Place place() const;                                     // of what comes next
  int64_t stored_read() const { return stored_offset(); }  // bytes of the file used so far

 private:
  struct Member {
    int64_t stored = 0, decoded = 0;
  };

  Status refill();
  Status refill_plain();
  Status refill_decoded();
  Result<size_t> read_stored(char* out, size_t size, int64_t offset) const;
  int64_t stored_offset() const { return offset_ - static_cast<int64_t>(pending_.size()); }
  void start_at(int64_t stored);

  std::string path_;
  FileHandle file_;
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decoder> decoder_;
  std::string stored_;        // bytes as stored, when compressed
  std::string_view pending_;  // those not decoded yet
  int64_t offset_ = 0;        // of the next stored byte to be read
  bool ended_ = false;        // nothing more comes
  Status damage_;             // why, when that is a damage
  std::string buffer_;        // decoded; what begins at begin_ is not taken yet
  size_t begin_ = 0;
  int64_t decoded_ = 0;         // bytes taken since start_at()
  std::deque<Member> members_;  // where members begin, those at or behind the one begin_ is in
};

}  // namespace streamvec
