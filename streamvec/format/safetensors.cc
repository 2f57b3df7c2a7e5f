#include "streamvec/format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kColsMax = int64_t{1} << 32;  // of a table without rows nothing else bounds them

struct Dtype {
  const char* name;
  int64_t bytes;
};
constexpr Dtype kDtypes[] = {{"F32", 4}, {"F64", 8}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
                             {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                             {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

int64_t dtype_bytes(std::string_view name) {
  for (const Dtype& dtype : kDtypes)
    if (name == dtype.name) return dtype.bytes;
  return 0;
}

std::optional<FloatKind> float_kind(std::string_view dtype) {
  if (dtype == "F32") return FloatKind::kF32;
  if (dtype == "F64") return FloatKind::kF64;
  if (dtype == "F16") return FloatKind::kF16;
  if (dtype == "BF16") return FloatKind::kBf16;
  return std::nullopt;
}

// The header with its length before it, padded with spaces so that the values start at a multiple of 8.
std::string encode_header(const std::map<std::string, std::string>& metadata, std::span<const NamedMatrix> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t place = 0;
  for (const NamedMatrix& tensor : tensors) {
    const int64_t end = place + tensor.values.rows * tensor.values.cols * static_cast<int64_t>(sizeof(float));
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", {tensor.values.rows, tensor.values.cols}}, {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + text;
}

// A list of whole numbers none of which is negative; nothing otherwise.
std::optional<std::vector<int64_t>> whole_numbers(const json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json& item : list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{1} << 62) return std::nullopt;
    numbers.push_back(item.get<int64_t>());
  }
  return numbers;
}

// The bytes that a shape needs, or nothing when they cannot be counted.
std::optional<int64_t> bytes_of(const std::vector<int64_t>& shape, int64_t value_bytes) {
  int64_t bytes = value_bytes;
  for (const int64_t length : shape)
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  return bytes;
}

Status damaged(const std::string& path, int64_t offset, const std::string& what) {
  return error(Code::kDataLoss, path, ": byte ", offset, ": ", what, "; fetch or write the file again");
}

// One entry of the header. `data` is where in the file the values begin.
Result<TensorInfo> parse_tensor(const std::string& path, const std::string& name, const json& entry, int64_t data) {
  const auto bad = [&](const std::string& what) {
    return damaged(path, kLengthBytes, "the header's entry of tensor '" + name + "' " + what);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    return bad("lacks dtype, shape or data_offsets");
  const auto shape = whole_numbers(entry["shape"]);
  const auto places = whole_numbers(entry["data_offsets"]);
  if (!entry["dtype"].is_string() || !shape || !places || places->size() != 2 || (*places)[0] > (*places)[1])
    return bad("has a dtype, shape or data_offsets of the wrong kind");
  TensorInfo tensor{name, entry["dtype"], *shape, data + (*places)[0], (*places)[1] - (*places)[0]};
  const int64_t value_bytes = dtype_bytes(tensor.dtype);
  if (value_bytes == 0) return bad("has the unknown dtype '" + tensor.dtype + "'");
  if (bytes_of(tensor.shape, value_bytes) != tensor.bytes) return bad("has a shape that does not fit its data_offsets");
  return tensor;
}

}  // namespace

Result<std::vector<FilePart>> write_safetensors(FileWriter& file, const std::map<std::string, std::string>& metadata,
                                                std::span<const NamedMatrix> tensors) {
  const std::string header = encode_header(metadata, tensors);
  STREAMVEC_RETURN_IF_ERROR(file.write(header));
  Checksum sum;
  sum.update(header);
  std::vector<FilePart> parts = {{"", 0, file.size(), sum.value()}};
  for (const NamedMatrix& tensor : tensors) {
    FilePart part{tensor.name, file.size(), 0, 0};
    STREAMVEC_ASSIGN_OR_RETURN(part.checksum, write_rows(file, tensor.values, tensor.change));
    part.bytes = file.size() - part.offset;
    parts.push_back(part);
  }
  return parts;
}

Result<SafetensorsReader> SafetensorsReader::open(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(FileReader file, FileReader::open(path));
  SafetensorsReader reader(std::move(file));
  const int64_t size = reader.file_.size();
  if (size < kLengthBytes) return damaged(path, size, "the file ends before the length of its header");
  uint64_t length = 0;
  STREAMVEC_RETURN_IF_ERROR(reader.file_.read(0, reinterpret_cast<char*>(&length), kLengthBytes));
  if (length > static_cast<uint64_t>(std::min(kHeaderBytesMax, size - kLengthBytes)))
    return damaged(path, 0,
                   "a header of " + std::to_string(length) + " bytes does not fit a file of " + std::to_string(size) +
                       " (at most " + std::to_string(kHeaderBytesMax) + " are read)");
  std::string header(length, '\0');
  STREAMVEC_RETURN_IF_ERROR(reader.file_.read(kLengthBytes, header.data(), static_cast<int64_t>(length)));
  reader.header_bytes_ = kLengthBytes + static_cast<int64_t>(length);
  STREAMVEC_RETURN_IF_ERROR(reader.parse(header));
  return reader;
}

Status SafetensorsReader::parse(std::string_view text) {
  json header;
  try {
    header = json::parse(text);
  } catch (const json::parse_error& failure) {
    return damaged(path(), kLengthBytes + static_cast<int64_t>(failure.byte), "the header is not JSON");
  } catch (const json::exception& failure) {  // a number beyond every type
    return damaged(path(), kLengthBytes, std::string("the header cannot be read: ") + failure.what());
  }
  if (!header.is_object()) return damaged(path(), kLengthBytes, "the header is not a JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return damaged(path(), kLengthBytes, "__metadata__ is not a JSON object");
      for (const auto& [key, value] : entry.items())
        if (value.is_string()) metadata_[key] = value;
      continue;
    }
    STREAMVEC_ASSIGN_OR_RETURN(TensorInfo tensor, parse_tensor(path(), name, entry, header_bytes_));
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
  });
  int64_t end = header_bytes_;
  for (const TensorInfo& tensor : tensors_) {
    if (tensor.offset != end)
      return damaged(path(), tensor.offset, "tensor '" + tensor.name + "' should begin at byte " + std::to_string(end));
    end += tensor.bytes;
  }
  if (end > file_.size())
    return damaged(path(), file_.size(), "the file ends here; its header wants " + std::to_string(end) + " bytes");
  if (end < file_.size()) return damaged(path(), end, "bytes follow the last tensor");
  return {};
}

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  for (const TensorInfo& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Result<Matrix> SafetensorsReader::read(const TensorInfo& tensor, int64_t rows_max, TableReading& reading) const {
  const auto kind = float_kind(tensor.dtype);
  if (!kind || tensor.shape.size() != 2 || tensor.shape[1] < 1 || tensor.shape[1] > kColsMax)
    return error(Code::kInvalidArgument, path(), ": tensor '", tensor.name, "' of dtype ", tensor.dtype, " and ",
                 tensor.shape.size(),
                 " dimensions is not a table of vectors; it must be F32, F64, F16 or BF16 and have two");
  if (tensor.shape[0] == 0) {
    reading.checksum = Checksum().value();
    return Matrix::make(0, tensor.shape[1], rows_max);
  }
  return read_table(file_, {tensor.offset, tensor.shape[0], tensor.shape[1], *kind}, rows_max, reading);
}

}  // namespace streamvec
