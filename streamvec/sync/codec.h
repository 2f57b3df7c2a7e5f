// How changes of rows are put into bytes. A lossy codec hands back what it really sent: the sender keeps the difference
// and sends it later (error feedback; Seide et al. 2014), so that nothing is lost, only late.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

// The numbers stand in messages: never reuse one.
enum class CodecKind : uint8_t {
  kFp32 = 0,
  kFp16 = 1,    // half precision, each row at its own power of two
  kOneBit = 2,  // a sign a value and two levels a row (Seide et al. 2014): dim / 8 + 4 bytes
  kStrom = 3,   // of each message the few values past a threshold, as +- that (Strom 2015); places as Rice-coded gaps
};

// Not thread-safe: keeps scratch memory.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecKind kind() const = 0;
  // Appends the rows to `out` and leaves in `rows` what decode() will make of them, bit for bit.
  virtual void encode(MatrixView<float> rows, std::string& out) = 0;
  // Fills `rows`. kInvalidArgument when the payload is not that of so many rows of this length. Never reads past it.
  virtual Status decode(std::string_view payload, MatrixView<float> rows) const = 0;
};

std::unique_ptr<Codec> make_codec(CodecKind kind);
// "fp32", "fp16", "onebit", "strom". kInvalidArgument for others, with the list.
Result<CodecKind> parse_codec(std::string_view name);
// kInvalidArgument for a number that no codec has.
Result<CodecKind> codec_of(uint8_t number);
std::string_view name_of(CodecKind kind);

}  // namespace streamvec
