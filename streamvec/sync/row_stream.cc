#include "streamvec/sync/row_stream.h"

#include "streamvec/kernel/row_ops.h"

namespace streamvec {

void RowWriter::begin(CodecKind kind, int64_t rows_max, std::string& payload) {
  if (codec_ == nullptr || codec_->kind() != kind) {
    codec_ = make_codec(kind);
    by_row_ = codec_->by_row();
    row_bytes_ = by_row_ == nullptr ? 0 : by_row_->row_bytes(dim_);
  }
  payload_ = &payload;
  count_ = 0;
  known_.clear();
  rows_.reserve_zeroed(by_row_ == nullptr ? rows_max : 1, dim_);
  payload.resize(row_bytes_ * static_cast<size_t>(rows_max));
}

ChangeSquares RowWriter::change(const float* now, const float* known) {
  const auto dim = static_cast<int32_t>(dim_);
  if (by_row_ == nullptr) return take_change(now, known, dim, rows_.row(count_));
  return by_row_->encode_change(now, known, dim, rows_.row(0), bytes_of(count_));
}

void RowWriter::add_and_know(float* known) {
  if (by_row_ != nullptr)
    by_row_->add_row(bytes_of(count_), 1, static_cast<int32_t>(dim_), rows_.row(0), known);
  else
    known_.push_back(known);
  ++count_;
}

void RowWriter::finish() {
  payload_->resize(row_bytes_ * static_cast<size_t>(count_));
  if (by_row_ != nullptr) return;
  MatrixView<float> rows = rows_.view();
  rows.rows = count_;
  codec_->encode(rows, *payload_);
  for (size_t i = 0; i < known_.size(); ++i)
    add_scaled(rows_.row(static_cast<int64_t>(i)), 1, static_cast<int32_t>(dim_), known_[i]);
}

Status RowReader::begin(CodecKind kind, std::string_view payload, int64_t rows) {
  if (codec_ == nullptr || codec_->kind() != kind) {
    codec_ = make_codec(kind);
    by_row_ = codec_->by_row();
    row_bytes_ = by_row_ == nullptr ? 0 : by_row_->row_bytes(dim_);
  }
  payload_ = payload;
  if (by_row_ == nullptr) return codec_->decode(payload, rows_.reserve_zeroed(rows, dim_));
  if (payload.size() == row_bytes_ * static_cast<size_t>(rows)) {
    rows_.reserve_zeroed(1, dim_);
    return {};
  }
  return error(Code::kInvalidArgument, "a payload of ", payload.size(), " bytes is not ", rows, " ", name_of(kind),
               " rows of ", dim_, " values; the sender runs another version or has another --dim");
}

void RowReader::add(int64_t index, float scale, float* to) {
  const auto dim = static_cast<int32_t>(dim_);
  if (by_row_ == nullptr) return add_scaled(rows_.row(index), scale, dim, to);
  by_row_->add_row(bytes_of(index), scale, dim, rows_.row(0), to);
}

}  // namespace streamvec
