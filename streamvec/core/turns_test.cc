#include "streamvec/core/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "streamvec/core/random.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

const auto kNever = [] { return false; };
const auto kNothing = [] {};

// In a thread of its own; tells when it begins.
std::thread step_of(Turns& turns, std::atomic<bool>& begun) {
  return std::thread([&] {
    turns.begin_step();
    begun = true;
    turns.end_step();
  });
}

TEST(Turns, AStepWaitsForTheExchangeOfTheLastOne) {
  Turns turns({.patience = 1e9, .wait_max_s = 100});
  turns.begin_step();
  turns.end_step();
  std::atomic<bool> begun = false;
  std::thread worker = step_of(turns, begun);
  EXPECT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(begun) << "while it is under way";
  turns.end_exchange([&] { EXPECT_FALSE(begun); });
  worker.join();
  EXPECT_TRUE(begun);
  EXPECT_GT(turns.waited_s(), 0);
}

TEST(Turns, KnowHowLongTheWorkerMightHaveBeenAtAStep) {
  Turns turns({});
  turns.begin_step();
  EXPECT_EQ(turns.idle_s(), 0);
  turns.end_step();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GE(turns.idle_s(), 0.02);
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(200));
  turns.end_exchange(kNothing);
  EXPECT_LT(turns.idle_s(), 0.2);
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  turns.end_exchange(kNothing);
  EXPECT_GE(turns.idle_s(), 0.02) << "that was of no step";
  turns.begin_step();
  EXPECT_EQ(turns.idle_s(), 0);
  turns.end_step();
}

// A node whose worker got no core for a while would otherwise begin an exchange of nothing just before its step.
TEST(Turns, AWorkerThatWaitsForItsStepIsNotIdle) {
  Turns turns({.patience = 1e9, .wait_max_s = 100});
  turns.begin_step();
  turns.end_step();
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_GT(turns.idle_s(), 0);
  std::thread worker([&] {
    turns.begin_step();
    turns.end_step();
  });
  EXPECT_TRUE(eventually("the worker to wait for its step", [&] { return turns.idle_s() == 0; }));
  turns.end_exchange(kNothing);
  worker.join();
}

TEST(Turns, WithoutPatienceOrAnybodyToWaitForStepsFollowEachOther) {
  Turns impatient({.patience = 0});
  Turns closed({.patience = 1e9, .wait_max_s = 100});
  closed.close();
  for (Turns* turns : {&impatient, &closed})
    for (int step = 0; step < 2; ++step) {
      turns->begin_step();
      turns->end_step();
      EXPECT_TRUE(turns->stepped());
    }
}

TEST(Turns, AnExchangeThatTakesTooLongIsNotWaitedForAgain) {
  Turns turns({.patience = 0.35, .wait_max_s = 2});
  const auto step = [&] {
    turns.begin_step();
    std::this_thread::sleep_for(milliseconds(2));
    turns.end_step();
  };
  step();
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(500));
  turns.end_exchange(kNothing);
  step();
  step();  // of the exchange nothing is seen yet, and it is known to take longer than a step
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  step();
  EXPECT_LT(turns.waited_s(), 1);
  turns.end_exchange(kNothing);
}

// As a node has whose text comes slowly: its next exchange, of nothing, begins as soon as the last has ended.
TEST(Turns, AStepDoesNotWaitForTheExchangesAfterThatOfTheLastOne) {
  Turns turns({.patience = 1e9, .wait_max_s = 1e9});
  turns.begin_step();
  turns.end_step();
  std::atomic<bool> begun = false;
  std::thread worker = step_of(turns, begun);
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  EXPECT_TRUE(eventually("the worker to wait for its step", [&] { return turns.idle_s() == 0; }));
  turns.end_exchange(kNothing);
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  EXPECT_TRUE(eventually("the step to begin", [&] { return begun.load(); }));
  turns.close();
  worker.join();
}

TEST(Turns, OneThatWasWaitedForInVainIsNotWaitedForUntilItHasEnded) {
  Turns turns({.patience = 1e9, .wait_max_s = 0.05});
  turns.begin_step();
  turns.end_step();
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    turns.begin_step();
    turns.end_step();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  turns.end_exchange(kNothing);
}

TEST(Turns, AStepThatAnExchangeDidNotKnowOfHasItsOwnBeforeTheNextStep) {
  Turns turns({.patience = 1e-9, .wait_max_s = 100});
  const auto step = [&] {
    turns.begin_step();
    turns.end_step();
  };
  step();
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(300));
  turns.end_exchange(kNothing);
  step();
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  step();  // goes on, as exchanges are known to take long
  turns.end_exchange(kNothing);
  std::atomic<bool> begun = false;
  std::thread worker = step_of(turns, begun);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(begun);
  EXPECT_TRUE(turns.begin_exchange(kNever, [&] { EXPECT_FALSE(begun); }));
  worker.join();
  turns.end_exchange(kNothing);
}

