// How changes of rows are put into bytes. A lossy codec hands back what it really sent: the sender keeps the difference
// and sends it later (error feedback; Seide et al. 2014), so that nothing is lost, only late.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/row_codec.h"

namespace streamvec {

// The numbers stand in messages: never reuse one.
enum class CodecKind : uint8_t {
  kFp32 = 0,
  kFp16 = 1,     // half precision, each row at its own power of two
  kOneBit = 2,   // a sign a value and two levels a row (Seide et al. 2014): dim / 8 + 4 bytes
  kStrom = 3,    // of each message the few values past a threshold, as +- that (Strom 2015); places as Rice-coded gaps
  kFourBit = 4,  // -7 to 7 sevenths of a row's largest magnitude: dim / 2 + 2 bytes
};

class RowCodec;

// Not thread-safe: keeps scratch memory.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecKind kind() const = 0;
  // Appends the rows to `out` and leaves in `rows` what decode() will make of them, bit for bit.
  virtual void encode(MatrixView<float> rows, std::string& out) = 0;
  // Fills `rows`. kInvalidArgument when the payload is not that of so many rows of this length. Never reads past it.
  virtual Status decode(std::string_view payload, MatrixView<float> rows) const = 0;
  // A codec that can do one row at a time; nullptr where a row's bytes depend on the others'.
  virtual const RowCodec* by_row() const { return nullptr; }
};

// Rows take equal numbers of bytes, one after the other. Thread-safe. Rows are padded (kernel/row_codec.h).
class RowCodec : public Codec {
 public:
  virtual size_t row_bytes(int64_t dim) const = 0;
  // As encode(), of one row, to row_bytes() at `out`.
  virtual void encode_row(float* row, int32_t dim, char* out) const = 0;
  virtual void decode_row(const char* in, int32_t dim, float* row) const = 0;
  // encode_row() of live - known; `change` has room for a row.
  virtual ChangeSquares encode_change(const float* live, const float* known, int32_t dim, float* change,
                                      char* out) const;
  // to += scale * what decode_row() makes of it; `row` has room for one.
  virtual void add_row(const char* in, float scale, int32_t dim, float* row, float* to) const;

  void encode(MatrixView<float> rows, std::string& out) final;
  Status decode(std::string_view payload, MatrixView<float> rows) const final;
  const RowCodec* by_row() const final { return this; }
};

std::unique_ptr<Codec> make_codec(CodecKind kind);
// Rows of a payload are written and read without each other: make_codec(kind)->by_row() is there.
inline bool is_by_row(CodecKind kind) {
  return kind != CodecKind::kStrom;
}
// It takes several messages to say a change: each leaves out much of it.
inline bool is_coarse(CodecKind kind) {
  return kind == CodecKind::kOneBit || kind == CodecKind::kStrom;
}
// "fp32", "fp16", "onebit", "strom", "fourbit", or "auto": what rows of `dim` values learn best with for the bytes.
// Short ones need more bits a value, and have few bytes anyway (docs/BENCHMARKS.md, Short rows). kInvalidArgument for
// others, with the list.
Result<CodecKind> parse_codec(std::string_view name, int64_t dim);
// kInvalidArgument for a number that no codec has.
Result<CodecKind> codec_of(uint8_t number);
std::string_view name_of(CodecKind kind);

}  // namespace streamvec
