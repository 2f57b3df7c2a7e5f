#include "streamvec/cluster/codec_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

constexpr int64_t kShortDim = 50;      // 32 bytes a row with all that belongs to it
constexpr int64_t kPushRows = 10'000;  // so 320 KB a push

// Pushes of kPushRows rows every tenth of a second: 3.2 MB/s.
class Wire {
 public:
  void carry(double bytes_per_s, int pushes) {
    for (int i = 0; i < pushes; ++i) finder.pushed(now_ += 0.1, kPushRows, bytes_per_s);
  }
  CodecFinder finder{kShortDim};

 private:
  double now_ = 0;
};

TEST(CodecFinder, AFastWireKeepsFourBitsAValue) {
  Wire wire;
  wire.carry(100e6, 100);
  EXPECT_EQ(wire.finder.codec(), CodecKind::kFourBit);
  EXPECT_TRUE(wire.finder.reasons().empty());
}

TEST(CodecFinder, NothingIsDecidedBeforeAWireIsKnown) {
  Wire wire;
  wire.carry(0, 100);
  EXPECT_EQ(wire.finder.codec(), CodecKind::kFourBit);
}

TEST(CodecFinder, ASlowWireBringsOneBitAValueAndSaysWhy) {
  Wire wire;
  wire.carry(6e6, 20);
  EXPECT_EQ(wire.finder.codec(), CodecKind::kOneBit);
  EXPECT_THAT(wire.finder.reasons(),
              ::testing::ElementsAre(::testing::HasSubstr("carries 6000 KB/s and would need 53%")));
}

TEST(CodecFinder, FourBitsComeBackOnlyWhenTheWireHasRoomForThem) {
  Wire wire;
  wire.carry(6e6, 20);
  wire.carry(12e6, 100);  // a quarter of the time: neither much nor little
  EXPECT_EQ(wire.finder.codec(), CodecKind::kOneBit);
  wire.carry(40e6, 20);
  EXPECT_EQ(wire.finder.codec(), CodecKind::kFourBit);
  wire.carry(12e6, 100);
  EXPECT_EQ(wire.finder.codec(), CodecKind::kFourBit);
}

TEST(CodecFinder, FourBitsThatProveTooManyAgainAreTriedAgainEverLater) {
  Wire wire;
  int64_t last = 0;
  for (int times = 0; times < 5; ++times) {
    wire.carry(6e6, 20);
    ASSERT_EQ(wire.finder.codec(), CodecKind::kOneBit);
    int64_t pushes = 0;  // the fewer bits pass
    for (; wire.finder.codec() == CodecKind::kOneBit; ++pushes) wire.carry(40e6, 1);
    EXPECT_GT(pushes, last);
    last = pushes;
  }
}

TEST(CodecFinder, AWireThatComesAndGoesForeverIsNotToldOfForever) {
  Wire wire;
  for (int i = 0; i < 40; ++i) wire.carry(i % 2 == 0 ? 6e6 : 40e6, 600);
  EXPECT_EQ(wire.finder.reasons().size(), 8u);
}

}  // namespace
}  // namespace streamvec
