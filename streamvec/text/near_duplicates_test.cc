#include "streamvec/text/near_duplicates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using Words = std::vector<std::string>;

Words drawn_text(uint64_t number, size_t words = 200, uint32_t vocabulary = 5'000) {
  Random random(mix(99, number));
  Words text(words);
  for (std::string& word : text) word = "w" + std::to_string(random.below(vocabulary));
  return text;
}

bool seen(NearDuplicates& memory, const Words& text) {
  return memory.seen_before(std::vector<std::string_view>(text.begin(), text.end()));
}

NearDuplicates memory_of(const NearDuplicates::Options& options = {}) {
  return NearDuplicates::create(options).value();
}

// The first `kept` of a text's words, then others.
Words with_another_end(Words text, size_t kept, uint64_t number) {
  const Words other = drawn_text(1'000'000 + number, text.size());
  std::copy(other.begin() + static_cast<std::ptrdiff_t>(kept), other.end(),
            text.begin() + static_cast<std::ptrdiff_t>(kept));
  return text;
}

TEST(NearDuplicates, ATextIsNewOnceAndKnownAfterwards) {
  NearDuplicates memory = memory_of();
  for (uint64_t i = 0; i < 200; ++i) EXPECT_FALSE(seen(memory, drawn_text(i))) << i;
  for (uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(seen(memory, drawn_text(i))) << i;
  EXPECT_EQ(memory.statistics().documents, 400);
  EXPECT_EQ(memory.statistics().equal, 200);
  EXPECT_EQ(memory.statistics().near, 0);
}

TEST(NearDuplicates, ANewHeadlineAndAnotherLastParagraphDoNotHideAStory) {
  NearDuplicates memory = memory_of();
  int found = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const Words story = drawn_text(i, 400);
    EXPECT_FALSE(seen(memory, story));
    Words again = with_another_end(story, 385, i);
    for (size_t word = 0; word < 8; ++word) again[word] = "new" + std::to_string(word);
    found += seen(memory, again);  // Jaccard 0.88
  }
  EXPECT_GE(found, 185);
  EXPECT_EQ(memory.statistics().near, found);
}

TEST(NearDuplicates, TextsThatShareHalfAreDifferent) {
  NearDuplicates memory = memory_of();
  int found = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_FALSE(seen(memory, drawn_text(i, 400)));
    found += seen(memory, with_another_end(drawn_text(i, 400), 260, i));  // Jaccard 0.48
  }
  EXPECT_LE(found, 1);
}

TEST(NearDuplicates, TheSameWordsInAnotherOrderAreAnotherText) {
  NearDuplicates memory = memory_of();
  Words text = drawn_text(1);
  EXPECT_FALSE(seen(memory, text));
  std::reverse(text.begin(), text.end());
  EXPECT_FALSE(seen(memory, text));
}

TEST(NearDuplicates, SimilarityMinDecides) {
  NearDuplicates strict = memory_of({.similarity_min = 1.0}), loose = memory_of({.similarity_min = 0.5});
  int strictly = 0, loosely = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    for (NearDuplicates* memory : {&strict, &loose}) EXPECT_FALSE(seen(*memory, drawn_text(i)));
    strictly += seen(strict, with_another_end(drawn_text(i), 180, i));
    loosely += seen(loose, with_another_end(drawn_text(i), 165, i));
  }
  EXPECT_EQ(strictly, 0);
  EXPECT_GE(loosely, 46);
}

TEST(NearDuplicates, ShortTextsAreAlwaysNew) {
  NearDuplicates memory = memory_of();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(seen(memory, {"good", "morning", "everybody"}));
    EXPECT_FALSE(seen(memory, {}));
  }
  NearDuplicates eager = memory_of({.words_min = 0});
  EXPECT_FALSE(seen(eager, {}));
  EXPECT_FALSE(seen(eager, {}));
  EXPECT_FALSE(seen(eager, {"good", "morning"}));
  EXPECT_TRUE(seen(eager, {"good", "morning"}));
  EXPECT_FALSE(seen(eager, {"good", "evening"}));
}

