#include "streamvec/text/byte_classes.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {
namespace {

bool bit(uint64_t map, size_t i) {
  return (map >> i & 1) != 0;
}
bool among(std::string_view set, char byte) {
  return set.find(byte) != set.npos;
}

void expect_class_of(unsigned char byte, const ByteBlock& block, size_t i) {
  const char c = static_cast<char>(byte);
  const bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
  EXPECT_EQ(bit(block.alnum, i), digit || upper || lower) << int{byte};
  EXPECT_EQ(bit(block.digit, i), digit) << int{byte};
  EXPECT_EQ(bit(block.upper, i), upper) << int{byte};
  EXPECT_EQ(bit(block.joiner, i), among("'_", c)) << int{byte};
  EXPECT_EQ(bit(block.point, i), among(".,", c)) << int{byte};
  EXPECT_EQ(bit(block.white, i), among(" \t\n\v\f\r", c)) << int{byte};
  EXPECT_EQ(bit(block.line_feed, i), c == '\n') << int{byte};
  EXPECT_EQ(bit(block.carriage, i), c == '\r') << int{byte};
  EXPECT_EQ(bit(block.special, i), byte == 0 || byte >= 0x80) << int{byte};
}

TEST(ByteClasses, EveryByteAtEveryPlaceHasItsClassWithEveryInstructionSet) {
  std::string text;
  for (int shift = 0; shift < 64; ++shift)
    for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte + shift);
  std::vector<ByteBlock> blocks(text.size() / kByteBlockBytes);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    classify_bytes(text.data(), static_cast<int64_t>(blocks.size()), blocks.data());
    for (size_t i = 0; i < text.size(); ++i)
      expect_class_of(static_cast<unsigned char>(text[i]), blocks[i / kByteBlockBytes], i % kByteBlockBytes);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace streamvec
