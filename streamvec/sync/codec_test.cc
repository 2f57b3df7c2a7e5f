#include "streamvec/sync/codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

Matrix random_rows(int64_t rows, int64_t dim, uint64_t seed, float scale = 0.01f) {
  Matrix matrix = std::move(Matrix::make(rows, dim)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (float& value : matrix.view().row_span(i)) value = scale * (random.uniform() - random.uniform());
  return matrix;
}

double square(const Matrix& rows) {
  double sum = 0;
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (int64_t k = 0; k < rows.cols(); ++k) sum += double{rows.row(i)[k]} * rows.row(i)[k];
  return sum;
}

class EveryCodec : public testing::TestWithParam<CodecKind> {};

TEST_P(EveryCodec, LeavesWithTheSenderExactlyWhatTheReceiverDecodes) {
  for (const int64_t dim : {1, 7, 8, 16, 50, 200, 300, 513}) {
    const auto codec = make_codec(GetParam());
    Matrix sent = random_rows(9, dim, static_cast<uint64_t>(dim));
    std::string payload = "before";
    codec->encode(sent.view(), payload);
    ASSERT_EQ(payload.substr(0, 6), "before");
    Matrix got = random_rows(9, dim, 99);
    ASSERT_TRUE(codec->decode(payload.substr(6), got.view()).ok());
    for (int64_t i = 0; i < 9; ++i)
      for (int64_t k = 0; k < got.stride(); ++k)
        ASSERT_EQ(sent.row(i)[k], got.row(i)[k]) << dim << " " << i << " " << k;
  }
}

// What is left out of one message is in a later one: the sum of all tends to the sum of the changes.
TEST_P(EveryCodec, SendsInTimeWhatItLeavesOutAtFirst) {
  const auto codec = make_codec(GetParam());
  Matrix left = random_rows(20, 50, 1);
  const double at_first = square(left);
  for (int message = 0; message < 200; ++message) {
    Matrix sent = std::move(left.copy()).value();
    std::string payload;
    codec->encode(sent.view(), payload);
    for (int64_t i = 0; i < left.rows(); ++i)
      for (int64_t k = 0; k < left.cols(); ++k) left.row(i)[k] -= sent.row(i)[k];
  }
  EXPECT_LT(square(left), 0.02 * at_first);
}

TEST_P(EveryCodec, RefusesPayloadsOfOtherSizes) {
  const auto codec = make_codec(GetParam());
  Matrix rows = random_rows(5, 40, 1);
  std::string payload;
  codec->encode(rows.view(), payload);
  for (size_t size = 0; size < payload.size(); ++size)
    ASSERT_FALSE(codec->decode(payload.substr(0, size), rows.view()).ok()) << size;
  EXPECT_FALSE(codec->decode(payload + "xx", rows.view()).ok());
}

TEST_P(EveryCodec, SendsNothingAsNothing) {
  const auto codec = make_codec(GetParam());
  Matrix rows = std::move(Matrix::make(3, 20)).value();
  std::string payload;
  codec->encode(rows.view(), payload);
  ASSERT_TRUE(codec->decode(payload, rows.view()).ok());
  EXPECT_EQ(square(rows), 0);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec,
                         testing::Values(CodecKind::kFp32, CodecKind::kFp16, CodecKind::kOneBit, CodecKind::kStrom,
                                         CodecKind::kFourBit),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Fp16, HasElevenBitsAtEveryScale) {
  const auto codec = make_codec(CodecKind::kFp16);
  for (const float scale : {1e-30f, 1e-6f, 1.0f, 1e9f}) {
    Matrix rows = random_rows(4, 64, 3, scale), before = std::move(rows.copy()).value();
    std::string payload;
    codec->encode(rows.view(), payload);
    for (int64_t k = 0; k < 64; ++k) ASSERT_NEAR(rows.row(0)[k], before.row(0)[k], 1e-3 * scale) << scale;
  }
}

TEST(OneBit, IsTheMeanOfEachSideInAnEighthOfAByteAValue) {
  Matrix rows = std::move(Matrix::make(1, 4)).value();
  const float values[] = {1, 3, -2, -4};
  std::copy_n(values, 4, rows.row(0));
  std::string payload;
  make_codec(CodecKind::kOneBit)->encode(rows.view(), payload);
  EXPECT_EQ(payload.size(), 5u);
  EXPECT_EQ(rows.row(0)[0], 2);
  EXPECT_EQ(rows.row(0)[1], 2);
  EXPECT_EQ(rows.row(0)[2], -3);
  EXPECT_EQ(rows.row(0)[3], -3);
}

TEST(FourBit, IsInWholeSeventhsOfTheLargestValueInHalfAByteAValue) {
  Matrix rows = std::move(Matrix::make(1, 20)).value();
  for (int64_t k = 0; k < 20; ++k) rows.row(0)[k] = static_cast<float>(k % 8) - 0.25f * static_cast<float>(k % 2);
  rows.row(0)[3] = -7;
  std::string payload;
  make_codec(CodecKind::kFourBit)->encode(rows.view(), payload);
  EXPECT_EQ(payload.size(), 2u + 8u + 4u);
  for (int64_t k = 0; k < 20; ++k) ASSERT_EQ(rows.row(0)[k], k == 3 ? -7 : static_cast<float>(k % 8)) << k;
}

TEST(FourBit, WholeSeventhsComeBackFromRowsOfEveryLength) {
  const auto seventh = [](int64_t k) { return static_cast<float>((5 * k + 14) % 15 - 7); };
  for (int64_t dim = 1; dim <= 40; ++dim) {
    Matrix rows = std::move(Matrix::make(1, dim)).value();
    for (int64_t k = 0; k < dim; ++k) rows.row(0)[k] = seventh(k);
    std::string payload;
    make_codec(CodecKind::kFourBit)->encode(rows.view(), payload);
    for (int64_t k = 0; k < dim; ++k) ASSERT_EQ(rows.row(0)[k], seventh(k)) << k << " of " << dim;
  }
}

TEST(FourBit, LeavesATenthAtEveryScale) {
  for (const float scale : {1e-30f, 1e-6f, 1.0f, 1e9f}) {
    Matrix rows = random_rows(40, 50, 3, scale), left = std::move(rows.copy()).value();
    std::string payload;
    make_codec(CodecKind::kFourBit)->encode(rows.view(), payload);
    for (int64_t i = 0; i < rows.rows(); ++i)
      for (int64_t k = 0; k < rows.cols(); ++k) left.row(i)[k] = (left.row(i)[k] - rows.row(i)[k]) / scale;
    EXPECT_LT(std::sqrt(square(left) / (40 * 50)), 0.12 * std::sqrt(1.0 / 6)) << scale;
  }
}

TEST(FourBit, OfWhatIsNoNumberSaysNothing) {
  Matrix rows = random_rows(1, 50, 3);
  rows.row(0)[7] = INFINITY;
  std::string payload;
  make_codec(CodecKind::kFourBit)->encode(rows.view(), payload);
  for (const float value : rows.view().row_span(0)) ASSERT_EQ(value, 0);
}

TEST(Strom, SendsASingleValueByItsHalfInAFewBytes) {
  Matrix rows = std::move(Matrix::make(1, 100)).value();
  for (int64_t k = 0; k < 100; ++k) rows.row(0)[k] = 0;
  rows.row(0)[17] = -1;
  std::string payload;
  make_codec(CodecKind::kStrom)->encode(rows.view(), payload);
  EXPECT_LE(payload.size(), 11u);
  EXPECT_EQ(rows.row(0)[17], -0.5f);
  EXPECT_EQ(rows.row(0)[16], 0);
}

TEST(Strom, SendsOneValueInTwenty) {
  Matrix rows = random_rows(100, 200, 5);
  std::string payload;
  make_codec(CodecKind::kStrom)->encode(rows.view(), payload);
  int64_t sent = 0;
  for (int64_t i = 0; i < 100; ++i)
    for (const float value : rows.view().row_span(i)) sent += value != 0;
  EXPECT_NEAR(static_cast<double>(sent), 1000, 100);
  EXPECT_LT(payload.size(), 1000u);
}

TEST(Codec, UnknownNamesAndNumbersAreNamed) {
  EXPECT_NE(parse_codec("zip", 50).status().message().find("zip"), std::string::npos);
  EXPECT_FALSE(codec_of(5).ok());
}

TEST(Codec, IsByRowWhereItSaysSo) {
  for (uint8_t number = 0; codec_of(number).ok(); ++number) {
    const CodecKind kind = codec_of(number).value();
    EXPECT_EQ(is_by_row(kind), make_codec(kind)->by_row() != nullptr) << name_of(kind);
  }
}

TEST(Codec, ShortRowsHaveMoreBitsAValueUnlessOneIsNamed) {
  EXPECT_EQ(parse_codec("auto", 50).value(), CodecKind::kFourBit);
  EXPECT_EQ(parse_codec("auto", 128).value(), CodecKind::kFourBit);
  EXPECT_EQ(parse_codec("auto", 129).value(), CodecKind::kOneBit);
  EXPECT_EQ(parse_codec("onebit", 50).value(), CodecKind::kOneBit);
}

}  // namespace
}  // namespace streamvec
