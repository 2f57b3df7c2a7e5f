#include "streamvec/vocab/stream_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/vocab/stream_vocabulary_testing.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Options = StreamVocabulary::Options;
using Words = std::vector<std::string_view>;

TEST(StreamVocabulary, AdmitsAWordAtItsMinCountthOccurrence) {
  for (const int64_t vocab_max : {0, 10}) {
    StreamVocabulary vocabulary({.min_count = 3, .vocab_max = vocab_max});
    EXPECT_THAT(map(vocabulary, {"a", "b", "a"}), ElementsAre(kNoSlot, kNoSlot, kNoSlot));
    std::vector<Slot> admitted;
    EXPECT_THAT(map(vocabulary, {"a", "a", "b", "b"}, 0, &admitted), ElementsAre(0, 0, kNoSlot, 1));
    EXPECT_THAT(admitted, ElementsAre(0, 1));
    EXPECT_EQ(vocabulary.weight(0), 4);
    EXPECT_EQ(vocabulary.weight(1), 3);
    EXPECT_EQ(vocabulary.word(1), "b");
    EXPECT_EQ(vocabulary.find("a"), 0);
    EXPECT_EQ(vocabulary.find("c"), kNoSlot);
  }
}

TEST(StreamVocabulary, WithMinCountOneEveryWordIsAdmittedAtOnce) {
  StreamVocabulary vocabulary({.min_count = 1});
  EXPECT_THAT(map(vocabulary, {"a", "b", "a", ""}), ElementsAre(0, 1, 0, kNoSlot));
}

TEST(StreamVocabulary, WithoutLimitsTheWordsAndCountsAreThoseOfACountingPass) {
  const std::vector<std::string> text = zipf_text(40'000, 3'000, 1);
  const Words words(text.begin(), text.end());
  StreamVocabulary vocabulary({.min_count = 3});
  for (size_t begin = 0; begin < words.size(); begin += 777)
    map(vocabulary, Words(words.begin() + static_cast<std::ptrdiff_t>(begin),
                          words.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 777, words.size()))));
  WordCounter counter;
  counter.add(words);
  const Vocabulary counted = counter.make_vocabulary({.min_count = 3});
  const Vocabulary streamed = vocabulary.to_vocabulary();
  ASSERT_EQ(streamed.size(), counted.size());
  ASSERT_EQ(streamed.tokens(), counted.tokens());
  for (Slot slot = 0; slot < counted.size(); ++slot)
    ASSERT_EQ(streamed.count(streamed.find(counted.word(slot))), counted.count(slot));
  EXPECT_EQ(vocabulary.statistics().evicted, 0);
}

