#include "streamvec/sync/row_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kStreamRows = 7, kStreamDim = 50;

class EveryRowCodec : public testing::TestWithParam<CodecKind> {
 protected:
  // Writes seeded changes of rows and returns what was added to what is known of each.
  std::vector<std::vector<float>> write(RowWriter& writer, uint64_t seed, std::string& payload) {
    Random random(seed);
    Matrix now = std::move(Matrix::make(kStreamRows, kStreamDim)).value();
    for (int64_t i = 0; i < kStreamRows; ++i)
      for (float& value : now.view().row_span(i)) value = random.uniform() - 0.5f;
    Matrix known = std::move(Matrix::make(kStreamRows, kStreamDim)).value();
    writer.begin(GetParam(), kStreamRows + 3, payload);
    for (int64_t i = 0; i < kStreamRows; ++i) {
      writer.change(known.row(i), now.row(i));  // one that does not count
      writer.change(now.row(i), known.row(i));
      writer.add_and_know(known.row(i));
    }
    writer.finish();
    std::vector<std::vector<float>> sent;
    for (int64_t i = 0; i < kStreamRows; ++i) sent.emplace_back(known.row(i), known.row(i) + kStreamDim);
    return sent;
  }
};

TEST_P(EveryRowCodec, SaysOfEveryRowWhatTheReaderWillFind) {
  RowWriter writer(kStreamDim);
  RowReader reader(kStreamDim);
  for (const uint64_t seed : {1, 2}) {  // memory is used again
    std::string payload;
    const auto sent = write(writer, seed, payload);
    ASSERT_EQ(writer.count(), kStreamRows);
    ASSERT_TRUE(reader.begin(GetParam(), payload, kStreamRows).ok());
    for (int64_t i = 0; i < kStreamRows; ++i)
      EXPECT_EQ(std::vector<float>(reader.row(i), reader.row(i) + kStreamDim), sent[static_cast<size_t>(i)]) << i;
  }
}

TEST_P(EveryRowCodec, WritesWhatTheCodecDecodesAsAWhole) {
  RowWriter writer(kStreamDim);
  std::string payload;
  const auto sent = write(writer, 3, payload);
  Matrix whole = std::move(Matrix::make(kStreamRows, kStreamDim)).value();
  ASSERT_TRUE(make_codec(GetParam())->decode(payload, whole.view()).ok());
  for (int64_t i = 0; i < kStreamRows; ++i)
    EXPECT_EQ(std::vector<float>(whole.row(i), whole.row(i) + kStreamDim), sent[static_cast<size_t>(i)]) << i;
}

TEST_P(EveryRowCodec, WritesAChangeAsItWouldTheDifference) {
  Random random(5);
  RowBuffer rows;  // now, known, the difference
  rows.reserve_zeroed(3 * kStreamRows, kStreamDim);
  RowWriter writer(kStreamDim);
  std::string payload, expected;
  writer.begin(GetParam(), kStreamRows, payload);
  for (int64_t i = 0; i < kStreamRows; ++i) {
    float *now = rows.row(i), *known = rows.row(kStreamRows + i), *change = rows.row(2 * kStreamRows + i);
    float squares = 0, of_known = 0;
    for (int64_t k = 0; k < kStreamDim; ++k) {
      now[k] = random.uniform() - 0.4f;
      known[k] = random.uniform() - 0.4f;
      change[k] = now[k] - known[k];
      squares += change[k] * change[k];
      of_known += known[k] * known[k];
    }
    const ChangeSquares found = writer.change(now, known);
    EXPECT_NEAR(found.change, squares, 1e-4f);
    EXPECT_NEAR(found.known, of_known, 1e-4f);
    writer.add();
  }
  writer.finish();
  MatrixView<float> changes = rows.view();
  changes.data += 2 * kStreamRows * changes.stride;
  changes.rows = kStreamRows;
  make_codec(GetParam())->encode(changes, expected);
  EXPECT_EQ(payload, expected);
}

TEST_P(EveryRowCodec, AddsARowByAScale) {
  RowWriter writer(kStreamDim);
  std::string payload;
  const auto sent = write(writer, 6, payload);
  RowReader reader(kStreamDim);
  ASSERT_TRUE(reader.begin(GetParam(), payload, kStreamRows).ok());
  RowBuffer to;
  for (int64_t i = 0; i < kStreamRows; ++i) {
    to.reserve_zeroed(1, kStreamDim);
    for (int64_t k = 0; k < kStreamDim; ++k) to.row(0)[k] = 1;
    reader.add(i, 0.5f, to.row(0));
    for (int64_t k = 0; k < kStreamDim; ++k)
      EXPECT_FLOAT_EQ(to.row(0)[k], 1 + 0.5f * sent[static_cast<size_t>(i)][static_cast<size_t>(k)]) << i << " " << k;
  }
}

TEST_P(EveryRowCodec, RefusesAPayloadOfOtherRows) {
  RowWriter writer(kStreamDim);
  std::string payload;
  write(writer, 4, payload);
  RowReader reader(kStreamDim);
  EXPECT_EQ(reader.begin(GetParam(), payload.substr(1), kStreamRows).code(), Code::kInvalidArgument);
  EXPECT_EQ(reader.begin(GetParam(), payload + "x", kStreamRows).code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(RowStream, EveryRowCodec,
                         testing::Values(CodecKind::kFp32, CodecKind::kFp16, CodecKind::kOneBit, CodecKind::kStrom,
                                         CodecKind::kFourBit),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace streamvec
