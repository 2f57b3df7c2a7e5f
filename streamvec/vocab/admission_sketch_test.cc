#include "streamvec/vocab/admission_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// Hashes of made-up words: how often each of them came, by a Zipf law.
std::vector<int> zipf_counts(int types) {
  std::vector<int> counts;
  for (int i = 0; i < types; ++i) counts.push_back(1 + 20'000 / (i + 1));
  return counts;
}
uint64_t word(size_t i) {
  return mix(77, i);
}

TEST(AdmissionSketch, CountsExactlyWhileWordsAreFew) {
  AdmissionSketch sketch(1 << 20, 1);
  for (int times = 1; times <= 100; ++times)
    for (size_t i = 0; i < 50; ++i) ASSERT_EQ(sketch.add(word(i), 1), times);
  EXPECT_EQ(sketch.estimate(word(99)), 0);
}

TEST(AdmissionSketch, NeverCountsTooLowAndSeldomTooHighByMoreThanItsBound) {
  const std::vector<int> counts = zipf_counts(20'000);
  AdmissionSketch sketch(1 << 14, 3);  // 1,024 cells a row for 20,000 words
  ASSERT_EQ(sketch.width(), 1'024);
  double total = 0;
  for (int round = 0; round <= 20'000; ++round)  // in turns, so that words meet each other while they are small
    for (size_t i = 0; i < counts.size() && counts[i] > round; ++i, ++total) sketch.add(word(i), 1);
  const double bound = 4 * total / static_cast<double>(sketch.width());
  int above = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    ASSERT_GE(sketch.estimate(word(i)), static_cast<float>(counts[i]));
    above += sketch.estimate(word(i)) > counts[i] + bound;
  }
  EXPECT_LE(above, static_cast<int>(counts.size() / 16));
}

TEST(AdmissionSketch, ConservativeUpdateLeavesLargerCellsAlone) {
  AdmissionSketch sketch(0, 1);  // the least there is: 64 cells a row
  for (int i = 0; i < 1'000; ++i) sketch.add(word(0), 1);
  for (size_t i = 1; i < 200; ++i) sketch.add(word(i), 1);
  EXPECT_EQ(sketch.estimate(word(0)), 1'000) << "some of 199 words share a cell with it, none adds to it";
}

TEST(AdmissionSketch, RaisingKeepsWhatIsLarger) {
  AdmissionSketch sketch(1 << 16, 1);
  sketch.raise(word(1), 8);
  sketch.raise(word(1), 5);
  EXPECT_EQ(sketch.add(word(1), 1), 9);
}

TEST(AdmissionSketch, RescalesExactlyAndLetsTheSmallestGo) {
  AdmissionSketch sketch(1 << 16, 1);
  sketch.add(word(1), 3 * 0x1p64F);
  sketch.add(word(2), 5);
  sketch.rescale(64);
  EXPECT_EQ(sketch.estimate(word(1)), 3);
  EXPECT_EQ(sketch.estimate(word(2)), 5 * 0x1p-64F);
  sketch.rescale(66);
  EXPECT_EQ(sketch.estimate(word(2)), 0);
}

TEST(AdmissionSketch, TakesNoMoreThanItsBytes) {
  EXPECT_EQ(AdmissionSketch(1 << 20, 1).memory_bytes(), 1 << 20);
  EXPECT_EQ(AdmissionSketch((1 << 21) - 1, 1).memory_bytes(), 1 << 20);
}

TEST(AdmissionSketch, WordsChosenToRaiseAnothersEstimateUnderOneSeedDoNotUnderAnother) {
  AdmissionSketch known(0, 1), secret(0, 2);
  std::vector<uint64_t> planted;  // each shares a cell with the victim, and all its cells are shared
  const uint64_t victim = word(0);
  for (size_t row = 0; row < AdmissionSketch::kDepth; ++row) {
    for (size_t i = 1;; ++i) {
      AdmissionSketch alone(0, 1);
      alone.add(victim, 1);
      const size_t cell =
          row * 64 + static_cast<size_t>(std::find(alone.cells().begin() + static_cast<std::ptrdiff_t>(row * 64),
                                                   alone.cells().end(), 1.0F) -
                                         alone.cells().begin()) %
                         64;
      AdmissionSketch other(0, 1);
      other.add(word(row * 100'000 + i), 1);
      if (other.cells()[cell] == 0) continue;
      planted.push_back(word(row * 100'000 + i));
      break;
    }
  }
  for (const uint64_t hash : planted) {
    known.add(hash, 1'000);
    secret.add(hash, 1'000);
  }
  EXPECT_GE(known.estimate(victim), 1'000);
  EXPECT_EQ(secret.estimate(victim), 0);
}

}  // namespace
}  // namespace streamvec
