#include "streamvec/model/window_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::chunk_of;
using ::testing::ElementsAre;
using testing::equal_words;
using ::testing::IsEmpty;
using testing::plans_of;

// A text in which every slot comes once, so that slots are positions. Sentence lengths as given.
Chunk positions_in(const std::vector<int32_t>& lengths) {
  Chunk chunk;
  for (const int32_t length : lengths) {
    for (int32_t i = 0; i < length; ++i) chunk.slots.push_back(static_cast<Slot>(chunk.slots.size()));
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  return chunk;
}

// Pairs (centre's position, the other's position) of all blocks.
std::vector<std::pair<Slot, Slot>> pairs_of(const std::vector<WindowPlan>& plans) {
  std::vector<std::pair<Slot, Slot>> pairs;
  for (const WindowPlan& plan : plans)
    for (const WindowPlan::Window& window : plan.windows)
      for (int32_t j = window.begin; j < window.end; ++j)
        if (j != window.centre) pairs.emplace_back(plan.columns[window.centre], plan.columns[j]);
  return pairs;
}

std::vector<Slot> centres_of(const std::vector<WindowPlan>& plans) {
  std::vector<Slot> centres;
  for (const WindowPlan& plan : plans)
    for (const WindowPlan::Window& window : plan.windows) centres.push_back(plan.columns[window.centre]);
  return centres;
}

TEST(WindowPlanner, WindowsNeverCrossSentenceEnds) {
  const std::vector<int32_t> lengths{3, 1, 40, 2, 2, 2, 17, 100, 1, 1, 5};
  const Chunk chunk = positions_in(lengths);
  const SamplingTables tables(equal_words(static_cast<int32_t>(chunk.slots.size())), 0);
  std::vector<size_t> sentence_of;
  for (size_t s = 0; s < lengths.size(); ++s) sentence_of.insert(sentence_of.end(), static_cast<size_t>(lengths[s]), s);
  for (const int32_t window : {1, 5, 20})
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const auto& [centre, other] : pairs_of(plans_of(chunk, tables, {.window = window}, seed))) {
        ASSERT_EQ(sentence_of[centre], sentence_of[other]);
        ASSERT_LE(std::abs(centre - other), window);
      }
}

TEST(WindowPlanner, EveryKeptTokenIsACentreOnceInOrder) {
  const Chunk chunk = positions_in({2, 40, 3, 500, 7, 2});
  const SamplingTables tables(equal_words(static_cast<int32_t>(chunk.slots.size())), 0);
  for (const int32_t centres : {0, 1, 3, 16, 1000})
    EXPECT_EQ(centres_of(plans_of(chunk, tables, {.window = 4, .centres = centres}, 3)), chunk.slots) << centres;
}

TEST(WindowPlanner, SubsampledTokensAreCentresOnceAndNeighboursCloseUp) {
  // The frequent words 0 and 1 are mostly left out; the rare ones between them come next to each other.
  const Vocabulary vocabulary = testing::vocabulary_of({500'000, 499'000, 1, 1});
  const SamplingTables tables(vocabulary, 1e-5);
  std::vector<Slot> sentence;
  for (int i = 0; i < 400; ++i) sentence.insert(sentence.end(), {0, 1, 0, 2 + i % 2});
  const std::vector<WindowPlan> plans = plans_of(chunk_of({sentence}), tables, {.window = 1}, 5);
  const std::vector<Slot> centres = centres_of(plans);
  EXPECT_EQ(std::count_if(centres.begin(), centres.end(), [](Slot slot) { return slot >= 2; }), 400);
  const auto pairs = pairs_of(plans);
  EXPECT_GT(std::count(pairs.begin(), pairs.end(), std::pair<Slot, Slot>(2, 3)), 300);
}

TEST(WindowPlanner, SubsamplingKeepsWithWord2vecsProbability) {
  const Vocabulary vocabulary = testing::vocabulary_of({60'000, 30'000, 9'000, 1'000});
  const double sample = 1e-2;
  const SamplingTables tables(vocabulary, sample);
  std::vector<Slot> sentence;
  constexpr int kTimes = 50'000;
  for (int i = 0; i < kTimes; ++i) sentence.insert(sentence.end(), {0, 1, 2, 3});
  std::map<Slot, double> seen;
  for (const Slot slot : centres_of(plans_of(chunk_of({sentence}), tables, {}, 7))) ++seen[slot];
  for (Slot slot = 0; slot < 4; ++slot) {
    const double f = static_cast<double>(vocabulary.count(slot)) / 1e5;
    const double p = std::min(1.0, (std::sqrt(f / sample) + 1) * sample / f);
    EXPECT_NEAR(seen[slot], kTimes * p, 5 * std::sqrt(kTimes * p * (1 - p)) + 1e-9) << "slot " << slot;
  }
}

