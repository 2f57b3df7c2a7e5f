// The safetensors format: 8 bytes of header length (little-endian), a JSON header naming each tensor's dtype, shape and
// place, then the values without gaps. https://huggingface.co/docs/safetensors describes it; any program that reads it
// reads ours. Rows are written without the padding they have in memory.
// A reader trusts no number in the file: lengths, shapes and places are checked against each other and against the
// file's size before memory is taken, and every error names the file and a byte offset.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/format/stored_table.h"

namespace streamvec {

struct NamedMatrix {
  std::string name;
  MatrixView<const float> values;  // borrowed
  RowChange change = {};           // what is written of each row; none: the row
};

// A stretch of a file with its XXH3 sum. The parts of a safetensors file are its header (named "") and each tensor.
struct FilePart {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
  uint64_t checksum = 0;
};

// Writes a whole safetensors file to a fresh `file`, tensors as F32 in the order given, and returns its parts; the
// caller closes or commits. Memory: one small buffer. REQUIRES: the names differ.
Result<std::vector<FilePart>> write_safetensors(FileWriter& file, const std::map<std::string, std::string>& metadata,
                                                std::span<const NamedMatrix> tensors);

struct TensorInfo {
  std::string name;
  std::string dtype;           // "F32", "BF16", ...
  std::vector<int64_t> shape;  // nothing here is negative, and the product fits the file
  int64_t offset = 0;          // from the beginning of the file
  int64_t bytes = 0;
};

class SafetensorsReader {
 public:
  static constexpr int64_t kHeaderBytesMax = int64_t{16} << 20;

  // Checks the header and that the tensors cover the rest of the file exactly. kDataLoss when they do not.
  static Result<SafetensorsReader> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t header_bytes() const { return header_bytes_; }               // with the 8 bytes of its length
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in the order of their places
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorInfo* find(std::string_view name) const;  // nullptr when it is not there
  Result<uint64_t> header_checksum() const { return file_.checksum(0, header_bytes_); }

  // The values of a tensor of two dimensions as a table with room for rows_max rows; it may have no rows. F32 as they
  // are; F64, F16 and BF16 are turned into F32. kInvalidArgument for another dtype or shape.
  Result<Matrix> read(const TensorInfo& tensor, int64_t rows_max, TableReading& reading) const;

 private:
  explicit SafetensorsReader(FileReader file) : file_(std::move(file)) {}
  Status parse(std::string_view json);

  FileReader file_;
  int64_t header_bytes_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace streamvec
