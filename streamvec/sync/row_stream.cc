#include "streamvec/sync/row_stream.h"

namespace streamvec {

RowWriter::RowWriter(CodecKind kind, int64_t dim)
    : dim_(dim),
      codec_(make_codec(kind)),
      by_row_(codec_->by_row()),
      row_bytes_(by_row_ == nullptr ? 0 : by_row_->row_bytes(dim)) {}

void RowWriter::begin(int64_t rows_max, std::string& payload) {
  payload_ = &payload;
  count_ = 0;
  rows_.reserve_zeroed(by_row_ == nullptr ? rows_max : 1, dim_);
  payload.resize(row_bytes_ * static_cast<size_t>(rows_max));
}

void RowWriter::encode_rest() {
  payload_->resize(row_bytes_ * static_cast<size_t>(count_));
  if (by_row_ != nullptr) return;
  MatrixView<float> rows = rows_.view();
  rows.rows = count_;
  codec_->encode(rows, *payload_);
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

}  // namespace streamvec
