// Where a followed file was read to, and how to know that file again. Private to tail_source.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

struct TailPlace {
  static constexpr size_t kHeadBytes = 256, kLastBytes = 64;

  uint64_t inode = 0;
  int64_t offset = 0, mtime_ns = 0, bytes_read = 0;
  size_t head_size = 0, last_size = 0;  // bytes of the file's beginning and before `offset`, up to the above
  std::string head_sum, last_sum;       // their checksums

  std::string text() const;
  static Result<TailPlace> parse(const std::string& text);
  // Whether the file at `path`, compressed or not, begins with what had been read up to this place.
  bool is_in(const std::string& path) const;
};

// Whether PATH + `suffix` is what rotation makes of PATH: ".1", "-20240501", ".2024-05-01.gz".
bool is_rotation_suffix(std::string_view suffix);

}  // namespace streamvec
