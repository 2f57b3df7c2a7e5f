#include "streamvec/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "streamvec/format/test_support.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  // A file as the format's own page describes it: length, header, values.
  std::string write(const std::string& header, const std::string& data) {
    const uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), 8);
    write_bytes(path_, bytes + header + data);
    return path_;
  }
  Status open_error(const std::string& header, const std::string& data) {
    return SafetensorsReader::open(write(header, data)).status();
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.path("t.safetensors");
};

TEST_F(SafetensorsTest, WhatIsWrittenIsReadBackBitForBit) {
  Matrix a = Matrix::make(1000, 37).value(), b = Matrix::make(3, 1).value();
  fill_with_any_floats(a, 1);
  fill_with_any_floats(b, 2);
  auto file = FileWriter::create(path_);
  ASSERT_TRUE(file.ok());
  const NamedMatrix tensors[] = {{"z.first", a.view()}, {"a second \"name\" \xed\x95\x9c", b.view()}};
  const auto parts = write_safetensors(*file, {{"model", "sgns"}}, tensors);
  ASSERT_TRUE(parts.ok() && file->close().ok());

  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(reader->header_bytes() % 8, 0);
  EXPECT_EQ(reader->metadata().at("model"), "sgns");
  ASSERT_EQ(reader->tensors().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const TensorInfo* tensor = reader->find(tensors[i].name);
    ASSERT_NE(tensor, nullptr);
    TableReading reading;
    auto table = reader->read(*tensor, 0, reading);
    ASSERT_TRUE(table.ok());
    expect_same_table(table->view(), tensors[i].values);
    const FilePart& part = (*parts)[static_cast<size_t>(i) + 1];
    EXPECT_EQ(part.offset, tensor->offset);
    EXPECT_EQ(part.checksum, reading.checksum);
    EXPECT_EQ(reading.not_finite, 0);
  }
  EXPECT_EQ(reader->header_checksum().value(), (*parts)[0].checksum);
}

TEST_F(SafetensorsTest, RowsHaveNoPaddingInTheFileAndZerosInMemory) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  write(R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", data);
  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok());
  TableReading reading;
  const Matrix table = reader->read(reader->tensors()[0], 5, reading).value();
  EXPECT_EQ(table.row(1)[0], 4);
  EXPECT_EQ(table.row(1)[2], 6);
  EXPECT_EQ(table.row(0)[3], 0);
  EXPECT_EQ(table.rows_max(), 5);
}

TEST_F(SafetensorsTest, OtherFloatTypesBecomeFloat32) {
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff};  // 1, -2, 2^-24, 65504
  const uint16_t brains[] = {0x3f80, 0xc000};                  // 1, -2
  const double doubles[] = {0.1, -3e10};
  std::string data(reinterpret_cast<const char*>(doubles), sizeof doubles);
  data.append(reinterpret_cast<const char*>(halves), sizeof halves);
  data.append(reinterpret_cast<const char*>(brains), sizeof brains);
  write(R"({"d":{"dtype":"F64","shape":[1,2],"data_offsets":[0,16]},"h":{"dtype":"F16","shape":[2,2],)"
        R"("data_offsets":[16,24]},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[24,28]}})",
        data);
  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  TableReading reading;
  const Matrix d = reader->read(*reader->find("d"), 0, reading).value();
  const Matrix h = reader->read(*reader->find("h"), 0, reading).value();
  const Matrix b = reader->read(*reader->find("b"), 0, reading).value();
  EXPECT_EQ(d.row(0)[0], 0.1f);
  EXPECT_EQ(d.row(0)[1], -3e10f);
  EXPECT_EQ(h.row(0)[0], 1.0f);
  EXPECT_EQ(h.row(0)[1], -2.0f);
  EXPECT_EQ(h.row(1)[0], 0x1p-24f);
  EXPECT_EQ(h.row(1)[1], 65504.0f);
  EXPECT_EQ(b.row(0)[0], 1.0f);
  EXPECT_EQ(b.row(1)[0], -2.0f);
}

TEST_F(SafetensorsTest, ValuesThatAreNotFiniteAreCountedWithTheFirstOffset) {
  const float values[] = {1, 2, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
  write(R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
        std::string(reinterpret_cast<const char*>(values), sizeof values));
  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok());
  TableReading reading;
  ASSERT_TRUE(reader->read(reader->tensors()[0], 0, reading).ok());
  EXPECT_EQ(reading.not_finite, 2);
  EXPECT_EQ(reading.not_finite_offset, reader->header_bytes() + 8);
}

TEST_F(SafetensorsTest, ATableMayHaveNoRows) {
  write(R"({"t":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})", "");
  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok());
  TableReading reading;
  const auto table = reader->read(reader->tensors()[0], 3, reading);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->rows(), 0);
  EXPECT_EQ(table->cols(), 7);
}

