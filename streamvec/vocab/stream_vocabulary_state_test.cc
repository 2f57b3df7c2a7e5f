#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/vocab/stream_vocabulary.h"
#include "streamvec/vocab/stream_vocabulary_testing.h"

namespace streamvec {
namespace {

using Options = StreamVocabulary::Options;
using Words = std::vector<std::string_view>;

std::optional<std::string> without_s(std::string_view word) {
  if (word.ends_with("13")) return std::nullopt;
  return std::string(word.ends_with('0') ? word.substr(0, word.size() - 1) : word);
}

std::vector<Options> kinds() {
  return {
      {.min_count = 3},
      {.min_count = 3, .form_of = without_s},
      {.min_count = 2, .vocab_max = 60, .sketch_bytes = 1 << 13},
      {.min_count = 2, .vocab_max = 60, .half_life = 90, .sketch_bytes = 1 << 13},
      {.min_count = 2, .half_life = 400, .sketch_bytes = 1 << 13},
      {.min_count = 2, .vocab_max = 60, .half_life = 400, .form_of = without_s, .seed = 9, .sketch_bytes = 1 << 13}};
}

// Calls of 50 words; later calls have other words than earlier ones.
void run(StreamVocabulary& vocabulary, int from, int to, std::vector<Slot>& trace) {
  for (int call = from; call < to; ++call) {
    std::vector<std::string> text = zipf_text(50, 400, static_cast<uint64_t>(call));
    for (std::string& word : text) word += "x" + std::to_string(call / 40);
    std::vector<Slot> admitted;
    for (const Slot slot : map(vocabulary, Words(text.begin(), text.end()), call * 50.0, &admitted))
      trace.push_back(slot);
    trace.insert(trace.end(), admitted.begin(), admitted.end());
  }
}

std::string sealed(std::string content) {
  Checksum checksum;
  checksum.update(content);
  const uint64_t sum = checksum.value();
  return content.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

TEST(StreamVocabularyState, WhatIsRestoredGoesOnBitForBit) {
  for (const Options& options : kinds()) {
    StreamVocabulary straight(options);
    std::vector<Slot> straight_trace, resumed_trace;
    run(straight, 0, 120, straight_trace);
    const std::string saved = straight.save();
    auto resumed = StreamVocabulary::restore(options, saved);
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    EXPECT_EQ(resumed->save(), saved);
    straight_trace.clear();
    run(straight, 120, 300, straight_trace);
    run(*resumed, 120, 300, resumed_trace);
    EXPECT_EQ(straight_trace, resumed_trace);
    EXPECT_EQ(straight.save(), resumed->save());
    EXPECT_EQ(straight.weights(), resumed->weights());
    EXPECT_EQ(straight.stamp(), resumed->stamp());
  }
}

TEST(StreamVocabularyState, AnEmptyVocabularyIsRestoredToo) {
  for (const Options& options : kinds()) {
    StreamVocabulary empty(options);
    auto restored = StreamVocabulary::restore(options, empty.save());
    ASSERT_TRUE(restored.ok());
    EXPECT_EQ(restored->size(), 0);
  }
}

TEST(StreamVocabularyState, EveryTruncationAndTrailingBytesAreDataLoss) {
  for (Options options : kinds()) {
    options.sketch_bytes = 1;
    StreamVocabulary vocabulary(options);
    std::vector<Slot> trace;
    run(vocabulary, 0, 6, trace);
    const std::string saved = vocabulary.save();
    for (size_t size = 0; size < saved.size(); ++size) {
      ASSERT_EQ(StreamVocabulary::restore(options, saved.substr(0, size)).status().code(), Code::kDataLoss) << size;
      // Cut within, with a sum that agrees: the lengths must tell.
      if (size + 8 >= saved.size()) continue;
      ASSERT_EQ(StreamVocabulary::restore(options, sealed(saved.substr(0, size))).status().code(), Code::kDataLoss)
          << size;
    }
    const std::string content = saved.substr(0, saved.size() - 8);
    EXPECT_EQ(StreamVocabulary::restore(options, sealed(content + "x")).status().code(), Code::kDataLoss);
  }
}

TEST(StreamVocabularyState, FlippedBitsAreDataLossWithTheOffset) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 10, .sketch_bytes = 1});
  std::vector<Slot> trace;
  run(vocabulary, 0, 3, trace);
  std::string saved = vocabulary.save();
  for (size_t i = 0; i < saved.size(); ++i) {
    saved[i] = static_cast<char>(saved[i] ^ (1 << (i % 8)));
    const Status status = StreamVocabulary::restore(vocabulary.options(), saved).status();
    ASSERT_EQ(status.code(), Code::kDataLoss) << i;
    ASSERT_NE(status.message().find("at byte"), std::string::npos);
    saved[i] = static_cast<char>(saved[i] ^ (1 << (i % 8)));
  }
}

