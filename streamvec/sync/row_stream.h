// Rows on their way into a payload and out of it, one after the other, so that each is passed over once, in the
// nearest cache. A codec whose rows depend on each other (Strom's) has them all collected first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/sync/codec.h"

namespace streamvec {

// The codec of a payload, made anew only where it is another than that of the last one.
struct PayloadCodec {
  void choose(CodecKind kind, int64_t dim);

  std::unique_ptr<Codec> codec;
  const RowCodec* by_row = nullptr;  // nullptr: rows depend on each other
  size_t row_bytes = 0;              // by row
};

// Writes payloads. Keeps its memory from one to the next. Not thread-safe.
class RowWriter {
 public:
  explicit RowWriter(int64_t dim) : dim_(dim) {}

  // A new payload of at most rows_max rows; `payload` is empty, and is used until finish().
  void begin(CodecKind kind, int64_t rows_max, std::string& payload);
  // The next row is now - known. It counts once add() is called.
  ChangeSquares change(const float* now, const float* known);
  void add() { ++count_; }
  // Likewise, and adds the row as it will be read to `known`, here or in finish().
  void add_and_know(float* known);
  void finish();
  int64_t count() const { return count_; }

 private:
  char* bytes_of(int64_t index) { return payload_->data() + chosen_.row_bytes * static_cast<size_t>(index); }

  const int64_t dim_;
  PayloadCodec chosen_;
  std::string* payload_ = nullptr;
  int64_t count_ = 0;
  RowBuffer rows_;
  std::vector<float*> known_;  // by row that was added, of a codec that has them all collected first
};

// Reads a payload. Not thread-safe.
class RowReader {
 public:
  explicit RowReader(int64_t dim) : dim_(dim) {}

  // kInvalidArgument when the payload is not that of so many rows. The payload is used until the next begin().
  Status begin(CodecKind kind, std::string_view payload, int64_t rows);
  // to += scale * the row.
  void add(int64_t index, float scale, float* to);
  // The row, until the next call; may be changed.
  float* row(int64_t index) {
    if (chosen_.by_row == nullptr) return rows_.row(index);
    chosen_.by_row->decode_row(bytes_of(index), static_cast<int32_t>(dim_), rows_.row(0));
    return rows_.row(0);
  }

 private:
  const char* bytes_of(int64_t index) const { return payload_.data() + chosen_.row_bytes * static_cast<size_t>(index); }

  const int64_t dim_;
  PayloadCodec chosen_;
  std::string_view payload_;
  RowBuffer rows_;
};

}  // namespace streamvec
