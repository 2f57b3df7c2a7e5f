#include "streamvec/format/stored_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are copied as they are");

template <typename T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// IEEE 754 binary16: exponent 31 is NaN or infinity, exponent 0 counts in steps of 2^-24.
float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Adds what one run of values, stored from `offset` on, has to report.
void note_values(const float* values, int64_t count, int64_t offset, int64_t width, TableReading& reading) {
  const int64_t bad = count_not_finite(values, count);
  if (bad > 0 && reading.not_finite == 0) reading.not_finite_offset = offset + width * first_not_finite(values, count);
  reading.not_finite += bad;
}

bool is_finite(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

}  // namespace

int64_t float_bytes(FloatKind kind) {
  return kind == FloatKind::kF64 ? 8 : kind == FloatKind::kF32 ? 4 : 2;
}

void decode_floats(FloatKind kind, const char* bytes, int64_t count, float* out) {
  switch (kind) {
    case FloatKind::kF32:
      std::memcpy(out, bytes, static_cast<size_t>(count) * sizeof(float));
      return;
    case FloatKind::kF64:
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(load<double>(bytes + 8 * i));
      return;
    case FloatKind::kF16:
      for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(load<uint16_t>(bytes + 2 * i));
      return;
    case FloatKind::kBf16:
      for (int64_t i = 0; i < count; ++i)
        out[i] = std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(bytes + 2 * i)) << 16);
      return;
  }
}

int64_t count_not_finite(const float* values, int64_t count) {
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) bad += is_finite(values[i]) ? 0 : 1;
  return bad;
}

int64_t first_not_finite(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!is_finite(values[i])) return i;
  return count;
}

Result<Matrix> read_table(const FileReader& file, const StoredTable& table, int64_t rows_max, TableReading& reading) {
  STREAMVEC_CHECK(table.rows > 0 && table.cols > 0);
  const int64_t width = float_bytes(table.kind);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(table.rows, table.cols, &bytes) || __builtin_mul_overflow(bytes, width, &bytes) ||
      bytes > file.size() - table.offset)
    return error(Code::kDataLoss, file.path(), ": a table of ", table.rows, " rows of ", table.cols, " values at byte ",
                 table.offset, " does not fit a file of ", file.size(),
                 " bytes; it was cut short or its header is damaged");
  STREAMVEC_ASSIGN_OR_RETURN(Matrix matrix, Matrix::make(table.rows, table.cols, rows_max));
  constexpr int64_t kValuesMax = int64_t{1} << 18;  // of one piece: 1 MB of F32
  std::string buffer(static_cast<size_t>(std::min(kValuesMax * width, bytes)), '\0');
  Checksum sum;
  int64_t row = 0, col = 0;
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min<int64_t>(static_cast<int64_t>(buffer.size()), bytes - done);
    STREAMVEC_RETURN_IF_ERROR(file.read(table.offset + done, buffer.data(), piece));
    sum.update({buffer.data(), static_cast<size_t>(piece)});
    for (int64_t at = 0; at < piece;) {
      const int64_t run = std::min(table.cols - col, (piece - at) / width);
      float* out = matrix.row(row) + col;
      decode_floats(table.kind, buffer.data() + at, run, out);
      note_values(out, run, table.offset + done + at, width, reading);
      at += run * width;
      col += run;
      if (col == table.cols) ++row, col = 0;
    }
    done += piece;
  }
  reading.checksum = sum.value();
  return matrix;
}

Result<uint64_t> write_rows(FileWriter& file, MatrixView<const float> rows, const RowChange& change) {
  Checksum sum;
  // The row is copied once and summed from the copy: somebody may be training on it.
  std::vector<float> row(static_cast<size_t>(rows.cols));
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  for (int64_t i = 0; i < rows.rows; ++i) {
    std::copy_n(rows.row(i), rows.cols, row.data());
    if (change) change(row);
    sum.update(bytes);
    STREAMVEC_RETURN_IF_ERROR(file.write(bytes));
  }
  return sum.value();
}

}  // namespace streamvec
