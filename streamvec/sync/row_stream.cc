#include "streamvec/sync/row_stream.h"

#include "streamvec/kernel/row_ops.h"

namespace streamvec {

void PayloadCodec::choose(CodecKind kind, int64_t dim) {
  if (codec != nullptr && codec->kind() == kind) return;
  codec = make_codec(kind);
  by_row = codec->by_row();
  row_bytes = by_row == nullptr ? 0 : by_row->row_bytes(dim);
}

void RowWriter::begin(CodecKind kind, int64_t rows_max, std::string& payload) {
  chosen_.choose(kind, dim_);
  payload_ = &payload;
  count_ = 0;
  known_.clear();
  rows_.reserve_zeroed(chosen_.by_row == nullptr ? rows_max : 1, dim_);
  payload.resize(chosen_.row_bytes * static_cast<size_t>(rows_max));
}

ChangeSquares RowWriter::change(const float* now, const float* known) {
  const auto dim = static_cast<int32_t>(dim_);
  if (chosen_.by_row == nullptr) return take_change(now, known, dim, rows_.row(count_));
  return chosen_.by_row->encode_change(now, known, dim, rows_.row(0), bytes_of(count_));
}

void RowWriter::add_and_know(float* known) {
  if (chosen_.by_row != nullptr)
    chosen_.by_row->add_row(bytes_of(count_), 1, static_cast<int32_t>(dim_), rows_.row(0), known);
  else
    known_.push_back(known);
  ++count_;
}

void RowWriter::finish() {
  payload_->resize(chosen_.row_bytes * static_cast<size_t>(count_));
  if (chosen_.by_row != nullptr) return;
  MatrixView<float> rows = rows_.view();
  rows.rows = count_;
  chosen_.codec->encode(rows, *payload_);
  for (size_t i = 0; i < known_.size(); ++i)
    add_scaled(rows_.row(static_cast<int64_t>(i)), 1, static_cast<int32_t>(dim_), known_[i]);
}

Status RowReader::begin(CodecKind kind, std::string_view payload, int64_t rows) {
  chosen_.choose(kind, dim_);
  payload_ = payload;
  if (chosen_.by_row == nullptr) return chosen_.codec->decode(payload, rows_.reserve_zeroed(rows, dim_));
  if (payload.size() == chosen_.row_bytes * static_cast<size_t>(rows)) {
    rows_.reserve_zeroed(1, dim_);
    return {};
  }
  return error(Code::kInvalidArgument, "a payload of ", payload.size(), " bytes is not ", rows, " ", name_of(kind),
               " rows of ", dim_, " values; the sender runs another version or has another --dim");
}

void RowReader::add(int64_t index, float scale, float* to) {
  const auto dim = static_cast<int32_t>(dim_);
  if (chosen_.by_row == nullptr) return add_scaled(rows_.row(index), scale, dim, to);
  chosen_.by_row->add_row(bytes_of(index), scale, dim, rows_.row(0), to);
}

}  // namespace streamvec
