#include "streamvec/transport/grpc/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace streamvec {
namespace {

grpc::ByteBuffer message(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

TEST(Packing, FramesOfAnySizeComeOutAsTheyWentIn) {
  std::vector<std::string> sent;
  for (const size_t size : {0, 1, 4'095, 4'096, 9'999, 10'000, 10'001, 30'000, 100'007, 0, 3})
    sent.push_back(pattern(size));
  FrameQueue queue(10'000);
  for (const std::string& frame : sent) queue.push(frame);
  FrameReader reader(200'000);
  std::vector<std::string> received;
  int64_t frames = 0;
  while (!queue.empty()) {
    const FrameQueue::Message next = queue.pop();
    EXPECT_LE(next.bytes.Length(), 10'000u + 16u);
    frames += next.frames;
    ASSERT_TRUE(reader.read(next.bytes, received).ok());
  }
  EXPECT_EQ(received, sent);
  EXPECT_EQ(frames, static_cast<int64_t>(sent.size()));
  EXPECT_EQ(queue.bytes(), 0);
}

TEST(Packing, SmallFramesTravelTogether) {
  FrameQueue queue(10'000);
  for (int i = 0; i < 50; ++i) queue.push(pattern(100));
  EXPECT_EQ(queue.pop().frames, 50);
  EXPECT_TRUE(queue.empty());
}

TEST(Packing, AFrameThatWasCutGoesOutWholeAfterRewind) {
  FrameQueue queue(1'000);
  queue.push(pattern(2'500));
  (void)queue.pop();
  queue.rewind();
  FrameReader reader(10'000);
  std::vector<std::string> received;
  while (!queue.empty()) ASSERT_TRUE(reader.read(queue.pop().bytes, received).ok());
  EXPECT_THAT(received, ::testing::ElementsAre(pattern(2'500)));
}

TEST(Packing, RefusesMessagesThatAreCutShortOrGrowWithoutEnd) {
  const std::string whole(
      "\x03\x00\x00\x00"
      "abc",
      7);
  std::vector<std::string> frames;
  ASSERT_TRUE(FrameReader(100).read(message(whole), frames).ok());
  EXPECT_THAT(frames, ::testing::ElementsAre("abc"));
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_EQ(FrameReader(100).read(message(whole.substr(0, size)), frames).code(), Code::kInvalidArgument) << size;
  EXPECT_EQ(FrameReader(2).read(message(whole), frames).code(), Code::kInvalidArgument);
  const std::string goes_on(
      "\x03\x00\x00\x80"
      "abc",
      7);
  FrameReader reader(10);
  for (int part = 0; part < 3; ++part) EXPECT_TRUE(reader.read(message(goes_on), frames).ok());
  EXPECT_EQ(reader.read(message(goes_on), frames).code(), Code::kInvalidArgument);
  EXPECT_EQ(frames.size(), 1u);
}

}  // namespace
}  // namespace streamvec