TEST(StreamVocabulary, WhenAllWordsFitALimitChangesNothing) {
  const std::vector<std::string> text = zipf_text(40'000, 3'000, 1);
  const Words words(text.begin(), text.end());
  StreamVocabulary plain({.min_count = 3}), limited({.min_count = 3, .vocab_max = 3'000});
  EXPECT_EQ(map(plain, words), map(limited, words));
  EXPECT_EQ(plain.weights(), limited.weights());
}

TEST(StreamVocabulary, CountsAreHalvedByAHalfLife) {
  StreamVocabulary vocabulary({.min_count = 1, .half_life = 100});
  map(vocabulary, {"a", "a", "a", "a"}, 1'000);
  EXPECT_DOUBLE_EQ(vocabulary.weight(0), 4);
  map(vocabulary, {"b"}, 1'100);
  EXPECT_DOUBLE_EQ(vocabulary.weight(0), 2);
  EXPECT_DOUBLE_EQ(vocabulary.weight(1), 1);
  map(vocabulary, {"a"}, 1'200);
  EXPECT_THAT(vocabulary.weights(), ElementsAre(::testing::DoubleEq(2), ::testing::DoubleEq(0.5)));
  EXPECT_DOUBLE_EQ(vocabulary.weights_sum(), 2.5);
  EXPECT_EQ(vocabulary.last_seen(1), 1'100);
}

TEST(StreamVocabulary, CountsStayRightThroughThousandsOfHalfLives) {
  StreamVocabulary vocabulary({.min_count = 2, .vocab_max = 3, .half_life = 10});
  double by_hand = 0;
  for (int t = 0; t < 20'000; ++t) {
    map(vocabulary, {"always"}, t);
    by_hand = by_hand * std::exp2(-0.1) + 1;
  }
  ASSERT_EQ(vocabulary.size(), 1);
  EXPECT_NEAR(vocabulary.weight(0), by_hand, 1e-6 * by_hand);
  EXPECT_NEAR(vocabulary.weights_sum(), by_hand, 1e-6 * by_hand);
}

TEST(StreamVocabulary, OccurrencesFarApartDoNotAdmit) {
  StreamVocabulary vocabulary({.min_count = 3, .half_life = 10});
  for (int t = 0; t < 2'000; t += 20) EXPECT_THAT(map(vocabulary, {"seldom"}, t), ElementsAre(kNoSlot));
  EXPECT_THAT(map(vocabulary, {"seldom", "seldom", "seldom"}, 2'000), ElementsAre(kNoSlot, kNoSlot, 0));
}

TEST(StreamVocabulary, AHalfLifeMuchLongerThanTheGapsAdmitsAtMinCountStill) {
  StreamVocabulary vocabulary({.min_count = 3, .half_life = 1e6});
  EXPECT_THAT(map(vocabulary, {"w"}, 0), ElementsAre(kNoSlot));
  EXPECT_THAT(map(vocabulary, {"w"}, 1'000), ElementsAre(kNoSlot));
  EXPECT_THAT(map(vocabulary, {"w"}, 2'000), ElementsAre(0));
}

TEST(StreamVocabulary, LateTextCountsForAsMuchAsItsTimeIsWorth) {
  StreamVocabulary vocabulary({.min_count = 1, .half_life = 10});
  map(vocabulary, {"now"}, 100);
  map(vocabulary, {"now"}, 90);
  EXPECT_DOUBLE_EQ(vocabulary.weight(0), 1.5);
  EXPECT_EQ(vocabulary.now(), 100);
  EXPECT_EQ(vocabulary.last_seen(0), 100);
}

TEST(StreamVocabulary, TextFromBeforeTheEpochCountsLikeAnyOther) {
  StreamVocabulary vocabulary({.min_count = 3, .half_life = 3'600});
  EXPECT_THAT(map(vocabulary, {"w", "w", "w"}, -1.5e9), ElementsAre(kNoSlot, kNoSlot, 0));
}

TEST(StreamVocabulary, ANewcomerMustExceedTheLeastWord) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 2});
  map(vocabulary, {"a", "a", "a", "b", "b"});
  std::vector<Slot> admitted;
  EXPECT_THAT(map(vocabulary, {"c", "c"}, 0, &admitted), ElementsAre(kNoSlot, kNoSlot)) << "2 is not more than 2";
  EXPECT_THAT(admitted, IsEmpty());
  EXPECT_THAT(map(vocabulary, {"c"}, 0, &admitted), ElementsAre(1));
  EXPECT_THAT(admitted, ElementsAre(1));
  EXPECT_EQ(vocabulary.word(1), "c");
  EXPECT_EQ(vocabulary.weight(1), 3);
  EXPECT_EQ(vocabulary.find("b"), kNoSlot);
  EXPECT_EQ(vocabulary.size(), 2);
}

TEST(StreamVocabulary, OfEqualWordsTheOneNotSeenForLongestLeaves) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 3});
  map(vocabulary, {"a", "b", "c"}, 1);
  map(vocabulary, {"b"}, 2);
  map(vocabulary, {"a"}, 3);
  map(vocabulary, {"c"}, 4);
  map(vocabulary, {"new", "new", "new"}, 5);
  EXPECT_EQ(vocabulary.find("b"), kNoSlot);
  EXPECT_EQ(vocabulary.find("new"), 1);
}

TEST(StreamVocabulary, AWordSeenSinceItWasSingledOutHasASecondChance) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 3});
  map(vocabulary, {"a", "b", "b", "c", "c", "c"});
  map(vocabulary, {"x"});       // singles out a, then b, then c; does not exceed a
  map(vocabulary, {"a"});       // as frequent as b now, and seen
  map(vocabulary, {"x", "x"});  // exceeds b
  EXPECT_NE(vocabulary.find("a"), kNoSlot);
  EXPECT_EQ(vocabulary.find("b"), kNoSlot);
}

TEST(StreamVocabulary, TextOfAWordThatLeftIsInvalidAndOtherTextStaysValid) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 2});
  const std::vector<Slot> old_text = map(vocabulary, {"a", "a", "b"});
  const uint64_t old_stamp = vocabulary.stamp();
  const std::vector<Slot> new_text = map(vocabulary, {"c", "c", "a"});
  EXPECT_THAT(new_text, ElementsAre(kNoSlot, 1, 0));
  EXPECT_TRUE(vocabulary.valid(old_text[0], old_stamp));
  EXPECT_FALSE(vocabulary.valid(old_text[2], old_stamp)) << "slot 1 was b's and is c's";
  for (const size_t i : {1, 2}) EXPECT_TRUE(vocabulary.valid(new_text[i], vocabulary.stamp()));
}

TEST(StreamVocabulary, ASlotThatChangesHandsWithinACallIsNotGivenToItsEarlierWord) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 1});
  std::vector<Slot> admitted;
  EXPECT_THAT(map(vocabulary, {"a", "b", "b", "b", "c", "b"}, 0, &admitted),
              ElementsAre(kNoSlot, kNoSlot, 0, 0, kNoSlot, 0));
  EXPECT_THAT(admitted, ElementsAre(0)) << "each slot once";
}

