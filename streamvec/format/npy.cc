#include "streamvec/format/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "streamvec/format/number_text.h"

namespace streamvec {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr int64_t kHeaderBytesMax = 64 << 10;

Status damaged(const FileReader& file, int64_t offset, std::string_view what) {
  return error(Code::kDataLoss, file.path(), ": byte ", offset, ": ", what, "; write the file again");
}

// What follows `'name':` in the header, a Python dictionary of three entries.
std::string_view value_of(std::string_view header, std::string_view name) {
  const std::string key = "'" + std::string(name) + "':";
  const size_t at = header.find(key);
  if (at == header.npos) return {};
  std::string_view value = header.substr(at + key.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

std::optional<FloatKind> parse_descr(std::string_view value) {
  if (value.starts_with("'<f4'")) return FloatKind::kF32;
  if (value.starts_with("'<f8'")) return FloatKind::kF64;
  if (value.starts_with("'<f2'")) return FloatKind::kF16;
  return std::nullopt;
}

// "(rows, cols)" and nothing else.
bool parse_shape(std::string_view value, StoredTable& table) {
  const size_t comma = value.find(','), end = value.find(')');
  if (!value.starts_with('(') || comma == value.npos || end == value.npos || comma > end) return false;
  std::string_view second = value.substr(comma + 1, end - comma - 1);
  while (second.starts_with(' ')) second.remove_prefix(1);
  const auto rows = parse_whole(value.substr(1, comma - 1)), cols = parse_whole(second);
  if (!rows || !cols) return false;
  table.rows = *rows;
  table.cols = *cols;
  return true;
}

Result<std::string> read_header(const FileReader& file, StoredTable& table) {
  char start[12] = {};
  STREAMVEC_RETURN_IF_ERROR(file.read(0, start, 10));
  if (std::string_view(start, 6) != kNpyMagic) return damaged(file, 0, "this is not the beginning of a .npy file");
  const int major = start[6];
  if (major < 1 || major > 3) return damaged(file, 6, "this version of the format is not known");
  if (major > 1) STREAMVEC_RETURN_IF_ERROR(file.read(10, start + 10, 2));
  uint32_t length = 0;
  std::memcpy(&length, start + 8, major == 1 ? 2 : 4);
  table.offset = (major == 1 ? 10 : 12) + int64_t{length};
  if (length > kHeaderBytesMax || table.offset > file.size())
    return damaged(file, 8, "the header does not fit the file");
  std::string header(length, '\0');
  STREAMVEC_RETURN_IF_ERROR(file.read(table.offset - length, header.data(), length));
  return header;
}

}  // namespace

Result<uint64_t> write_npy(MatrixView<const float> table, FileWriter& file) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(table.rows) + ", " +
                       std::to_string(table.cols) + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');  // values start at a multiple of 64
  header += '\n';
  std::string start = std::string(kNpyMagic) + std::string("\x01\x00", 2);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);
  STREAMVEC_RETURN_IF_ERROR(file.write(start + header));
  return write_rows(file, table);
}

Result<StoredTable> find_npy_table(const FileReader& file) {
  StoredTable table;
  STREAMVEC_ASSIGN_OR_RETURN(const std::string header, read_header(file, table));
  const auto refuse = [&](std::string_view what, std::string_view try_this) {
    return error(Code::kInvalidArgument, file.path(), " ", what, "; in numpy, save ", try_this);
  };
  const auto kind = parse_descr(value_of(header, "descr"));
  if (!kind) return refuse("does not hold little-endian floats", "array.astype('float32')");
  table.kind = *kind;
  if (!value_of(header, "fortran_order").starts_with("False"))
    return refuse("is not in C order", "numpy.ascontiguousarray(array)");
  if (!parse_shape(value_of(header, "shape"), table) || table.rows == 0 || table.cols == 0)
    return refuse("is not an array of two dimensions with something in it", "a row per word");
  int64_t bytes = 0;
  if (__builtin_mul_overflow(table.rows, table.cols, &bytes) ||
      __builtin_mul_overflow(bytes, float_bytes(table.kind), &bytes) || bytes > file.size() - table.offset)
    return damaged(file, file.size(), "the file ends before the array that its header describes");
  if (bytes < file.size() - table.offset) return damaged(file, table.offset + bytes, "bytes follow the array");
  return table;
}

}  // namespace streamvec