TEST_F(SafetensorsTest, RowsAreChangedOnTheirWayAndTheTableIsNot) {
  Matrix table = Matrix::make(3, 5).value();
  table.row(2)[4] = 7;
  auto file = FileWriter::create(path_);
  ASSERT_TRUE(file.ok());
  const auto halve = [](std::span<float> row) {
    for (float& value : row) value /= 2;
  };
  const NamedMatrix one[] = {{"t", table.view(), halve}};
  ASSERT_TRUE(write_safetensors(*file, {}, one).ok() && file->close().ok());
  auto reader = SafetensorsReader::open(path_);
  ASSERT_TRUE(reader.ok());
  TableReading reading;
  const auto read = reader->read(*reader->find("t"), 0, reading);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->row(2)[4], 3.5f);
  EXPECT_EQ(table.row(2)[4], 7);
}

TEST_F(SafetensorsTest, EveryTruncationIsFoundOut) {
  Matrix table = Matrix::make(3, 5).value();
  auto file = FileWriter::create(path_);
  ASSERT_TRUE(file.ok());
  const NamedMatrix one[] = {{"t", table.view()}};
  ASSERT_TRUE(write_safetensors(*file, {}, one).ok() && file->close().ok());
  const std::string whole = read_bytes(path_);
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path_, whole.substr(0, length));
    const Status status = SafetensorsReader::open(path_).status();
    ASSERT_EQ(status.code(), Code::kDataLoss) << length;
    ASSERT_THAT(status.message(), HasSubstr(path_));
    ASSERT_THAT(status.message(), HasSubstr("byte "));
  }
  write_bytes(path_, whole + "x");
  EXPECT_THAT(SafetensorsReader::open(path_).status().message(), HasSubstr("bytes follow"));
}

TEST_F(SafetensorsTest, HugeLengthsAreRefusedBeforeMemoryIsTaken) {
  for (const uint64_t length : {uint64_t{100}, uint64_t{1} << 40, ~uint64_t{0}}) {
    write_bytes(path_, std::string(reinterpret_cast<const char*>(&length), 8) + "{}");
    EXPECT_EQ(SafetensorsReader::open(path_).status().code(), Code::kDataLoss);
  }
  const std::string entries[] = {R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
                                 R"({"t":{"dtype":"F32","shape":[1000000,1000000],"data_offsets":[0,4000000000000]}})",
                                 R"({"t":{"dtype":"F32","shape":[1,4],"data_offsets":[18446744073709551615,15]}})",
                                 R"({"t":{"dtype":"F32","shape":[1e300,4],"data_offsets":[0,16]}})",
                                 R"({"t":{"dtype":"F32","shape":[99999999999999999999999,4],"data_offsets":[0,16]}})"};
  for (const std::string& header : entries)
    EXPECT_EQ(open_error(header, std::string(16, '\0')).code(), Code::kDataLoss);
}

TEST_F(SafetensorsTest, HeadersThatContradictThemselvesAreRefused) {
  const std::string data(16, '\0');
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "not a JSON object"},
      {R"({"t":)", "not JSON"},
      {R"({"t":1})", "lacks"},
      {R"({"t":{"dtype":"F32","shape":[4]}})", "lacks"},
      {R"({"t":{"dtype":"F31","shape":[4],"data_offsets":[0,16]}})", "unknown dtype"},
      {R"({"t":{"dtype":4,"shape":[4],"data_offsets":[0,16]}})", "wrong kind"},
      {R"({"t":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", "wrong kind"},
      {R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})", "wrong kind"},
      {R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})", "does not fit"},
      {R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", "should begin at byte"},
      {R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "bytes follow"},
      {R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"u":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
       "should begin at byte"},
      {R"({"__metadata__":3})", "__metadata__"}};
  for (const auto& [header, reason] : cases) {
    const Status status = open_error(header, data);
    EXPECT_EQ(status.code(), Code::kDataLoss) << header;
    EXPECT_THAT(status.message(), HasSubstr(reason)) << header;
  }
}

TEST_F(SafetensorsTest, OnlyTablesOfFloatsBecomeMatrices) {
  const std::string data(16, '\0');
  for (const char* header : {R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
                             R"({"t":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})",
                             R"({"t":{"dtype":"F32","shape":[1,2,2],"data_offsets":[0,16]}})"}) {
    auto reader = SafetensorsReader::open(write(header, data));
    ASSERT_TRUE(reader.ok()) << header;
    TableReading reading;
    EXPECT_EQ(reader->read(reader->tensors()[0], 0, reading).status().code(), Code::kInvalidArgument) << header;
  }
}

TEST_F(SafetensorsTest, FlippedBitsNeverCrashTheReader) {
  write(R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", std::string(16, '\0'));
  const std::string whole = read_bytes(path_);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_bytes(path_, bytes);
    auto reader = SafetensorsReader::open(path_);
    if (!reader.ok()) continue;
    for (const TensorInfo& tensor : reader->tensors()) {
      TableReading reading;
      (void)reader->read(tensor, 0, reading).ok();
    }
  }
}

}  // namespace
}  // namespace streamvec