TEST(StreamVocabulary, AWordThatReturnsStartsAnewWithTheCountItHad) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 1});
  const std::vector<Slot> first = map(vocabulary, {"a", "a"});
  const uint64_t first_stamp = vocabulary.stamp();
  map(vocabulary, {"b", "b", "b"});
  ASSERT_EQ(vocabulary.word(0), "b");
  std::vector<Slot> admitted;
  EXPECT_THAT(map(vocabulary, {"a", "a"}, 0, &admitted), ElementsAre(kNoSlot, 0));
  EXPECT_THAT(admitted, ElementsAre(0));
  EXPECT_EQ(vocabulary.weight(0), 4);
  EXPECT_FALSE(vocabulary.valid(first[0], first_stamp)) << "the same word, but its row was another's in between";
}

TEST(StreamVocabulary, UnderEndlessChurnNoWordInheritsAnothersText) {
  struct Kept {
    std::vector<Slot> slots;
    std::vector<std::string> words;
    uint64_t stamp;
  };
  StreamVocabulary vocabulary({.min_count = 2, .vocab_max = 40, .half_life = 500, .sketch_bytes = 1 << 14});
  std::vector<Kept> history;
  Random random(3);
  int64_t valid = 0, invalid = 0;
  for (int call = 0; call < 600; ++call) {
    // Words drift: those of a few hundred calls ago do not come any more.
    std::vector<std::string> words;
    for (uint32_t i = 1 + random.below(120); i > 0; --i)
      words.push_back("w" + std::to_string(call / 4 + static_cast<int>(random.below(1 + random.below(90)))));
    Kept kept{map(vocabulary, Words(words.begin(), words.end()), call * 60.0), words, vocabulary.stamp()};
    history.push_back(std::move(kept));
    for (const Kept& old : history) {
      for (size_t i = 0; i < old.slots.size(); ++i) {
        if (old.slots[i] == kNoSlot) continue;
        const bool holds = vocabulary.valid(old.slots[i], old.stamp);
        ++(holds ? valid : invalid);
        ASSERT_TRUE(!holds || vocabulary.word(old.slots[i]) == old.words[i]) << old.words[i];
      }
    }
    std::set<std::string_view> distinct;
    for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
      ASSERT_EQ(vocabulary.find(vocabulary.word(slot)), slot);
      distinct.insert(vocabulary.word(slot));
    }
    ASSERT_EQ(static_cast<int32_t>(distinct.size()), vocabulary.size());
  }
  EXPECT_EQ(vocabulary.size(), 40);
  EXPECT_GT(vocabulary.statistics().evicted, 100);
  EXPECT_GT(valid, 1'000);
  EXPECT_GT(invalid, 1'000);
}

TEST(StreamVocabulary, FrequentWordsKeepTheirSlotsInAFloodOfRareOnes) {
  StreamVocabulary vocabulary({.min_count = 2, .vocab_max = 100});
  Random random(4);
  std::vector<std::string> text;
  for (int i = 0; i < 400'000; ++i)
    text.push_back(i % 2 ? "often" + std::to_string(random.below(90)) : "once" + std::to_string(i));
  for (size_t begin = 0; begin < text.size(); begin += 1'000)
    map(vocabulary, Words(text.begin() + static_cast<std::ptrdiff_t>(begin),
                          text.begin() + static_cast<std::ptrdiff_t>(begin + 1'000)));
  for (int i = 0; i < 90; ++i) EXPECT_NE(vocabulary.find("often" + std::to_string(i)), kNoSlot);
}

TEST(StreamVocabulary, MemoryStopsGrowingWhenTheSlotsAreFull) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 1'000, .half_life = 5'000});
  std::vector<std::string> words(1'000);
  int64_t memory = 0;
  for (int call = 0; call < 1'000; ++call) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = "word" + std::to_string(call * 500 + static_cast<int>(i / 2));
    map(vocabulary, Words(words.begin(), words.end()), call * 1'000.0);
    if (call == 20) memory = vocabulary.memory_bytes();
  }
  EXPECT_EQ(vocabulary.memory_bytes(), memory);
  EXPECT_EQ(vocabulary.size(), 1'000);
  EXPECT_GT(vocabulary.statistics().evicted, 50'000);
  EXPECT_EQ(vocabulary.statistics().tokens, 1'000'000);
  EXPECT_EQ(vocabulary.statistics().admitted, vocabulary.statistics().evicted + 1'000);
  EXPECT_LT(memory, 3 << 20);
}

TEST(StreamVocabulary, LongWordsDoNotMakeItGrowWithoutBound) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 1'000});
  for (int i = 0; i < 3'000; ++i) {
    const std::string word = std::to_string(i) + std::string(4'000, 'x');
    map(vocabulary, {word, word, word});
  }
  EXPECT_LT(vocabulary.memory_bytes(), 3 << 20);
  map(vocabulary, {"short", "short", "short", "short"});
  EXPECT_NE(vocabulary.find("short"), kNoSlot) << "ordinary words get in still";
}

TEST(StreamVocabulary, WordsThatCollideByDesignAreToldApart) {
  // Someone who knew the seed found words that all begin their search at the same place.
  const WordHash hash(mix(1, 1));
  std::vector<std::string> text;
  for (int i = 0; text.size() < 300; ++i)
    if (std::string word = "w" + std::to_string(i); hash(word) >> 54 == 7) text.push_back(std::move(word));
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 300, .seed = 1});
  const Words words(text.begin(), text.end());
  const std::vector<Slot> slots = map(vocabulary, words);
  for (size_t i = 0; i < slots.size(); ++i) ASSERT_EQ(slots[i], static_cast<Slot>(i));
  EXPECT_EQ(map(vocabulary, words), slots);
}

TEST(StreamVocabulary, WithoutALimitNobodyIsAdmittedPastSlotsMax) {
  StreamVocabulary vocabulary({.min_count = 1, .slots_max = 2});
  EXPECT_THAT(map(vocabulary, {"a", "b", "c", "c", "c", "a"}), ElementsAre(0, 1, kNoSlot, kNoSlot, kNoSlot, 0));
}

TEST(StreamVocabulary, SpellingsCountForTheirFormAndBecomeAliases) {
  int asked = 0;
  const auto form_of = [&](std::string_view word) -> std::optional<std::string> {
    ++asked;
    if (word == "the") return std::nullopt;
    return std::string(word.ends_with('s') ? word.substr(0, word.size() - 1) : word);
  };
  for (const int64_t vocab_max : {0, 10}) {
    StreamVocabulary vocabulary({.min_count = 2, .vocab_max = vocab_max, .form_of = form_of});
    EXPECT_THAT(map(vocabulary, {"dogs", "the", "dog", "dogs", "dogs"}), ElementsAre(kNoSlot, kNoSlot, 0, 0, 0));
    EXPECT_EQ(vocabulary.word(0), "dog");
    EXPECT_EQ(vocabulary.weight(0), 4);
    asked = 0;
    EXPECT_THAT(map(vocabulary, {"the", "dogs", "the"}), ElementsAre(kNoSlot, 0, kNoSlot));
    EXPECT_EQ(asked, 0) << "stop words and spellings are decided once";
    const Vocabulary exported = vocabulary.to_vocabulary();
    EXPECT_EQ(exported.size(), 1);
    EXPECT_EQ(exported.find("dogs"), 0);
    EXPECT_EQ(exported.find("the"), kNoSlot);
  }
}

TEST(StreamVocabulary, AWordThatHasAnotherFormIsFoundByNameAndCountsForThatForm) {
  const auto form_of = [](std::string_view word) {
    return std::string(word == "saws" ? "saw" : word == "saw" ? "see" : word);
  };
  for (const int64_t vocab_max : {0, 10}) {
    const StreamVocabulary::Options options{.min_count = 1, .vocab_max = vocab_max, .form_of = form_of};
    StreamVocabulary vocabulary(options);
    EXPECT_THAT(map(vocabulary, {"saws", "saw", "see", "saw"}), ElementsAre(0, 1, 1, 1));
    EXPECT_EQ(vocabulary.word(0), "saw");
    EXPECT_EQ(vocabulary.weight(1), 3);
    EXPECT_EQ(vocabulary.find("saw"), 0);
    EXPECT_EQ(vocabulary.find_form("saw"), 1);
    StreamVocabulary restored = StreamVocabulary::restore(options, vocabulary.save()).value();
    EXPECT_THAT(map(restored, {"saw", "saws"}), ElementsAre(1, 0));
    const Vocabulary exported = vocabulary.to_vocabulary();
    EXPECT_EQ(exported.find_token("saw"), 1);
    EXPECT_EQ(exported.find_token("saws"), 0);
    StreamVocabulary later = StreamVocabulary::from(options, exported, 0);
    EXPECT_THAT(map(later, {"saw", "saws"}), ElementsAre(1, 0));
  }
}

TEST(StreamVocabulary, ASpellingFollowsItsFormToAnotherSlot) {
  const auto form_of = [](std::string_view word) { return std::string(word.substr(0, 1)); };
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 2, .form_of = form_of});
  map(vocabulary, {"ax", "b", "b", "b"});
  EXPECT_THAT(map(vocabulary, {"cx", "cx"}), ElementsAre(kNoSlot, 0)) << "c takes a's slot";
  EXPECT_THAT(map(vocabulary, {"ax", "cx"}), ElementsAre(kNoSlot, 0));
}

TEST(StreamVocabulary, EndlessSpellingsOfOneFormTakeBoundedMemory) {
  StreamVocabulary vocabulary({.min_count = 1, .form_of = [](std::string_view) { return "<number>"; }});
  map(vocabulary, {"0"});
  const int64_t memory = vocabulary.memory_bytes();
  for (int i = 0; i < 100'000; ++i) EXPECT_THAT(map(vocabulary, {std::to_string(i)}), ElementsAre(0));
  EXPECT_EQ(vocabulary.weight(0), 100'001);
  EXPECT_EQ(vocabulary.memory_bytes(), memory);
}

TEST(StreamVocabulary, GoesOnFromWordsCountedElsewhere) {
  Vocabulary counted;
  counted.add("known", 10);
  counted.add("rare", 1);
  StreamVocabulary vocabulary = StreamVocabulary::from({.min_count = 2, .vocab_max = 1, .half_life = 50}, counted, 100);
  EXPECT_EQ(vocabulary.stamp(), 0);
  EXPECT_THAT(map(vocabulary, {"known", "new", "new"}, 100), ElementsAre(0, kNoSlot, 1)) << "both stay until outdone";
  EXPECT_DOUBLE_EQ(vocabulary.weight(0), 11);
  map(vocabulary, {}, 150);
  EXPECT_DOUBLE_EQ(vocabulary.weight(0), 5.5);
}

TEST(StreamVocabulary, ExportsWordsBySlotWithRoundedCounts) {
  StreamVocabulary vocabulary({.min_count = 1, .half_life = 10});
  map(vocabulary, {"a", "a", "a", "b"}, 0);
  map(vocabulary, {"c"}, 10);
  const Vocabulary exported = vocabulary.to_vocabulary();
  ASSERT_EQ(exported.size(), 3);
  EXPECT_EQ(exported.word(1), "b");
  EXPECT_THAT(std::vector<int64_t>(exported.counts().begin(), exported.counts().end()), ElementsAre(2, 1, 1));
}

TEST(StreamVocabulary, BirthsMayBeReadWhileWordsComeAndGo) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 20, .half_life = 20});
  std::vector<std::string> words(40);
  for (size_t i = 0; i < words.size(); ++i) words[i] = "first" + std::to_string(i / 2);
  map(vocabulary, Words(words.begin(), words.end()), 0);
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    uint64_t last = 0;
    while (!stop) {
      const uint64_t stamp = vocabulary.stamp();
      EXPECT_GE(stamp, last);
      last = stamp;
      for (Slot slot = 0; slot < 20; ++slot) EXPECT_GT(vocabulary.born(slot), 0);
    }
  });
  for (int call = 1; call < 2'000; ++call) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = "w" + std::to_string(call * 20 + static_cast<int>(i / 2));
    map(vocabulary, Words(words.begin(), words.end()), call * 40.0);
  }
  stop = true;
  reader.join();
  EXPECT_GT(vocabulary.statistics().evicted, 1'000);
}

TEST(StreamVocabulary, MoreMemoryThanThereIsIsSaidBeforehand) {
  EXPECT_TRUE(StreamVocabulary::check_memory({.vocab_max = 1'000}).ok());
  const Status status = StreamVocabulary::check_memory({.vocab_max = 1'000, .sketch_bytes = int64_t{1} << 50});
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("try a smaller --vocab-max"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("2147483648 MB are needed"), std::string::npos)
      << "a checkpoint copies it: " << status.message();
}

}  // namespace
}  // namespace streamvec
