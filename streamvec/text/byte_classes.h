// Sixty-four bytes at a time into bit maps: the part of tokenising that vector instructions do.
#pragma once

#include <cstdint>

namespace streamvec {

// Bit i speaks of byte i. A byte of 0x80 and above, or 0, is `special` and in no other map.
struct ByteBlock {
  uint64_t alnum;      // ASCII letters and digits
  uint64_t digit;      // 0-9
  uint64_t upper;      // A-Z
  uint64_t joiner;     // ' _
  uint64_t point;      // . ,
  uint64_t white;      // space \t \n \v \f \r
  uint64_t line_feed;  // \n
  uint64_t carriage;   // \r
  uint64_t special;
};

constexpr int64_t kByteBlockBytes = 64;

// Reads blocks * 64 bytes and writes `blocks` blocks. Uses the best instruction set of the machine.
void classify_bytes(const char* text, int64_t blocks, ByteBlock* out);

}  // namespace streamvec
