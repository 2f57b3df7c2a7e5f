#include "streamvec/sync/row_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kRows = 7, kDim = 50;

class EveryRowCodec : public testing::TestWithParam<CodecKind> {
 protected:
  // Writes seeded rows and returns them as sent() was told.
  std::vector<std::vector<float>> write(RowWriter& writer, uint64_t seed, std::string& payload) {
    Random random(seed);
    std::vector<std::vector<float>> sent(kRows);
    const auto note = [&](int64_t i, const float* row) { sent[static_cast<size_t>(i)].assign(row, row + kDim); };
    writer.begin(kRows + 3, payload);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t k = 0; k < kDim; ++k) writer.next()[k] = random.uniform() - 0.5f;
      writer.add(note);
    }
    writer.finish(note);
    return sent;
  }
};

TEST_P(EveryRowCodec, SaysOfEveryRowWhatTheReaderWillFind) {
  RowWriter writer(GetParam(), kDim);
  RowReader reader(kDim);
  for (const uint64_t seed : {1, 2}) {  // memory is used again
    std::string payload;
    const auto sent = write(writer, seed, payload);
    ASSERT_EQ(writer.count(), kRows);
    ASSERT_TRUE(reader.begin(GetParam(), payload, kRows).ok());
    for (int64_t i = 0; i < kRows; ++i)
      EXPECT_EQ(std::vector<float>(reader.row(i), reader.row(i) + kDim), sent[static_cast<size_t>(i)]) << i;
  }
}

TEST_P(EveryRowCodec, WritesWhatTheCodecDecodesAsAWhole) {
  RowWriter writer(GetParam(), kDim);
  std::string payload;
  const auto sent = write(writer, 3, payload);
  Matrix whole = std::move(Matrix::make(kRows, kDim)).value();
  ASSERT_TRUE(make_codec(GetParam())->decode(payload, whole.view()).ok());
  for (int64_t i = 0; i < kRows; ++i)
    EXPECT_EQ(std::vector<float>(whole.row(i), whole.row(i) + kDim), sent[static_cast<size_t>(i)]) << i;
}

TEST_P(EveryRowCodec, RefusesAPayloadOfOtherRows) {
  RowWriter writer(GetParam(), kDim);
  std::string payload;
  write(writer, 4, payload);
  RowReader reader(kDim);
  EXPECT_EQ(reader.begin(GetParam(), payload.substr(1), kRows).code(), Code::kInvalidArgument);
  EXPECT_EQ(reader.begin(GetParam(), payload + "x", kRows).code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(RowStream, EveryRowCodec,
                         testing::Values(CodecKind::kFp32, CodecKind::kFp16, CodecKind::kOneBit, CodecKind::kStrom),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace streamvec
