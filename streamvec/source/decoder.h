// Undoes compression a buffer at a time: gzip, zstd, xz and bzip2, found out by the first bytes whatever the name.
// The libraries are used directly, because each can stop at any byte (a pipe that stalls) and checks its sums.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

enum class Compression { kNone, kGzip, kZstd, kXz, kBzip2 };

std::string_view compression_name(Compression compression);  // "gzip", ...

// What a stream starting with `head` is. Certain once kMagicBytes are there.
constexpr size_t kMagicBytes = 10;
Compression recognise_compression(std::string_view head);
// Whether `head` is the beginning of a compressed stream's mark, so that more bytes are needed to decide.
bool may_become_compression(std::string_view head);

// Members that follow each other (`cat a.gz b.gz`, pigz, pbzip2) are one stream, and zeros between or after them are
// padding. Takes up to 512 MB for what an xz stream asks, 128 MB for zstd; a stream that wants more is refused.
class Decoder {
 public:
  // REQUIRES: compression != kNone.
  static std::unique_ptr<Decoder> make(Compression compression);
  virtual ~Decoder() = default;

  // Decodes from the front of `in` to the front of `out` and takes from both what was used. On ok, `in` or what is
  // left of `out` is empty. kDataLoss when the bytes are not what was compressed, kResourceExhausted when decoding
  // needs too much memory; the message says why, the caller knows where.
  Status decode(std::string_view& in, std::span<char>& out);
  // The same, but returns at the end of each member too, so that at_member_end() tells where members begin.
  Status decode_member(std::string_view& in, std::span<char>& out);
  // At the end of a member: the stream may end here. False before the first byte.
  bool at_member_end() const { return members_ > 0 && !in_member_; }

 protected:
  virtual Status begin_member() = 0;
  // One call of the library; sets `ended` at the end of a member.
  virtual Status step(std::string_view& in, std::span<char>& out, bool& ended) = 0;

 private:
  Status decode_until(bool member_end, std::string_view& in, std::span<char>& out);

  bool in_member_ = false;
  int64_t members_ = 0;
};

}  // namespace streamvec
