#include "streamvec/sync/message.h"

#include <gtest/gtest.h>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

Message example() {
  Message message;
  message.kind = MessageKind::kUpdate;
  message.codec = CodecKind::kOneBit;
  message.last = false;
  message.confirmed = true;
  message.epoch = 7;
  message.stamp = 1 << 20;
  message.clock = -3;
  message.version = int64_t{5} << 40;
  message.clocks = {{1, 2, 300}, {2, 1, -1}};
  message.rows = {0, 1, 5, 1000};
  message.payload = std::string("\0abc", 4);
  return message;
}

TEST(Message, ComesBackAsItWasSent) {
  const Message sent = example();
  const Result<Message> got = decode_message(encode(sent), {.key_end = 1001});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->kind, sent.kind);
  EXPECT_EQ(got->codec, sent.codec);
  EXPECT_EQ(got->last, sent.last);
  EXPECT_EQ(got->confirmed, sent.confirmed);
  EXPECT_EQ(got->epoch, sent.epoch);
  EXPECT_EQ(got->stamp, sent.stamp);
  EXPECT_EQ(got->clock, sent.clock);
  EXPECT_EQ(got->version, sent.version);
  EXPECT_EQ(got->clocks, sent.clocks);
  EXPECT_EQ(got->rows, sent.rows);
  EXPECT_EQ(got->payload, sent.payload);
}

TEST(Message, SharesAndDirectionsComeBackAndNoneIsMissing) {
  Message sent = example();
  sent.shares = {255, 0, 63, 128, 7, 8, 9, 10};
  sent.directions = {0.5f, -1, 3e-9f};
  const Result<Message> got = decode_message(encode(sent), {.key_end = 1001});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->shares, sent.shares);
  EXPECT_EQ(got->directions, sent.directions);
  EXPECT_EQ(got->payload, sent.payload);
  sent.payload.clear();
  const std::string whole = encode(sent);
  for (size_t cut = 1; cut <= sizeof(float) * 3 + 8; ++cut)
    EXPECT_EQ(decode_message(whole.substr(0, whole.size() - cut), {.key_end = 1001}).status().code(),
              Code::kInvalidArgument);
}

TEST(Message, ARowPastTheEndIsOutOfRange) {
  EXPECT_EQ(decode_message(encode(example()), {.key_end = 1000}).status().code(), Code::kOutOfRange);
}

TEST(Message, MoreRowsThanAllowedAreRefused) {
  EXPECT_EQ(decode_message(encode(example()), {.rows_max = 3}).status().code(), Code::kResourceExhausted);
}

TEST(Message, NoDamageIsMoreThanAnError) {
  const std::string whole = encode(example());
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole.substr(0, 1 + random.below(static_cast<uint32_t>(whole.size())));
    for (int k = 0; k < 3; ++k)
      bytes[random.below(static_cast<uint32_t>(bytes.size()))] = static_cast<char>(random.next());
    const Result<Message> got = decode_message(bytes, {.rows_max = 100, .key_end = 2000});
    if (got.ok()) {
      ASSERT_LE(got->rows.size(), 100u);
    }
  }
}

}  // namespace
}  // namespace streamvec