TEST(WindowPlanner, ReachIsUniformInOneToWindow) {
  constexpr int32_t kTokens = 100'000;
  const Chunk chunk = positions_in({kTokens});
  const SamplingTables tables(equal_words(kTokens, 1), 0);
  for (const int32_t window : {1, 2, 5, 13}) {
    std::vector<double> seen(static_cast<size_t>(window) + 1);
    for (const WindowPlan& plan : plans_of(chunk, tables, {.window = window}, 11))
      for (const auto& [centre, begin, end] : plan.windows) {
        const Slot position = plan.columns[centre];
        if (position < window || position >= kTokens - window) continue;
        ASSERT_EQ(centre - begin, end - 1 - centre) << "the same to both sides";
        ++seen[static_cast<size_t>(centre - begin)];
      }
    EXPECT_EQ(seen[0], 0);
    const double expected = static_cast<double>(kTokens - 2 * window) / window;
    double chi_square = 0;
    for (int32_t reach = 1; reach <= window; ++reach) chi_square += std::pow(seen[reach] - expected, 2) / expected;
    EXPECT_LT(chi_square, window - 1 + 4 * std::sqrt(2.0 * window)) << "window " << window;
  }
}

TEST(WindowPlanner, APairAtDistanceDComesWithProbabilityWindowMinusDPlusOneThroughWindow) {
  constexpr int32_t kWindow = 6, kTimes = 4'000;
  const Chunk chunk = positions_in({3, 9, 30});
  const SamplingTables tables(equal_words(42), 0);
  std::map<std::pair<Slot, Slot>, double> seen;
  for (uint64_t seed = 0; seed < kTimes; ++seed)
    for (const auto& pair : pairs_of(plans_of(chunk, tables, {.window = kWindow}, seed))) ++seen[pair];
  const auto sentence = [](Slot position) { return position < 3 ? 0 : position < 12 ? 1 : 2; };
  for (Slot a = 0; a < 42; ++a)
    for (Slot b = 0; b < 42; ++b) {
      const int32_t distance = std::abs(a - b);
      const bool together = a != b && distance <= kWindow && sentence(a) == sentence(b);
      const double p = together ? static_cast<double>(kWindow - distance + 1) / kWindow : 0;
      EXPECT_NEAR((seen[{a, b}]), kTimes * p, 5 * std::sqrt(kTimes * p * (1 - p))) << a << ", " << b;
    }
}