TEST(StreamVocabularyState, ImpossibleContentUnderARightSumNeitherCrashesNorStaysUnnoticed) {
  const Options options{.min_count = 1, .vocab_max = 30, .half_life = 90, .form_of = without_s, .sketch_bytes = 1};
  StreamVocabulary vocabulary(options);
  std::vector<Slot> trace;
  run(vocabulary, 0, 4, trace);
  const std::string saved = vocabulary.save();
  const std::string content = saved.substr(0, saved.size() - 8);
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    std::string changed = content;
    for (uint32_t times = 1 + random.below(4); times > 0; --times)
      changed[random.below(static_cast<uint32_t>(changed.size()))] = static_cast<char>(random.below(256));
    auto restored = StreamVocabulary::restore(options, sealed(changed));
    refused += !restored.ok();
    if (!restored.ok()) continue;
    run(*restored, 4, 6, trace);  // odd numbers, but sound
    ASSERT_EQ(restored->to_vocabulary().size(), restored->size());
  }
  EXPECT_GT(refused, 300);
}

TEST(StreamVocabularyState, OtherOptionsAreRefusedWithBothValues) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 10, .half_life = 5, .sketch_bytes = 1});
  map(vocabulary, {"a", "b", "c", "d"}, 0);
  const std::string saved = vocabulary.save();
  const auto refused = [&](const Options& options) {
    const Status status = StreamVocabulary::restore(options, saved).status();
    return status.code() == Code::kFailedPrecondition ? status.message() : "not refused";
  };
  EXPECT_NE(refused({.vocab_max = 10, .half_life = 7}).find("half-life of 5, --half-life asks for 7"),
            std::string::npos);
  EXPECT_NE(refused({.vocab_max = 10, .half_life = 10 * 86'400.0, .half_life_seconds = true})
                .find("half-life of 5, --half-life asks for 10d"),
            std::string::npos);
  EXPECT_NE(refused({.vocab_max = 10, .half_life = 5, .half_life_seconds = true}).find("of 5, --half-life asks for 5s"),
            std::string::npos);
  EXPECT_NE(refused({.vocab_max = 10}).find("of 5, --half-life asks for never"), std::string::npos);
  EXPECT_NE(refused({.vocab_max = 3, .half_life = 5}).find("has 4 words, --vocab-max asks for 3"), std::string::npos);
  StreamVocabulary plain({.min_count = 1});
  EXPECT_EQ(StreamVocabulary::restore({.vocab_max = 5}, plain.save()).status().code(), Code::kFailedPrecondition);
  auto more_room = StreamVocabulary::restore({.min_count = 1, .vocab_max = 20, .half_life = 5}, saved);
  ASSERT_TRUE(more_room.ok());
  map(*more_room, {"e"}, 0);
  EXPECT_EQ(more_room->size(), 5);
}

TEST(StreamVocabularyState, OfEarlierVersionsGoesOnWithEitherUnit) {
  StreamVocabulary vocabulary({.vocab_max = 10, .half_life = 5, .sketch_bytes = 1});
  const std::string saved = vocabulary.save();
  std::string earlier = saved.substr(0, saved.size() - 8);
  earlier[3 * sizeof(uint64_t)] = 0;  // behind magic number, seed and half-life: plain or not
  for (const bool seconds : {false, true}) {
    const Options options{.vocab_max = 10, .half_life = 5, .half_life_seconds = seconds};
    const auto restored = StreamVocabulary::restore(options, sealed(earlier));
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    EXPECT_EQ(restored->options().half_life_seconds, seconds);
  }
}

}  // namespace
}  // namespace streamvec
