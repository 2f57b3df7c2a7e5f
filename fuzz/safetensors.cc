// Tables in files (format/safetensors.h, format/npy.h): every tensor lies within the file and behind the one before,
// and what can be read has the rows and columns that the header says.
#include "streamvec/format/safetensors.h"

#include <cmath>

#include "fuzz/fuzz.h"
#include "streamvec/format/npy.h"

namespace streamvec {
namespace {

void check_tensors(const MemoryFile& file, int64_t size) {
  const Result<SafetensorsReader> reader = SafetensorsReader::open(file.path());
  if (!reader.ok()) return;
  int64_t end = reader->header_bytes();
  for (const TensorInfo& tensor : reader->tensors()) {
    STREAMVEC_CHECK(tensor.offset >= end && tensor.bytes >= 0 && tensor.bytes <= size - tensor.offset);
    end = tensor.offset + tensor.bytes;
    STREAMVEC_CHECK(reader->find(tensor.name) != nullptr);
    TableReading reading;
    const Result<Matrix> table = reader->read(tensor, 0, reading);
    if (table.ok()) STREAMVEC_CHECK(table->rows() == tensor.shape[0] && table->cols() == tensor.shape[1]);
  }
  STREAMVEC_CHECK_EQ(end, size);
}

void check_npy(const MemoryFile& file, int64_t size) {
  const Result<FileReader> reader = FileReader::open(file.path());
  STREAMVEC_CHECK(reader.ok());
  const Result<StoredTable> table = find_npy_table(*reader);
  if (!table.ok()) return;
  STREAMVEC_CHECK_EQ(table->offset + table->rows * table->cols * float_bytes(table->kind), size);
  TableReading reading;
  if (table->rows > 0 && table->cols > 0) STREAMVEC_CHECK(read_table(*reader, *table, 0, reading).ok());
}

}  // namespace

FuzzStart fuzz_start() {
  Matrix table = Matrix::make(3, 5).value();
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t column = 0; column < 5; ++column) table.row(row)[column] = static_cast<float>(row) / 3;
  const MemoryFile safetensors, npy;
  FileWriter writer = FileWriter::create(safetensors.path()).value();
  const NamedMatrix tensors[] = {{"input", table.view()}, {"output", table.view()}};
  STREAMVEC_CHECK(write_safetensors(writer, {{"format", "x"}}, tensors).ok() && writer.close().ok());
  FileWriter npy_writer = FileWriter::create(npy.path()).value();
  STREAMVEC_CHECK(write_npy(table.view(), npy_writer).ok() && npy_writer.close().ok());
  return {
      .seeds =
          {safetensors.bytes(), npy.bytes(),
           std::string("\x50\0\0\0\0\0\0\0", 8) +
               "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}                           abcd"},
      .words = {"\"dtype\":\"F16\"", "\"F64\"", "\"shape\":[", "\"data_offsets\":[", "__metadata__",
                "9223372036854775807", "4294967296", "'descr': '<f2'", "'fortran_order': True", "(0, 5)", "-1"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  check_tensors(file, static_cast<int64_t>(size));
  check_npy(file, static_cast<int64_t>(size));
  return 0;
}
