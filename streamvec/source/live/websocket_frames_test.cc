#include "streamvec/source/live/websocket_frames.h"

#include <gtest/gtest.h>

#include "streamvec/source/live/live_testing.h"
#include "streamvec/source/live/websocket_handshake.h"

namespace streamvec {
namespace {

using Op = WebSocketOpcode;

struct Parsed {
  std::vector<WebSocketMessage> messages;
  Status status;
  uint16_t close_code = 0;
  int64_t oversized = 0, not_utf8 = 0;
};

Parsed parse_frames(std::string_view bytes, size_t piece = 1 << 20, size_t message_bytes_max = 1 << 20) {
  WebSocketParser parser(message_bytes_max);
  Parsed parsed;
  for (; !bytes.empty() && parsed.status.ok(); bytes.remove_prefix(std::min(piece, bytes.size())))
    parsed.status = parser.feed(bytes.substr(0, piece), parsed.messages);
  parsed.close_code = parser.close_code();
  parsed.oversized = parser.oversized();
  parsed.not_utf8 = parser.not_utf8();
  return parsed;
}

TEST(WebSocketFrames, MessagesOfEveryLengthFormComeWholeHoweverTheBytesAreCut) {
  const std::vector<std::string> sent = {
      "", "short", std::string(125, 'a'), std::string(126, 'b'), std::string(65'535, 'c'), std::string(65'536, 'd')};
  std::string stream;
  for (const std::string& text : sent) stream += server_frame(Op::kText, text);
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}, stream.size()}) {
    const Parsed parsed = parse_frames(stream, piece);
    ASSERT_TRUE(parsed.status.ok());
    ASSERT_EQ(parsed.messages.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(parsed.messages[i].payload, sent[i]);
  }
}

TEST(WebSocketFrames, ControlFramesMayComeBetweenFragments) {
  const Parsed parsed =
      parse_frames(server_frame(Op::kText, "one ", false) + server_frame(Op::kPing, "?") +
                       server_frame(Op::kContinuation, "two", false) + server_frame(Op::kContinuation, " three"),
                   1);
  ASSERT_EQ(parsed.messages.size(), 2u);
  EXPECT_EQ(parsed.messages[0].kind, Op::kPing);
  EXPECT_EQ(parsed.messages[1].payload, "one two three");
}

TEST(WebSocketFrames, WhatBreaksTheProtocolIsRefusedWithItsCode) {
  const std::string text = server_frame(Op::kText, "x");
  const std::vector<std::string> broken = {
      server_frame(Op::kPing, "fragment", false),
      server_frame(Op::kClose, "x"),
      server_frame(Op::kClose, websocket_close_payload(1006, "")),
      server_frame(Op::kContinuation, "nothing begun"),
      server_frame(Op::kText, "a", false) + text,
      server_frame(static_cast<Op>(3), "x"),
      server_frame(Op::kPing, std::string(126, 'x')),
      websocket_frame(Op::kText, "masked", 1),
      std::string("\xC1\x01x", 3),
      std::string("\x81\x7E\x00\x05hello", 9),
      std::string("\x81\x7F\x00\x00\x00\x00\x00\x00\xFF\xFF", 10),
  };
  for (size_t i = 0; i < broken.size(); ++i) {
    const Parsed parsed = parse_frames(broken[i]);
    EXPECT_EQ(parsed.status.code(), Code::kInvalidArgument) << i;
    EXPECT_EQ(parsed.close_code, kCloseProtocolError) << i;
  }
  const Parsed huge = parse_frames(std::string("\x81\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10));
  EXPECT_EQ(huge.status.code(), Code::kInvalidArgument);
  EXPECT_EQ(huge.close_code, kCloseTooBig);
}

TEST(WebSocketFrames, MessagesThatAreTooLargeOrNoUtf8ArePassedOverAndCounted) {
  const Parsed parsed = parse_frames(
      server_frame(Op::kText, std::string(200, 'x')) + server_frame(Op::kText, std::string(60, 'x'), false) +
          server_frame(Op::kContinuation, std::string(60, 'x'), false) + server_frame(Op::kContinuation, "end") +
          server_frame(Op::kText, "\xC3\x28") + server_frame(Op::kText, "good"),
      7, 100);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  ASSERT_EQ(parsed.messages.size(), 1u);
  EXPECT_EQ(parsed.messages[0].payload, "good");
  EXPECT_EQ(parsed.oversized, 2);
  EXPECT_EQ(parsed.not_utf8, 1);
}

TEST(WebSocketFrames, CloseCarriesItsCodeAndReason) {
  Parsed parsed = parse_frames(server_frame(Op::kClose, websocket_close_payload(1001, "going")));
  ASSERT_EQ(parsed.messages.size(), 1u);
  EXPECT_EQ(parsed.messages[0].close_code, 1001);
  EXPECT_EQ(parsed.messages[0].payload, "going");
  parsed = parse_frames(server_frame(Op::kClose, ""));
  EXPECT_EQ(parsed.messages.at(0).close_code, kCloseNoCode);
}

TEST(WebSocketFrames, AClientsFramesAreMasked) {
  EXPECT_EQ(websocket_frame(Op::kText, "Hello", 0x37fa213d),  // RFC 6455, 5.7
            std::string("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11));
}

TEST(WebSocketFrames, Utf8IsCheckedToTheLetter) {
  for (const char* good : {"", "a", "서울", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEF\xBF\xBF"})
    EXPECT_TRUE(valid_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\x80", "\xED\xA0\x80", "\xF0\x8F\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xE2\x28\xA1", "\xFF"})
    EXPECT_FALSE(valid_utf8(bad)) << bad;
}

TEST(WebSocketHandshake, KnowsTheAnswerOfTheRfcsExample) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(base64("a") + base64("ab") + base64("abc") + base64(""), "YQ==YWI=YWJj");
}

TEST(WebSocketHandshake, HoldsTheServerToItsAnswer) {
  const Handshake handshake = {"h:80", "/", "dGhlIHNhbXBsZSBub25jZQ==", ""};
  const std::string good = switching(handshake.request());
  EXPECT_TRUE(handshake.check(good).ok());
  const auto without = [&](const std::string& part, const std::string& instead) {
    std::string head = good;
    return handshake.check(head.replace(head.find(part), part.size(), instead)).code();
  };
  EXPECT_EQ(without("s3pPL", "S3pPL"), Code::kInvalidArgument);
  EXPECT_EQ(without("Upgrade: WebSocket", "Upgrade: h2c"), Code::kInvalidArgument);
  EXPECT_EQ(without("keep-alive, Upgrade", "keep-alive"), Code::kInvalidArgument);
  EXPECT_EQ(without("Upgrade:", "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade:"), Code::kInvalidArgument);
  EXPECT_EQ(without("HTTP/1.1 101", "HTTP/1.1 503"), Code::kUnavailable);
  EXPECT_EQ(without("HTTP/1.1 101", "HTTP/1.1 302"), Code::kFailedPrecondition);
  EXPECT_EQ(without("HTTP/1.1", "SMTP"), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