TEST(WindowPlanner, NegativesFollowCountsToTheThreeQuarters) {
  std::vector<int64_t> counts;
  for (int64_t i = 1; i <= 60; ++i) counts.push_back(100'000 / i);
  const Vocabulary vocabulary = testing::vocabulary_of(counts);
  const SamplingTables tables(vocabulary, 0);
  std::vector<double> seen(counts.size());
  double drawn = 0;
  const Chunk chunk = testing::random_chunk(60, 40'000, 1);
  for (const WindowPlan& plan : plans_of(chunk, tables, {.negatives_shared = 32}, 13)) {
    ASSERT_EQ(plan.negatives.size(), 32);
    for (const Slot slot : plan.negatives) {
      ++seen[slot];
      ++drawn;
    }
  }
  double sum = 0, chi_square = 0;
  for (const int64_t count : counts) sum += std::pow(count, 0.75);
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = drawn * std::pow(counts[i], 0.75) / sum;
    chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  // Drawn from strata, so the statistic may lie below its mean, never far above it.
  EXPECT_LT(chi_square, 59 + 4 * std::sqrt(2.0 * 59));
}

TEST(WindowPlanner, BlocksAreWithinTheirColumnsAndCountTheirPairs) {
  const Chunk chunk = testing::random_chunk(50, 2'000, 2);
  const SamplingTables tables(equal_words(50), 0);
  for (const int32_t window : {1, 5, 30}) {
    const WindowOptions options = settled({.window = window});
    for (const WindowPlan& plan : plans_of(chunk, tables, options, 17)) {
      EXPECT_LE(plan.windows.size(), static_cast<size_t>(options.centres));
      EXPECT_LE(plan.columns.size(), static_cast<size_t>(options.centres + 2 * window));
      EXPECT_EQ(plan.negatives.size(), static_cast<size_t>(options.negatives_shared));
      int64_t pairs = 0;
      for (const auto& [centre, begin, end] : plan.windows) {
        ASSERT_LE(0, begin);
        ASSERT_LE(begin, centre);
        ASSERT_LT(centre, end);
        ASSERT_LE(end, static_cast<int32_t>(plan.columns.size()));
        pairs += end - begin - 1;
      }
      EXPECT_EQ(plan.pairs, pairs);
      EXPECT_GT(plan.pairs, 0);
    }
  }
}

TEST(WindowPlanner, TextWithoutPairsGivesNoBlock) {
  const SamplingTables tables(equal_words(10), 0);
  EXPECT_THAT(plans_of(Chunk{}, tables, {}, 1), IsEmpty());
  EXPECT_THAT(plans_of(chunk_of({{}, {}, {}}), tables, {}, 1), IsEmpty());
  EXPECT_THAT(plans_of(chunk_of({{3}}), tables, {}, 1), IsEmpty());
  const std::vector<std::vector<Slot>> lonely(200, {4});
  EXPECT_THAT(plans_of(chunk_of(lonely), tables, {}, 1), IsEmpty());
}

TEST(WindowPlanner, EmptyAndOneWordSentencesBetweenOthersAreHarmless) {
  const SamplingTables tables(equal_words(10), 0);
  const auto pairs = pairs_of(plans_of(chunk_of({{}, {0}, {1, 2}, {}, {3}, {}}), tables, {.window = 3}, 1));
  EXPECT_THAT(pairs, ElementsAre(std::pair(1, 2), std::pair(2, 1)));
}

TEST(WindowPlanner, ATextThatIsAllSubsampledAwayGivesNoBlock) {
  const SamplingTables tables(testing::vocabulary_of({1'000'000}), 1e-12);
  EXPECT_THAT(plans_of(chunk_of({std::vector<Slot>(1'000, 0)}), tables, {}, 1), IsEmpty());
}

bool operator==(const WindowPlan& a, const WindowPlan& b) {
  const auto same = [](const WindowPlan::Window& one, const WindowPlan::Window& other) {
    return one.centre == other.centre && one.begin == other.begin && one.end == other.end;
  };
  return a.columns == b.columns && a.negatives == b.negatives && a.pairs == b.pairs &&
         std::equal(a.windows.begin(), a.windows.end(), b.windows.begin(), b.windows.end(), same);
}

TEST(WindowPlanner, TheSameSeedGivesTheSameBlocksWhateverWasPlannedBefore) {
  const Vocabulary vocabulary = equal_words(50);
  const SamplingTables tables(vocabulary, 1e-2);
  const Chunk chunk = testing::random_chunk(50, 1'000, 3), other = testing::random_chunk(50, 300, 4);
  const std::vector<WindowPlan> first = plans_of(chunk, tables, {}, 19);
  WindowPlanner used(settled({}));
  Random elsewhere(1), random(19);
  WindowPlan plan;
  used.begin(other, tables, elsewhere);
  used.next(plan);  // and left in the middle
  used.begin(chunk, tables, random);
  for (const WindowPlan& wanted : first) {
    ASSERT_TRUE(used.next(plan));
    EXPECT_TRUE(plan == wanted);
  }
  EXPECT_FALSE(used.next(plan));
  EXPECT_FALSE(used.next(plan)) << "the end stays the end";
  EXPECT_FALSE(plans_of(chunk, tables, {}, 20)[0] == first[0]) << "another seed draws otherwise";
}

TEST(Settled, FillsTheKernelsTilesForEveryWindow) {
  for (int32_t window = 1; window <= 50; ++window)
    for (int32_t negatives = 0; negatives <= 25; ++negatives) {
      const WindowOptions options = settled({.window = window, .negatives = negatives});
      EXPECT_EQ((options.centres + 2 * window) % 16, 0) << window;
      EXPECT_GE(options.centres, 1) << window;
      EXPECT_EQ(options.window, window);
      EXPECT_EQ(options.negatives, negatives);
      if (negatives > 0)
        EXPECT_GE(options.negatives_shared, 1) << window << ", " << negatives;
      else
        EXPECT_EQ(options.negatives_shared, 0);
    }
}

TEST(Settled, LeavesWhatIsGivenAndWhatIsSettled) {
  const WindowOptions given{.window = 7, .negatives = 3, .centres = 5, .negatives_shared = 9};
  const WindowOptions options = settled(given);
  EXPECT_EQ(options.centres, 5);
  EXPECT_EQ(options.negatives_shared, 9);
  const WindowOptions once = settled({}), twice = settled(once);
  EXPECT_EQ(once.centres, twice.centres);
  EXPECT_EQ(once.negatives_shared, twice.negatives_shared);
}

TEST(Settled, AnInputMeetsAtLeastTheNegativesItWouldMeetAlone) {
  // A word stands in window + 1 windows on average, and in (centres + 2 window) / centres blocks.
  for (int32_t window = 1; window <= 50; ++window)
    for (const int32_t negatives : {1, 5, 10, 25}) {
      const WindowOptions options = settled({.window = window, .negatives = negatives});
      const double blocks = (options.centres + 2.0 * window) / options.centres;
      EXPECT_GE(options.negatives_shared * blocks, negatives * (window + 1.0)) << window << ", " << negatives;
    }
}

}  // namespace
}  // namespace streamvec