TEST(Turns, WhereAllExchangesAreAwaitedAStepWaitsHoweverLongTheyTake) {
  Turns turns({.patience = 0, .wait_max_s = 1e-3, .always = true});
  turns.begin_step();
  turns.end_step();
  std::atomic<bool> begun = false;
  std::thread worker = step_of(turns, begun);
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(30));
  turns.drop_exchange();
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(begun) << "what came to nothing is to be exchanged once more";
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  std::this_thread::sleep_for(milliseconds(30));
  turns.go_on([&] { EXPECT_FALSE(begun); });
  turns.end_exchange([&] { EXPECT_FALSE(begun); });
  worker.join();
  EXPECT_TRUE(begun);
}

TEST(Turns, WhereAllExchangesAreAwaitedNoStepBeginsInTheMidstOfOne) {
  Turns turns({.always = true});
  std::atomic<bool> ended = false;
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));  // of no step
  std::thread worker([&] {
    turns.begin_step();
    EXPECT_TRUE(ended);
    turns.end_step();
  });
  std::this_thread::sleep_for(milliseconds(30));
  turns.end_exchange([&] { ended = true; });
  worker.join();
}

// As begun by a node that has been told of no step for long. One that trained during an exchange which it has nothing
// in would leave slopes that the exchange's end takes for exchanged.
TEST(Turns, WhereAllExchangesAreAwaitedTheWorkersStepComesBeforeTheNextOne) {
  for (int turn = 0; turn < 50; ++turn) {
    Turns turns({.always = true});
    turns.begin_step();
    turns.end_step();
    std::atomic<bool> stepped = false;
    std::thread worker = step_of(turns, stepped);
    ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
    EXPECT_TRUE(eventually("the worker to wait for its step", [&] { return turns.idle_s() == 0; }));
    turns.end_exchange(kNothing);
    ASSERT_TRUE(turns.begin_exchange(kNever, [&] { EXPECT_TRUE(stepped); }));
    turns.end_exchange(kNothing);
    worker.join();
    EXPECT_FALSE(turns.stepped()) << "the exchange was of that step";
  }
}

TEST(Turns, AnExchangeGoesOnWhileTheWorkerIsAtNoStep) {
  Turns turns({.patience = 0});
  ASSERT_TRUE(turns.begin_exchange(kNever, kNothing));
  turns.begin_step();
  std::atomic<bool> ended = false;
  std::thread other([&] { turns.go_on([&] { EXPECT_TRUE(ended); }); });
  std::this_thread::sleep_for(milliseconds(30));
  ended = true;
  turns.end_step();
  other.join();
  turns.end_exchange(kNothing);
}

TEST(Turns, AnExchangeThatIsInterruptedHasNotBegun) {
  Turns turns({});
  turns.begin_step();
  EXPECT_FALSE(turns.begin_exchange([] { return true; }, [] { FAIL() << "while the worker is at a step"; }));
  turns.end_step();
  EXPECT_TRUE(turns.stepped()) << "it is still to be";
}

// The worker adds 1 in two moves, with the value odd between them; exchanges of any length look at it and change it
// between steps.
TEST(Turns, NobodyEverSeesHalfAStepAndNothingHangs) {
  for (const double patience : {0.0, 0.35, 1e9}) {
    Turns turns({.patience = patience, .wait_max_s = 0.01});
    int64_t value = 0;
    std::atomic<bool> done = false;
    std::thread other([&] {
      Random random(7);
      while (!done) {
        turns.await_step(0.001);
        if (!turns.begin_exchange([&] { return done.load(); }, [&] { EXPECT_EQ(value % 2, 0); })) continue;
        std::this_thread::sleep_for(microseconds(random.below(300)));
        if (random.below(8) == 0) {
          turns.drop_exchange();
          continue;
        }
        turns.end_exchange([&] {
          EXPECT_EQ(value % 2, 0);
          value += 1000;
        });
      }
    });
    for (int step = 0; step < 500; ++step) {
      turns.begin_step();
      ++value;
      ++value;
      turns.end_step();
    }
    done = true;
    other.join();
    EXPECT_EQ(value % 1000, 0) << "1,000 moves, and exchanges of 1,000";
  }
}

}  // namespace
}  // namespace streamvec
