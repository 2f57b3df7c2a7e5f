// The two stores behind StreamVocabulary: word bytes that move, and an index that closes up.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/slot_index.h"
#include "streamvec/vocab/word_arena.h"

namespace streamvec {
namespace {

TEST(WordArena, KeepsEveryWordThroughEndlessChurnInFixedMemory) {
  constexpr int kOwners = 100;
  WordArena arena;
  arena.reserve(8'192);
  std::vector<WordArena::Ref> refs(kOwners);
  std::vector<std::string> words(kOwners);
  int moves = 0;
  const auto moved = [&](int32_t owner, WordArena::Ref ref) {
    refs[static_cast<size_t>(owner)] = ref;
    ++moves;
  };
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const size_t owner = i < kOwners ? static_cast<size_t>(i) : random.below(kOwners);
    if (i >= kOwners) arena.release(refs[owner]);
    words[owner] = std::string(1 + random.below(30), static_cast<char>('a' + random.below(26)));
    refs[owner] = arena.store(static_cast<int32_t>(owner), words[owner], moved);
    if (i % 97 != 0) continue;
    for (size_t j = 0; j < kOwners && j <= static_cast<size_t>(i); ++j) ASSERT_EQ(arena.bytes(refs[j]), words[j]);
  }
  EXPECT_EQ(arena.memory_bytes(), 8'192);
  EXPECT_GT(moves, 0);
  EXPECT_LT(moves, 40'000) << "moving is paid for by what was stored";
}

TEST(WordArena, GrowsWhenWhatLivesFillsHalf) {
  WordArena arena;
  std::vector<WordArena::Ref> refs;
  const std::string longest(WordArena::kWordBytesMax, 'x');
  for (int32_t owner = 0; owner < 20; ++owner)
    refs.push_back(arena.store(owner, longest, [](int32_t, WordArena::Ref) { FAIL() << "nothing was released"; }));
  for (const WordArena::Ref ref : refs) EXPECT_EQ(arena.bytes(ref), longest);
  EXPECT_LE(arena.memory_bytes(), static_cast<int64_t>(4 * arena.live_bytes()));
}

// The words of a slot are stood for by its hash alone: `hashes` says which one each slot has.
TEST(SlotIndex, FindsWhatIsThereAndNothingElseThroughEndlessChurn) {
  SlotIndex index;
  std::map<int32_t, uint64_t> hashes;
  Random random(2);
  const auto find = [&](uint64_t hash) {
    return index.find(hash, [&](int32_t slot) { return hashes.at(slot) == hash; });
  };
  for (int i = 0; i < 30'000; ++i) {
    const auto slot = static_cast<int32_t>(random.below(300));
    if (const auto there = hashes.find(slot); there != hashes.end()) {
      index.erase(there->second, slot);
      const uint64_t gone = there->second;
      hashes.erase(there);
      ASSERT_EQ(find(gone), SlotIndex::kNone);
    } else {
      // Few homes, and many of them at the end of the table, so that runs are long and wrap around.
      hashes[slot] = mix(static_cast<uint64_t>(i)) | (random.below(2) ? uint64_t{0xfff} << 52 : 0);
      index.insert(hashes[slot], slot);
    }
    if (i % 50 != 0) continue;
    for (const auto& [known, hash] : hashes) ASSERT_EQ(find(hash), known);
  }
  EXPECT_EQ(index.size(), static_cast<int64_t>(hashes.size()));
  EXPECT_LE(index.memory_bytes(), 1'024 * 8);
}

TEST(SlotIndex, WordsOfEqualHashAreToldApartByTheCaller) {
  SlotIndex index;
  for (int32_t slot = 0; slot < 100; ++slot) index.insert(42, slot);
  for (int32_t slot = 0; slot < 100; slot += 2) index.erase(42, slot);
  for (int32_t slot = 0; slot < 100; ++slot)
    EXPECT_EQ(index.find(42, [&](int32_t it) { return it == slot; }), slot % 2 ? slot : SlotIndex::kNone);
}

}  // namespace
}  // namespace streamvec
