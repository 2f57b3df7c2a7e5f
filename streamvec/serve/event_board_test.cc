#include "streamvec/serve/event_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Listener final : EventReader {
  std::vector<std::string> kinds;
  std::string text;
  int64_t left = 1'000;  // events until it goes away
  bool ended = false;
  bool tell(const std::shared_ptr<const BoardEvent>& event) override {
    kinds.push_back(event->kind);
    text += *event->text;
    return --left > 0;
  }
  bool keep_alive() override { return left > 0; }
  bool is_there() const override { return left > 0; }
  void end() override { ended = true; }
};

struct Sink final : EventSink {
  std::string text;
  bool send(std::shared_ptr<const std::string> bytes) override {
    text += *bytes;
    return true;
  }
  bool is_open() const override { return true; }
  void end() override {}
};

TEST(EventBoard, TellsReadersTheKindsTheyWant) {
  EventBoard board;
  const auto all = std::make_shared<Listener>(), one = std::make_shared<Listener>();
  board.add_reader(all, {});
  board.add_reader(one, {"map"});
  board.tell("progress", {{"loss", 0.5}});
  board.tell("map", {{"x", 1}});
  EXPECT_THAT(all->kinds, ElementsAre("progress"));
  EXPECT_THAT(one->kinds, ElementsAre("map"));
}

TEST(EventBoard, TellsNewReadersTheLastOfEachKindInTheOrderOfTheirIds) {
  EventBoard board;
  board.tell("progress", {{"loss", 0.5}});
  board.tell("progress", {{"loss", 0.25}});
  board.tell("model", {{"number", 1}});
  const auto late = std::make_shared<Listener>();
  board.add_reader(late, {});
  EXPECT_THAT(late->kinds, ElementsAre("progress", "model"));
  EXPECT_THAT(late->text, HasSubstr("event: progress\ndata: {\"loss\":0.25}\n\n"));
}

TEST(EventBoard, KeepsEventsOnOneLineWhateverWordsAreInThem) {
  EventBoard board;
  const auto reader = std::make_shared<Listener>();
  board.add_reader(reader, {});
  board.tell("alert", {{"words", {"a\n\ndata: b", "\r", "\xff"}}});
  EXPECT_EQ(std::count(reader->text.begin(), reader->text.end(), '\n'), 4);
  EXPECT_EQ(reader->text.find('\r'), std::string::npos);
}

TEST(EventBoard, LeavesReadersThatAreGone) {
  EventBoard board;
  const auto reader = std::make_shared<Listener>();
  reader->left = 2;
  board.add_reader(reader, {});
  for (int i = 0; i < 5; ++i) board.tell("progress", {{"i", i}});
  EXPECT_EQ(reader->kinds.size(), 2u);
  EXPECT_EQ(board.readers(), 0);
}

TEST(EventBoard, TellsThatItIsAliveByAnEventThatScriptsSeeAndThatHasNoId) {
  EventBoard board;
  const auto sink = std::make_shared<Sink>();
  board.add_reader(sse_reader(sink), {"end"});
  board.keep_alive(std::chrono::steady_clock::now());
  EXPECT_EQ(sink->text, "retry: 2000\n\nevent: alive\ndata: {}\n\n");
}

TEST(EventBoard, EndsReadersWhoseTimeIsOver) {
  EventBoard board;
  const auto over = std::make_shared<Listener>(), silent = std::make_shared<Listener>(),
             lasting = std::make_shared<Listener>(), unbounded = std::make_shared<Listener>();
  const auto now_s = static_cast<int64_t>(unix_now());
  board.add_reader(reader_until(now_s - 1, over), {"progress"});
  board.add_reader(reader_until(now_s - 1, silent), {"end"});
  board.add_reader(reader_until(now_s + 1'000, lasting), {});
  board.add_reader(reader_until(0, unbounded), {});
  board.tell("progress", {{"loss", 0.5}});
  EXPECT_THAT(over->kinds, IsEmpty());
  EXPECT_TRUE(over->ended);
  EXPECT_THAT(lasting->kinds, ElementsAre("progress"));
  EXPECT_THAT(unbounded->kinds, ElementsAre("progress"));
  board.keep_alive(std::chrono::steady_clock::now());
  EXPECT_TRUE(silent->ended);
  EXPECT_FALSE(lasting->ended || unbounded->ended);
  EXPECT_EQ(board.readers(), 2);
}

TEST(EventBoard, EndsAReaderWhoComesTooLate) {
  EventBoard board;
  board.tell("progress", {{"loss", 0.5}});
  const auto late = std::make_shared<Listener>();
  board.add_reader(reader_until(1, late), {});
  EXPECT_THAT(late->kinds, IsEmpty());
  EXPECT_TRUE(late->ended);
}

TEST(EventBoard, RecallsWhatWasBeforeForThoseWhoComeAndTellsNobodyElse) {
  EventBoard board;
  const auto here = std::make_shared<Listener>(), late = std::make_shared<Listener>();
  board.add_reader(here, {});
  for (int i = 0; i < 3; ++i) board.recall("metrics", {{"i", i}}, true);
  board.add_reader(late, {});
  EXPECT_THAT(here->kinds, IsEmpty());
  EXPECT_THAT(late->text, HasSubstr("{\"i\":2}"));
  EXPECT_EQ(board.history("metrics", 10).size(), 3u);
  EXPECT_EQ(board.last("metrics")["i"], 2);
}

TEST(EventBoard, HasRoomForSoManyReaders) {
  EventBoard board({.readers_max = 2});
  EXPECT_TRUE(board.add_reader(std::make_shared<Listener>(), {}));
  EXPECT_TRUE(board.add_reader(std::make_shared<Listener>(), {}));
  EXPECT_FALSE(board.add_reader(std::make_shared<Listener>(), {}));
}

TEST(EventBoard, ReadersThatAreGoneMakeRoomAtOnce) {
  EventBoard board({.readers_max = 1});
  const auto first = std::make_shared<Listener>();
  EXPECT_TRUE(board.add_reader(first, {}));
  first->left = 0;
  EXPECT_EQ(board.readers(), 0);
  EXPECT_TRUE(board.add_reader(std::make_shared<Listener>(), {}));
}

TEST(EventBoard, RemembersWithinBoundsFromFirstToLast) {
  EventBoard board({.remembered_max = 50});
  for (int i = 0; i < 10'000; ++i) board.tell("progress", {{"i", i}}, true);
  const auto all = board.history("progress", 1'000);
  EXPECT_LE(all.size(), 100u);
  EXPECT_GE(all.size(), 50u);
  EXPECT_EQ(all.back()["i"], 9'999);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]["i"], all[i]["i"]);
  EXPECT_EQ(board.history("progress", 10).size(), 10u);
  EXPECT_EQ(board.history("progress", 10).back()["i"], 9'999);
  EXPECT_THAT(board.history("weather", 10), IsEmpty());
}

}  // namespace
}  // namespace streamvec
