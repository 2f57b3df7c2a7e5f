#include "streamvec/ingest/chunker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

using testing::ElementsAre;
using Items = std::vector<std::shared_ptr<const ReplayItem>>;

Items cut(const std::vector<Slot>& slots, std::vector<int32_t> sentence_ends, int64_t wanted) {
  Tokens tokens;
  tokens.words.resize(slots.size(), "w");
  tokens.sentence_ends = std::move(sentence_ends);
  ReplayItem like;
  like.stamp = 7;
  like.record = 9;
  Items items;
  cut_chunks(tokens, slots, wanted, like, items);
  return items;
}

TEST(Chunker, KeepsSentencesTogetherAsLongAsTheyFit) {
  const Items items = cut({1, 2, 3, 4, 5, 6, 7}, {2, 4, 7}, 5);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_THAT(items[0]->chunk.slots, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(items[0]->chunk.sentence_ends, ElementsAre(2, 4));
  EXPECT_THAT(items[1]->chunk.slots, ElementsAre(5, 6, 7));
  EXPECT_THAT(items[1]->chunk.sentence_ends, ElementsAre(3));
}

TEST(Chunker, CutsASentenceThatIsTooLong) {
  const Items items = cut({1, 2, 3, 4, 5}, {5}, 2);
  ASSERT_EQ(items.size(), 2u);  // the fifth is alone and left out
  EXPECT_THAT(items[0]->chunk.slots, ElementsAre(1, 2));
  EXPECT_THAT(items[1]->chunk.slots, ElementsAre(3, 4));
}

TEST(Chunker, LeavesOutWordsWithoutASlotAndSentencesWithoutWords) {
  const Items items = cut({kNoSlot, 1, kNoSlot, kNoSlot, 2}, {1, 3, 4, 5}, 10);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_THAT(items[0]->chunk.slots, ElementsAre(1, 2));
  EXPECT_THAT(items[0]->chunk.sentence_ends, ElementsAre(1, 2));
  EXPECT_TRUE(cut({kNoSlot, kNoSlot}, {2}, 10).empty());
  EXPECT_TRUE(cut({}, {}, 10).empty());
}

TEST(Chunker, GivesEveryItemTheMarksOfItsDocument) {
  const Items items = cut({1, 2, 3, 4}, {2, 4}, 2);
  ASSERT_EQ(items.size(), 2u);
  for (const auto& item : items) {
    EXPECT_EQ(item->stamp, 7u);
    EXPECT_EQ(item->record, 9u);
  }
}

}  // namespace
}  // namespace streamvec