TEST(NearDuplicates, WhatIsOlderThanTheWindowsIsForgotten) {
  NearDuplicates memory = memory_of({.window = 10, .window_equal = 20});
  for (uint64_t i = 0; i < 15; ++i) EXPECT_FALSE(seen(memory, drawn_text(i)));
  EXPECT_TRUE(seen(memory, drawn_text(0))) << "equal";
  EXPECT_FALSE(seen(memory, with_another_end(drawn_text(0), 195, 0))) << "only alike";
  EXPECT_TRUE(seen(memory, with_another_end(drawn_text(14), 195, 0)));
  for (uint64_t i = 100; i < 120; ++i) EXPECT_FALSE(seen(memory, drawn_text(i)));
  EXPECT_FALSE(seen(memory, drawn_text(0)));
}

TEST(NearDuplicates, ManyTextsInOneBucketDoNotMakeItMissTheLatest) {
  NearDuplicates memory = memory_of({.words_min = 0});
  for (uint64_t i = 0; i < 500; ++i) {  // one shingle of many in common: some bands collide all the time
    Words text = drawn_text(i, 5);
    std::fill(text.begin(), text.begin() + 4, "menu");
    seen(memory, text);
  }
  const Words last = drawn_text(999, 300);
  EXPECT_FALSE(seen(memory, last));
  EXPECT_TRUE(seen(memory, with_another_end(last, 290, 1)));
}

TEST(NearDuplicates, GoesOnTheSameAfterARestart) {
  NearDuplicates before = memory_of({.window = 64, .window_equal = 100, .seed = 5});
  const auto text_at = [](uint64_t i) {
    return i % 3 == 0 ? with_another_end(drawn_text(i / 7), 190, i) : drawn_text(i % 5 == 0 ? i / 2 : i);
  };
  for (uint64_t i = 0; i < 500; ++i) seen(before, text_at(i));
  const std::string bytes = before.save();
  NearDuplicates after = NearDuplicates::restore({.window = 64, .window_equal = 100, .seed = 6}, bytes).value();
  EXPECT_EQ(after.save(), bytes);
  int found = 0;
  for (uint64_t i = 400; i < 900; ++i) {
    const bool known = seen(before, text_at(i));
    EXPECT_EQ(known, seen(after, text_at(i)));
    found += known;
  }
  EXPECT_GT(found, 100);
  EXPECT_EQ(before.save(), after.save());
}

TEST(NearDuplicates, SmallerWindowsKeepTheLatest) {
  NearDuplicates large = memory_of({.window = 64, .window_equal = 64});
  for (uint64_t i = 0; i < 60; ++i) seen(large, drawn_text(i));
  NearDuplicates little = NearDuplicates::restore({.window = 8, .window_equal = 8}, large.save()).value();
  for (uint64_t i = 52; i < 60; ++i) EXPECT_TRUE(seen(little, with_another_end(drawn_text(i), 196, i)));
  EXPECT_TRUE(seen(little, drawn_text(59)));
  EXPECT_FALSE(seen(little, drawn_text(0)));
}

TEST(NearDuplicates, EveryTruncationIsDataLoss) {
  NearDuplicates memory = memory_of();
  for (uint64_t i = 0; i < 3; ++i) seen(memory, drawn_text(i));
  const std::string bytes = memory.save();
  for (size_t length = 0; length < bytes.size(); ++length)
    ASSERT_EQ(NearDuplicates::restore({.window = 8, .window_equal = 8}, bytes.substr(0, length)).status().code(),
              Code::kDataLoss)
        << length;
  EXPECT_EQ(NearDuplicates::restore({}, bytes + "x").status().code(), Code::kDataLoss);
  for (size_t at = 0; at + 8 <= 64; at += 4) {  // huge counts, other versions
    std::string damaged = bytes;
    damaged.replace(at, 8, 8, '\x7F');
    (void)NearDuplicates::restore({.window = 8, .window_equal = 8}, damaged);
  }
}

TEST(NearDuplicates, OptionsOutOfRangeAreNamed) {
  for (const NearDuplicates::Options& options :
       {NearDuplicates::Options{.window = 0}, NearDuplicates::Options{.window_equal = -1},
        NearDuplicates::Options{.window = int64_t{1} << 40}, NearDuplicates::Options{.similarity_min = 0},
        NearDuplicates::Options{.similarity_min = 1.1}})
    EXPECT_EQ(NearDuplicates::create(options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
