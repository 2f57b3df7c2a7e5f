// Rows on their way into a payload and out of it, one after the other, so that each is passed over once, in the
// nearest cache. A codec whose rows depend on each other (Strom's) has them all collected first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/sync/codec.h"

namespace streamvec {

// Writes payloads. Keeps its memory from one to the next. Not thread-safe.
class RowWriter {
 public:
  RowWriter(CodecKind kind, int64_t dim);

  // A new payload of at most rows_max rows; `payload` is empty, and is used until finish().
  void begin(int64_t rows_max, std::string& payload);
  // Where the next row is to be written. It counts once add() is called.
  float* next() { return rows_.row(by_row_ == nullptr ? count_ : 0); }
  // `sent(index, row)` is called once for every row, here or in finish(), with the row as it will be read.
  template <typename Sent>
  void add(Sent&& sent) {
    const int64_t index = count_++;
    if (by_row_ == nullptr) return;
    by_row_->encode_row(next(), static_cast<int32_t>(dim_), payload_->data() + row_bytes_ * static_cast<size_t>(index));
    sent(index, next());
  }
  template <typename Sent>
  void finish(Sent&& sent) {
    encode_rest();
    for (int64_t i = 0; by_row_ == nullptr && i < count_; ++i) sent(i, rows_.row(i));
  }
  int64_t count() const { return count_; }
  // Whether payloads of parts of the rows, one after the other, are the payload of all.
  bool by_row() const { return by_row_ != nullptr; }

 private:
  void encode_rest();

  const int64_t dim_;
  const std::unique_ptr<Codec> codec_;
  const RowCodec* const by_row_;
  const size_t row_bytes_;
  std::string* payload_ = nullptr;
  int64_t count_ = 0;
  RowBuffer rows_;
};

// Reads a payload. Not thread-safe.
class RowReader {
 public:
  explicit RowReader(int64_t dim) : dim_(dim) {}

  // kInvalidArgument when the payload is not that of so many rows. The payload is used until the next begin().
  Status begin(CodecKind kind, std::string_view payload, int64_t rows);
  // Whether rows can be read without those before them: then several readers may share a payload.
  bool by_row() const { return by_row_ != nullptr; }
  // The row, until the next call; may be changed.
  float* row(int64_t index) {
    if (by_row_ == nullptr) return rows_.row(index);
    by_row_->decode_row(payload_.data() + row_bytes_ * static_cast<size_t>(index), static_cast<int32_t>(dim_),
                        rows_.row(0));
    return rows_.row(0);
  }

 private:
  const int64_t dim_;
  std::unique_ptr<Codec> codec_;
  const RowCodec* by_row_ = nullptr;
  size_t row_bytes_ = 0;
  std::string_view payload_;
  RowBuffer rows_;
};

}  // namespace streamvec
