#include "streamvec/source/live/sse_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> shown(const std::vector<SseEvent>& events) {
  std::vector<std::string> result;
  for (const SseEvent& event : events) result.push_back(event.type + "|" + event.id + "|" + event.data);
  return result;
}

std::vector<std::string> parse_events(std::string_view bytes, size_t piece = 1 << 20) {
  SseParser parser(1 << 20);
  std::vector<SseEvent> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    parser.feed(bytes.substr(0, piece), events);
  return shown(events);
}

TEST(SseParser, JoinsDataLinesAndKeepsTheLastId) {
  EXPECT_THAT(parse_events("data: one\ndata\ndata:  two\n\nid: 7\nevent: add\ndata:x\n\ndata: y\n\n"),
              ElementsAre("message||one\n\n two", "add|7|x", "message|7|y"));
}

TEST(SseParser, LinesEndWithCrLfOrBoth) {
  EXPECT_THAT(parse_events("data: a\r\rdata: b\n\ndata: c\r\n\r\ndata: d\r\ndata: e\n\r"),
              ElementsAre("message||a", "message||b", "message||c", "message||d\ne"));
}

TEST(SseParser, GivesTheSameEventsHoweverTheBytesAreCut) {
  const std::string stream =
      "\xEF\xBB\xBF: hello\r\nid: [{\"topic\":\"t\",\"offset\":5}]\r\ndata: {\"a\":1}\r\n\r\n:\n\nevent: x\rdata: "
      "서울\r\rdata\n\n"
      "data: last\n\n";
  const std::vector<std::string> whole = parse_events(stream);
  ASSERT_EQ(whole.size(), 3u);
  for (size_t piece = 1; piece < stream.size(); ++piece) EXPECT_EQ(parse_events(stream, piece), whole) << piece;
}

TEST(SseParser, PassesOverAMarkOnlyAtTheBeginning) {
  EXPECT_THAT(parse_events("\xEF\xBB\xBF"
                           "data: a\n\n\xEF\xBB\xBF"
                           "data: b\n\n"),
              ElementsAre("message||a"));
}

TEST(SseParser, AnEventWithoutDataMovesTheIdAndIsNone) {
  SseParser parser(100);
  std::vector<SseEvent> events;
  parser.feed("id: 3\nevent: x\n\n", events);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(parser.last_id(), "3");
}

TEST(SseParser, AnIdWithNulAndARetryThatIsNoNumberAreIgnored) {
  SseParser parser(100);
  std::vector<SseEvent> events;
  parser.feed(std::string_view("id: 1\0002\nretry: 10x\ndata: a\n\n", 28), events);
  EXPECT_EQ(parser.last_id(), "");
  EXPECT_FALSE(parser.retry_ms().has_value());
  parser.feed("retry: 250\nid: 9\nid\n\n", events);
  EXPECT_EQ(parser.retry_ms(), 250);
  EXPECT_EQ(parser.last_id(), "");
}

TEST(SseParser, AnEventThatIsTooLargeIsCountedAndTheNextOneRead) {
  SseParser parser(64);
  std::vector<SseEvent> events;
  for (int i = 0; i < 50; ++i) parser.feed("data: 0123456789\n", events);
  parser.feed("\ndata: " + std::string(500, 'x'), events);
  parser.feed("\nid: 4\n\nid: 5\ndata: small\n\n", events);
  EXPECT_THAT(shown(events), ElementsAre("message|5|small"));
  EXPECT_EQ(parser.oversized(), 2);
}

TEST(SseParser, ANewConnectionForgetsHalfAnEvent) {
  SseParser parser(100);
  std::vector<SseEvent> events;
  parser.feed("id: 1\ndata: a\n\nid: 2\ndata: half", events);
  parser.restart();
  parser.feed("data: b\n\n", events);
  EXPECT_THAT(shown(events), ElementsAre("message|1|a", "message|1|b"));
}

}  // namespace
}  // namespace streamvec
