#include "streamvec/source/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

// Decodes with small buffers on both sides, so that every state is stopped in.
Result<std::string> decode(Compression compression, const std::string& bytes, size_t in_size = 7,
                           size_t out_size = 11) {
  const std::unique_ptr<Decoder> decoder = Decoder::make(compression);
  std::string text, block(out_size, '\0');
  for (size_t begin = 0; begin < bytes.size(); begin += in_size) {
    std::string_view in = std::string_view(bytes).substr(begin, in_size);
    for (bool full = true; full || !in.empty();) {
      std::span<char> out(block);
      STREAMVEC_RETURN_IF_ERROR(decoder->decode(in, out));
      text.append(block.data(), out_size - out.size());
      full = out.empty();
    }
  }
  if (!decoder->at_member_end()) return error(Code::kDataLoss, "cut short");
  return text;
}

class DecoderOf : public ::testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(Every, DecoderOf, ::testing::ValuesIn(kCompressions),
                         [](const auto& of) { return std::string(compression_name(of.param)); });

TEST_P(DecoderOf, GivesBackWhatWasCompressed) {
  const std::string text = sample_text(300'000);
  const std::string bytes = compressed(GetParam(), text);
  EXPECT_EQ(recognise_compression(bytes), GetParam());
  const Result<std::string> decoded = decode(GetParam(), bytes, 1'000, 5'000);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, text);
}

TEST_P(DecoderOf, ReadsMembersThatFollowEachOtherAsOneStream) {
  const std::string bytes = compressed(GetParam(), "first\n") + compressed(GetParam(), "") +
                            compressed(GetParam(), "second\n") + std::string(512, '\0');
  const Result<std::string> decoded = decode(GetParam(), bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, "first\nsecond\n");
}

TEST_P(DecoderOf, NoticesEveryTruncation) {
  const std::string bytes = compressed(GetParam(), sample_text(500));
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(decode(GetParam(), bytes.substr(0, size)).ok()) << "cut after " << size << " of " << bytes.size();
}

TEST_P(DecoderOf, NoFlippedBitChangesTheTextUnnoticed) {
  const std::string text = sample_text(300), bytes = compressed(GetParam(), text);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Result<std::string> decoded = decode(GetParam(), flipped);
    if (decoded.ok()) {
      ASSERT_EQ(*decoded, text) << "bit " << bit;  // gzip's file time and such carry nothing
    }
  }
}

TEST_P(DecoderOf, RefusesRubbishAfterTheStream) {
  EXPECT_FALSE(decode(GetParam(), compressed(GetParam(), "text\n") + "rubbish that is no member").ok());
}

TEST(Decoder, RefusesMemoryThatALyingXzHeaderAsksFor) {
  std::string bytes = xz_bytes(sample_text(100));
  // After a stream header of 12 bytes comes the block header: its size, ..., the LZMA2 filter (id 0x21, one byte of
  // properties, which is the dictionary's size), padding, CRC32.
  const size_t header = 12, header_size = (static_cast<size_t>(bytes[header]) + 1) * 4;
  bytes[bytes.find("\x21\x01", header) + 2] = 40;  // 4 GB
  const uint32_t crc = lzma_crc32(reinterpret_cast<uint8_t*>(&bytes[header]), header_size - 4, 0);
  for (size_t i = 0; i < 4; ++i) bytes[header + header_size - 4 + i] = static_cast<char>(crc >> 8 * i);
  EXPECT_EQ(decode(Compression::kXz, bytes).status().code(), Code::kResourceExhausted);
}

TEST(Decoder, RefusesMemoryThatALyingZstdHeaderAsksFor) {
  const std::string bytes("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9);  // a window of 2 GB
  const Result<std::string> decoded = decode(Compression::kZstd, bytes);
  EXPECT_EQ(decoded.status().code(), Code::kResourceExhausted) << decoded.status().message();
}

TEST(RecogniseCompression, TextIsPlainEvenWhenItStartsLikeAMark) {
  for (const char* text : {"", "B", "BZh9 is how bzip2 files start", "(", "PK", "a", "BZh91AY&S!"})
    EXPECT_EQ(recognise_compression(text), Compression::kNone) << text;
}

TEST(RecogniseCompression, WaitsOnlyWhileTheMarkIsIncomplete) {
  EXPECT_TRUE(may_become_compression("BZh9"));
  EXPECT_TRUE(may_become_compression("\x1f"));
  EXPECT_FALSE(may_become_compression("BZip"));
  EXPECT_FALSE(may_become_compression("a"));
  for (const Compression compression : kCompressions)
    EXPECT_FALSE(may_become_compression(compressed(compression, "x"))) << compression_name(compression);
}

TEST(RecogniseCompression, ZstdMayBeginWithASkippableFrame) {
  const std::string bytes = std::string("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11) + zstd_bytes("text\n");
  ASSERT_EQ(recognise_compression(bytes), Compression::kZstd);
  const Result<std::string> decoded = decode(Compression::kZstd, bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, "text\n");
}

}  // namespace
}  // namespace streamvec
