#include "streamvec/train/feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace streamvec {
namespace {

// Gives the texts in order; fails, or has nothing to say yet, where it is told to.
class ScriptedSource final : public Source {
 public:
  explicit ScriptedSource(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  Result<int64_t> read(int64_t, Deadline, std::vector<Document>& out) override {
    ++reads;
    if (next_ == fail_at) return error(Code::kDataLoss, "text ", next_, " is damaged");
    if (silences > 0) {
      --silences;
      return error(Code::kDeadlineExceeded, "nothing yet");
    }
    if (next_ == texts_.size()) return 0;
    out.push_back({texts_[next_], std::to_string(next_)});
    ++next_;
    return 1;
  }
  Status seek(const std::string& cursor) override {
    next_ = cursor.empty() ? 0 : std::stoul(cursor) + 1;
    return {};
  }
  Capabilities capabilities() const override { return {.skips = skips}; }
  int64_t bytes_total() const override { return static_cast<int64_t>(texts_.size()); }
  int64_t bytes_read() const override { return static_cast<int64_t>(next_); }
  std::string name() const override { return "script"; }

  size_t fail_at = SIZE_MAX;
  int silences = 0;
  int reads = 0;
  bool skips = false;

 private:
  std::vector<std::string> texts_;
  size_t next_ = 0;
};

PieceResult tokens(int64_t count) {
  PieceResult result;
  result.tokens = count;
  return result;
}

TEST(Feed, GivesEveryTextOnceAnEpochToWhoeverAsks) {
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.push_back("text " + std::to_string(i));
  ScriptedSource source(texts);
  Feed feed(source, 3, RunState());
  std::mutex mutex;
  std::map<std::pair<int32_t, std::string>, int> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Piece piece;
      while (feed.next(piece)) {
        {
          const std::lock_guard lock(mutex);
          ++seen[{piece.epoch, piece.document.text}];
        }
        feed.finish(piece, tokens(2));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(feed.over());
  EXPECT_EQ(seen.size(), 150u);
  for (const auto& [piece, times] : seen) EXPECT_EQ(times, 1) << piece.second << " in epoch " << piece.first;
  EXPECT_EQ(feed.state().tokens, 300);
  EXPECT_EQ(feed.state().step, 150);
  EXPECT_EQ(feed.state().epoch, 3);
}

TEST(Feed, PauseWaitsForPiecesInHandAndKnowsTheLastOne) {
  ScriptedSource source({"a", "b", "c"});
  Feed feed(source, 1, RunState());
  Piece first, second;
  ASSERT_TRUE(feed.next(first));
  ASSERT_TRUE(feed.next(second));
  std::atomic<bool> paused = false;
  RunState state;
  std::thread watcher([&] {
    state = feed.pause();
    paused = true;
  });
  feed.finish(second, tokens(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(paused);
  feed.finish(first, tokens(1));
  watcher.join();
  EXPECT_EQ(state.cursor, "1");
  EXPECT_EQ(state.step, 2);
  feed.resume();
  Piece third;
  ASSERT_TRUE(feed.next(third));
  EXPECT_EQ(third.document.text, "c");
  feed.finish(third, tokens(1));
  EXPECT_FALSE(feed.next(third));
}

TEST(Feed, GoesOnWhereAStateLeftIt) {
  ScriptedSource source({"a", "b", "c"});
  RunState state;
  state.step = 4;
  state.epoch = 1;
  state.tokens = 4;
  state.epoch_tokens = 3;
  state.cursor = "0";
  ASSERT_TRUE(source.seek(state.cursor).ok());
  Feed feed(source, 2, state);
  Piece piece;
  ASSERT_TRUE(feed.next(piece));
  EXPECT_EQ(piece.document.text, "b");
  EXPECT_EQ(piece.epoch, 1);
  EXPECT_EQ(piece.step, 4);
  EXPECT_DOUBLE_EQ(piece.fraction, 4.0 / 6);
  feed.finish(piece, tokens(1));
}

TEST(Feed, EndsWithTheSourcesErrorAndWhatCameBeforeCounts) {
  ScriptedSource source({"a", "b"});
  source.fail_at = 1;
  Feed feed(source, 1, RunState());
  Piece piece;
  ASSERT_TRUE(feed.next(piece));
  feed.finish(piece, tokens(7));
  EXPECT_FALSE(feed.next(piece));
  EXPECT_EQ(feed.status().code(), Code::kDataLoss);
  EXPECT_EQ(feed.state().tokens, 7);
  EXPECT_EQ(feed.state().cursor, "0");
}

TEST(Feed, ASilentSourceDoesNotKeepItFromStopping) {
  ScriptedSource source({"a"});
  source.silences = 1'000'000'000;
  Feed feed(source, 1, RunState());
  std::thread worker([&] {
    Piece piece;
    EXPECT_FALSE(feed.next(piece));
  });
  feed.stop();
  worker.join();
  EXPECT_TRUE(feed.over());
  EXPECT_TRUE(feed.status().ok());
}

TEST(Feed, LossIsOfTheEpochThatRuns) {
  ScriptedSource source({"a"});
  Feed feed(source, 2, RunState());
  Piece piece;
  for (double loss : {10.0, 4.0}) {
    ASSERT_TRUE(feed.next(piece));
    PieceResult result;
    result.loss = loss;
    result.pairs = 2;
    feed.finish(piece, result);
    EXPECT_DOUBLE_EQ(feed.state().mean_loss(), loss / 2);
  }
  EXPECT_FALSE(feed.next(piece));
  EXPECT_DOUBLE_EQ(feed.state().mean_loss(), 2);
}

TEST(Feed, LaterEpochsComeWithoutTextOnceAllOfItIsKept) {
  ScriptedSource source({"a", "b"});
  Feed feed(source, 3, RunState());
  bool kept = false;
  feed.leave_out_text([&] { return kept; });
  std::vector<std::pair<std::string, std::string>> pieces;
  Piece piece;
  while (feed.next(piece)) {
    pieces.emplace_back(piece.document.cursor, piece.document.text);
    feed.finish(piece, tokens(1));
    kept = pieces.size() >= 4;
  }
  const std::vector<std::pair<std::string, std::string>> expected = {{"0", "a"}, {"1", "b"}, {"0", "a"},
                                                                     {"1", "b"}, {"0", ""},  {"1", ""}};
  EXPECT_EQ(pieces, expected);
  EXPECT_EQ(feed.state().step, 6);
}

TEST(Feed, AnEpochThatWasNotBegunHereIsReadAgain) {
  ScriptedSource source({"a", "b"});
  RunState state;
  state.cursor = "0";
  ASSERT_TRUE(source.seek("0").ok());
  Feed feed(source, 3, state);
  feed.leave_out_text([] { return true; });
  std::string texts;
  for (Piece piece; feed.next(piece); feed.finish(piece, tokens(1))) texts += piece.document.text + "|";
  EXPECT_EQ(texts, "b|a|b|||");
}

TEST(Feed, APieceComesWithoutTextOnlyAfterAllOthersWereKept) {
  ScriptedSource source({"a"});
  Feed feed(source, 2, RunState());
  std::atomic<bool> kept = false;
  feed.leave_out_text([&] { return kept.load(); });
  Piece first;
  ASSERT_TRUE(feed.next(first));
  std::thread other([&] {
    Piece piece;
    EXPECT_TRUE(feed.next(piece));
    EXPECT_TRUE(kept.load());
    EXPECT_EQ(piece.document.text, "");
    feed.finish(piece, tokens(1));
  });
  kept = true;
  feed.finish(first, tokens(1));
  other.join();
}

// Of 9 pieces of 3 epochs those that are finished are read past, however often the run is stopped on the way.
TEST(Feed, WhatIsFinishedAheadIsNeitherTrainedOnNorCountedAgain) {
  for (const int64_t pieces_of_a_run : {1, 2, 9}) {
    RunState state;
    state.step = 100;
    state.tokens = 4;
    state.epoch_tokens = 3;
    state.cursor = "0";
    state.finished_ahead = {{1, 2}, {3, 5}};
    std::string given;
    while (state.epoch < 3) {
      ScriptedSource source({"a", "b", "c"});
      ASSERT_TRUE(source.seek(state.cursor).ok());
      Feed feed(source, 3, state);
      EXPECT_EQ(feed.state().finished_ahead, state.finished_ahead);
      Piece piece;
      for (int64_t i = 0; i < pieces_of_a_run && feed.next(piece); ++i) {
        given += std::to_string(piece.epoch) + piece.document.text + std::to_string(piece.step) + " ";
        feed.finish(piece, tokens(1));
      }
      state = feed.pause();
    }
    EXPECT_EQ(given, "0b100 1a102 2a105 2b106 2c107 ");
    EXPECT_EQ(state.tokens, 9);
    EXPECT_EQ(state.step, 108);
    EXPECT_TRUE(state.finished_ahead.empty());
    EXPECT_DOUBLE_EQ(state.fraction(3), 1);
  }
}

TEST(Feed, AnEpochOfWhichSomethingWasPassedOverIsReadAgain) {
  ScriptedSource source({"a", "b"});
  RunState state;
  state.finished_ahead = {{1, 2}};
  Feed feed(source, 3, state);
  feed.leave_out_text([] { return true; });
  std::string texts;
  for (Piece piece; feed.next(piece); feed.finish(piece, tokens(1))) texts += piece.document.text + "|";
  EXPECT_EQ(texts, "a|a|b|||");
}

class HandedOut : public ::testing::Test {
 protected:
  HandedOut() : source(texts()) {}
  static std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (int i = 0; i < 5; ++i) texts.push_back("text " + std::to_string(i));
    return texts;
  }
  void give(std::vector<PieceRange> pieces, TextStanding standing = {}) { queue.give(pieces, standing, 2); }
  std::string next_text(Feed& feed) {
    if (!feed.next(piece)) return "";
    feed.finish(piece, tokens(1));
    return std::to_string(piece.epoch) + ": " + piece.document.text;
  }

  ScriptedSource source;
  PieceQueue queue{1};
  Piece piece;
};

TEST_F(HandedOut, PiecesOfAnyEpochAreFoundForwardsAndBackwards) {
  Feed feed(source, 3, RunState());
  feed.follow(queue, 5, 0);
  give({{1, 2}, {8, 9}, {2, 3}, {14, 15}, {0, 1}});
  for (const char* text : {"0: text 1", "1: text 3", "0: text 2", "2: text 4", "0: text 0"})
    EXPECT_EQ(next_text(feed), text);
  EXPECT_EQ(piece.step, 0);
  queue.end(PieceQueue::Next::kOver);
  EXPECT_EQ(next_text(feed), "");
  EXPECT_EQ(feed.state().epoch, 3);
  EXPECT_TRUE(feed.over());
}

class HandedOutOfMany : public HandedOut {
 protected:
  static constexpr int64_t kTexts = 40;
  HandedOutOfMany() {
    std::vector<std::string> texts;
    for (int i = 0; i < kTexts; ++i) texts.push_back("text " + std::to_string(i));
    source = ScriptedSource(texts);
  }
  // What a pass over the text before training has noted.
  CursorTrail counted() {
    Feed counting(source, 1, RunState());
    counting.keep_trail();
    for (Piece each; counting.next(each);) counting.finish(each, tokens(1));
    EXPECT_TRUE(source.seek("").ok());
    source.reads = 0;
    return counting.take_trail();
  }
};

TEST_F(HandedOutOfMany, PiecesOfOthersAreNotReadWhereTheSourceCanPassOverThem) {
  source.skips = true;
  CursorTrail trail = counted();
  Feed feed(source, 2, RunState());
  feed.follow(queue, kTexts, 0, std::move(trail));
  give({{30, 32}, {45, 46}, {79, 80}});
  for (const char* text : {"0: text 30", "0: text 31", "1: text 5", "1: text 39"}) EXPECT_EQ(next_text(feed), text);
  EXPECT_EQ(source.reads, 4);
}

TEST_F(HandedOutOfMany, ASourceThatReadsToSeekIsReadOn) {
  CursorTrail trail = counted();
  Feed feed(source, 1, RunState());
  feed.follow(queue, kTexts, 0, std::move(trail));
  give({{30, 31}});
  EXPECT_EQ(next_text(feed), "0: text 30");
  EXPECT_EQ(source.reads, 31);
}

TEST_F(HandedOut, AClusterThatHasFailedEndsTheTextUnfinished) {
  Feed feed(source, 3, RunState());
  feed.follow(queue, 5, 0);
  queue.end(PieceQueue::Next::kStopped);
  EXPECT_EQ(next_text(feed), "");
  EXPECT_EQ(feed.state().epoch, 0);
}

TEST_F(HandedOut, TheRateGoesByAPiecesPlaceAndProgressByTheWordsOfAllNodes) {
  RunState state;
  state.epoch_tokens = 100;
  Feed feed(source, 2, state);
  feed.follow(queue, 5, 0);
  give({{3, 4}, {9, 10}}, {0, 60, 0});
  EXPECT_DOUBLE_EQ(feed.fraction(), 0.3);
  next_text(feed);
  EXPECT_DOUBLE_EQ(piece.fraction, 0.3);
  EXPECT_DOUBLE_EQ(feed.fraction(), 0.31) << "a word here, and as many on the other node";
  next_text(feed);
  EXPECT_DOUBLE_EQ(piece.fraction, 0.9);
}

TEST_F(HandedOut, ACheckpointStandsWhereAllNodesHaveFinished) {
  Feed feed(source, 2, RunState());
  feed.follow(queue, 5, 0);
  give({{2, 5}, {6, 8}});
  for (int i = 0; i < 5; ++i) next_text(feed);
  give({}, {3, 40, 7});
  EXPECT_EQ(feed.whole_state().cursor, "2");
  EXPECT_EQ(feed.whole_state().epoch, 0);
  EXPECT_EQ(feed.whole_state().step, 3);
  EXPECT_EQ(feed.whole_state().tokens, 40);
  give({}, {7, 50, 9});
  EXPECT_EQ(feed.whole_state().cursor, "1");
  EXPECT_EQ(feed.whole_state().epoch, 1);
  EXPECT_EQ(feed.whole_state().step, 7);
  give({}, {10, 60, 9});
  EXPECT_EQ(feed.whole_state().cursor, "");
  EXPECT_EQ(feed.whole_state().epoch, 2);
}

TEST_F(HandedOut, ACheckpointKnowsWhatIsFinishedBeyondItsPlace) {
  Feed feed(source, 2, RunState());
  feed.follow(queue, 5, 0);
  give({{3, 4}}, {3, 40, 7, {{4, 6}, {8, 9}}});
  EXPECT_EQ(feed.whole_state().step, 0) << "where the third piece begins is not known";
  EXPECT_EQ(feed.whole_state().finished_ahead, (std::vector<PieceRange>{{0, 3}, {4, 6}, {8, 9}}));
  next_text(feed);
  EXPECT_EQ(feed.whole_state().step, 3);
  EXPECT_EQ(feed.whole_state().finished_ahead, (std::vector<PieceRange>{{1, 3}, {5, 6}}));
  give({}, {10, 60, 9});
  EXPECT_TRUE(feed.whole_state().finished_ahead.empty());
}

TEST_F(HandedOut, BeforeAnythingIsToldACheckpointIsTheOneItBeganWith) {
  RunState state;
  state.step = 16;
  state.epoch = 1;
  state.tokens = 7;
  state.cursor = "1";
  state.finished_ahead = {{0, 1}, {2, 4}};
  ASSERT_TRUE(source.seek(state.cursor).ok());
  Feed feed(source, 3, state);
  feed.follow(queue, 5, 7);
  for (const TextStanding& told : {TextStanding{}, TextStanding{8, 7, 0, {{9, 11}}}}) {
    give({}, told);
    EXPECT_EQ(feed.whole_state().step, 16);
    EXPECT_EQ(feed.whole_state().cursor, "1");
    EXPECT_EQ(feed.whole_state().tokens, 7);
    EXPECT_EQ(feed.whole_state().finished_ahead, state.finished_ahead);
  }
}

TEST_F(HandedOut, GoesOnWhereAStateLeftIt) {
  RunState state;
  state.step = 16;
  state.epoch = 1;
  state.tokens = 7;
  state.cursor = "1";
  ASSERT_TRUE(source.seek(state.cursor).ok());
  Feed feed(source, 3, state);
  feed.follow(queue, 5, 7);
  give({{7, 9}, {10, 11}});
  EXPECT_EQ(next_text(feed), "1: text 2");
  EXPECT_EQ(piece.step, 16);
  EXPECT_EQ(next_text(feed), "1: text 3");
  give({}, {9, 60, 9});
  EXPECT_EQ(feed.whole_state().step, 18);
  EXPECT_EQ(feed.whole_state().cursor, "3");
  EXPECT_EQ(next_text(feed), "2: text 0");
  EXPECT_EQ(piece.step, 19);
  EXPECT_EQ(feed.own().tokens, 3);
  EXPECT_EQ(feed.whole_state().step, 18);
}

TEST_F(HandedOut, ATextThatHasBecomeShorterIsAnError) {
  Feed feed(source, 1, RunState());
  feed.follow(queue, 7, 0);
  give({{6, 7}});
  EXPECT_EQ(next_text(feed), "");
  EXPECT_EQ(feed.status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace streamvec
