// Tables as files hold them: rows of little-endian numbers without padding, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

enum class FloatKind { kF16, kBf16, kF32, kF64 };

int64_t float_bytes(FloatKind kind);  // bytes of one value

// Where in a file a table stands.
struct StoredTable {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  FloatKind kind = FloatKind::kF32;
};

// What was met while reading a table's values.
struct TableReading {
  uint64_t checksum = 0;          // XXH3 of the bytes as stored
  int64_t not_finite = 0;         // how many NaN or infinite values
  int64_t not_finite_offset = 0;  // the byte offset of the first of them
};

// Reads the table into float32 rows with room for rows_max of them; F64 is rounded to nearest. Takes memory for the
// table and a small buffer, and none before the table is known to lie within the file (kDataLoss).
// REQUIRES: rows > 0 and cols > 0.
Result<Matrix> read_table(const FileReader& file, const StoredTable& table, int64_t rows_max, TableReading& reading);

// What a row becomes on its way to a file.
using RowChange = std::function<void(std::span<float> row)>;
// Writes the rows as F32 without their padding and returns the XXH3 sum of the bytes. `change`: none, they are written
// as they are.
Result<uint64_t> write_rows(FileWriter& file, MatrixView<const float> rows, const RowChange& change = {});

// Turns `count` stored values (any alignment) into float32.
void decode_floats(FloatKind kind, const char* bytes, int64_t count, float* out);

int64_t count_not_finite(const float* values, int64_t count);  // how many are NaN or infinite
int64_t first_not_finite(const float* values, int64_t count);  // the index of the first of them, or `count`

}  // namespace streamvec
