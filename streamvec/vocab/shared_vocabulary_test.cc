#include "streamvec/vocab/shared_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

StreamVocabulary::Options bounded(int64_t vocab_max, int64_t min_count = 2) {
  StreamVocabulary::Options options;
  options.min_count = min_count;
  options.vocab_max = vocab_max;
  return options;
}

// A node that counts its own text.
struct Node {
  explicit Node(const SharedVocabulary& shared, const StreamVocabulary::Options& options)
      : words(StreamVocabulary::follower(options, shared.vocabulary())) {}

  std::vector<Slot> map(const std::vector<std::string>& text) {
    const std::vector<std::string_view> views(text.begin(), text.end());
    std::vector<Slot> slots(views.size()), admitted;
    words.map(views, 0, slots, admitted);
    EXPECT_TRUE(admitted.empty());
    return slots;
  }
  Slot slot_of(const std::string& word) const { return words.find(word); }

  StreamVocabulary words;
};

std::u32string characters_of(std::span<const MetCharacter> met) {
  std::u32string all;
  for (const MetCharacter& each : met) all.push_back(each.character);
  return all;
}

class Shared : public testing::Test {
 protected:
  void begin(int64_t vocab_max, int64_t min_count = 2, int64_t characters_max = 0) {
    options = bounded(vocab_max, min_count);
    options.characters_max = characters_max;
    if (characters_max > 0)
      options.characters_of = [](std::string_view word, std::u32string& to) { to.append(word.begin(), word.end()); };
    leader.emplace(StreamVocabulary(options), true);
    for (int i = 0; i < 2; ++i) nodes.emplace_back(*leader, options);
  }
  void report(size_t node) { leader->receive(static_cast<uint32_t>(node), nodes[node].words.take_report()); }
  // What has changed, told to both nodes, as bytes.
  std::vector<Slot> tell() {
    const std::string bytes = encode(leader->take_changes());
    std::vector<Slot> admitted;
    for (Node& node : nodes) {
      const Status status = node.words.follow(decode_vocabulary_changes(bytes).value(), admitted);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return admitted;
  }
  void expect_equal() const {
    for (const Node& node : nodes) {
      EXPECT_EQ(node.words.stamp(), leader->vocabulary().stamp());
      ASSERT_EQ(node.words.size(), leader->vocabulary().size());
      for (Slot slot = 0; slot < node.words.size(); ++slot) {
        EXPECT_EQ(node.words.word(slot), leader->vocabulary().word(slot));
        EXPECT_EQ(node.words.born(slot), leader->vocabulary().born(slot));
        EXPECT_EQ(node.words.find(node.words.word(slot)), slot);
      }
    }
  }

  StreamVocabulary::Options options;
  std::optional<SharedVocabulary> leader;
  std::vector<Node> nodes;
};

TEST_F(Shared, WordsOfAllNodesHaveTheSameSlotsEverywhere) {
  begin(10);
  EXPECT_EQ(nodes[0].map({"a", "b", "a"}), (std::vector<Slot>{kNoSlot, kNoSlot, kNoSlot}));
  nodes[1].map({"b", "c", "c", "d"});
  report(0);
  report(1);
  EXPECT_EQ(tell().size(), 3u);  // a and c by one node each, b by both together; d is rare
  expect_equal();
  EXPECT_EQ(nodes[0].map({"c"}), nodes[1].map({"c"}));
  EXPECT_NE(nodes[0].slot_of("b"), kNoSlot);
  EXPECT_EQ(nodes[0].slot_of("d"), kNoSlot);
}

// One node is told after every report, the other once: of words that came and went in between it never hears.
TEST_F(Shared, CharactersComeInOneOrderHoweverWordsAreHeardOf) {
  begin(2, 2, 6);
  const std::u32string known = U"z";
  StreamVocabulary begun(options);
  begun.begin_characters(known);
  leader.emplace(std::move(begun), true);
  for (Node& node : nodes) node.words.begin_characters(known);
  std::vector<Slot> admitted;
  for (const char* word : {"cab", "zd", "bae", "fgh"}) {
    nodes[0].map(std::vector<std::string>(static_cast<size_t>(4 + 10 * leader->vocabulary().stamp()), word));
    report(0);
    ASSERT_TRUE(nodes[0].words.follow(leader->take_changes(), admitted).ok());
  }
  ASSERT_GT(leader->vocabulary().statistics().evicted, 1) << "the test is about words that go";
  ASSERT_TRUE(nodes[1].words.follow(leader->changes_since(0), admitted).ok());
  ASSERT_TRUE(nodes[1].words.follow(leader->changes_since(1), admitted).ok()) << "what is known already";
  EXPECT_EQ(nodes[1].slot_of("cab"), kNoSlot);
  const StreamVocabulary next = StreamVocabulary::successor(nodes[1].words);
  const std::vector<const StreamVocabulary*> all = {&leader->vocabulary(), &nodes[0].words, &nodes[1].words, &next};
  for (const StreamVocabulary* const each : all)
    EXPECT_EQ(characters_of(each->characters()), U"zcabde") << "no more than so many";
}

TEST_F(Shared, CountsWhatOneProcessWouldCount) {
  begin(50);
  StreamVocabulary alone(options);
  Random random(3);
  std::vector<Slot> slots, admitted;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::string> text;
    for (int k = 0; k < 20; ++k) text.push_back("w" + std::to_string(random.below(10) * random.below(8)));
    const std::vector<std::string_view> views(text.begin(), text.end());
    slots.resize(views.size());
    alone.map(views, 0, slots, admitted);
    nodes[static_cast<size_t>(i) % 2].map(text);
    if (i % 3 == 0) report(static_cast<size_t>(i) % 2);
    if (i % 5 == 0) tell();
  }
  report(0);
  report(1);
  tell();
  expect_equal();
  ASSERT_EQ(alone.size(), nodes[0].words.size());
  for (Slot slot = 0; slot < alone.size(); ++slot) {
    const Slot shared = leader->vocabulary().find(alone.word(slot));
    ASSERT_NE(shared, kNoSlot);
    EXPECT_EQ(leader->vocabulary().weight(shared), alone.weight(slot)) << alone.word(slot);
  }
  EXPECT_EQ(leader->vocabulary().statistics().tokens, 8'000);
}

TEST_F(Shared, ASlotThatChangesHandsIsTheNewWordsEverywhere) {
  begin(2);
  nodes[0].map({"a", "a", "b", "b", "b"});
  report(0);
  tell();
  const Slot slot = nodes[1].slot_of("a");
  const uint64_t before = nodes[1].words.stamp();
  nodes[1].map({"c", "c", "c"});
  report(1);
  EXPECT_EQ(tell(), std::vector<Slot>{slot});
  expect_equal();
  for (const Node& node : nodes) {
    EXPECT_EQ(node.slot_of("a"), kNoSlot);
    EXPECT_EQ(node.slot_of("c"), slot);
    EXPECT_FALSE(node.words.valid(slot, before)) << "text mapped before is not the new word's";
  }
}

TEST_F(Shared, WhatWasCountedForAWordThatLostItsSlotIsNotTheNextOnes) {
  begin(2);
  nodes[0].map({"a", "a", "b", "b", "b"});
  report(0);
  tell();
  nodes[0].map({"a"});  // not reported yet
  nodes[1].map({"a"});
  const VocabularyReport late = nodes[1].words.take_report();  // on its way
  nodes[1].map({"c", "c", "c"});
  report(1);
  tell();
  const Slot slot = nodes[0].slot_of("c");
  ASSERT_NE(slot, kNoSlot);
  leader->receive(0, nodes[0].words.take_report());
  VocabularyReport again = late;
  again.number = 99;
  leader->receive(1, again);
  EXPECT_EQ(leader->vocabulary().weight(slot), 3);
  // The node that had not told it yet has told it of the word by name: with one more there are four, against three.
  nodes[0].map({"a"});
  report(0);
  tell();
  EXPECT_NE(nodes[0].slot_of("a"), kNoSlot);
}

TEST_F(Shared, ReportsAndChangesThatComeTwiceCountOnce) {
  begin(4);
  nodes[0].map({"a", "b", "b"});
  const VocabularyReport report = nodes[0].words.take_report();
  for (int i = 0; i < 3; ++i) leader->receive(0, report);
  EXPECT_EQ(leader->vocabulary().statistics().tokens, 3);
  EXPECT_EQ(leader->vocabulary().find("a"), kNoSlot);
  const VocabularyChanges changes = leader->take_changes();
  std::vector<Slot> admitted;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(nodes[1].words.follow(changes, admitted).ok());
  EXPECT_TRUE(admitted.empty());
  EXPECT_EQ(nodes[1].words.size(), 1);
  EXPECT_EQ(nodes[1].words.statistics().admitted, 1);
}

TEST_F(Shared, ALostReportIsTextThatWasNotCounted) {
  begin(4);
  nodes[0].map({"a", "a"});
  (void)nodes[0].words.take_report();
  nodes[0].map({"a", "a"});
  report(0);
  tell();
  expect_equal();
  EXPECT_EQ(leader->vocabulary().weight(nodes[0].slot_of("a")), 2);
}

TEST_F(Shared, ChangesThatAreMissingAreAnError) {
  begin(4);
  std::vector<Slot> admitted;
  for (const char* word : {"a", "b"}) {
    nodes[0].map({word, word});
    report(0);
    if (word[0] == 'a') (void)leader->take_changes();
  }
  const Status status = nodes[0].words.follow(leader->take_changes(), admitted);
  EXPECT_EQ(status.code(), Code::kDataLoss);
}

TEST_F(Shared, SamplingGoesByTheCountsOfAll) {
  begin(4);
  nodes[0].map(std::vector<std::string>(9'000, "a"));
  nodes[1].map(std::vector<std::string>(3'000, "b"));
  report(0);
  report(1);
  tell();
  for (const Node& node : nodes) {
    EXPECT_EQ(node.words.weights()[static_cast<size_t>(node.slot_of("a"))], 9'000);
    EXPECT_EQ(node.words.weights()[static_cast<size_t>(node.slot_of("b"))], 3'000);
    EXPECT_EQ(node.words.statistics().tokens, 12'000);
  }
  EXPECT_FALSE(leader->has_changes());
}

TEST_F(Shared, TextWaitsWhileTooManyWordsOutsideAreUnanswered) {
  begin(10);
  RoundTrips trips;
  EXPECT_TRUE(trips.text_may_come(nodes[0].words));
  std::vector<std::string> text;
  for (int i = 0; i < 5'000; ++i) text.push_back("w" + std::to_string(i));
  EXPECT_FALSE(trips.is_due(nodes[0].words, 100));
  nodes[0].map(text);
  EXPECT_TRUE(trips.is_due(nodes[0].words, 0));
  EXPECT_FALSE(trips.text_may_come(nodes[0].words));
  const VocabularyReport report = nodes[0].words.take_report();
  trips.reported(report, 0);
  EXPECT_FALSE(trips.text_may_come(nodes[0].words));
  nodes[0].map({"w1"});
  EXPECT_FALSE(trips.is_due(nodes[0].words, 0.05));
  EXPECT_TRUE(trips.is_due(nodes[0].words, 0.2));
  trips.answered(report.number);
  EXPECT_TRUE(trips.text_may_come(nodes[0].words));
}

TEST_F(Shared, WhatSomebodyWaitsForIsReportedAtOnce) {
  begin(10);
  RoundTrips trips;
  EXPECT_TRUE(trips.has_answered(trips.hurry(nodes[0].words))) << "there is nothing to wait for";
  EXPECT_FALSE(trips.is_due(nodes[0].words, 0));
  nodes[0].map({"w1"});
  const int64_t wanted = trips.hurry(nodes[0].words);
  EXPECT_TRUE(trips.is_due(nodes[0].words, 0));
  EXPECT_FALSE(trips.has_answered(wanted));
  trips.reported(nodes[0].words.take_report(), 0);
  EXPECT_FALSE(trips.is_due(nodes[0].words, 0));
  EXPECT_EQ(trips.hurry(nodes[0].words), wanted);
  trips.answered(wanted);
  EXPECT_TRUE(trips.has_answered(wanted));
}

TEST_F(Shared, WhatWaitsForAReportIsBounded) {
  begin(10);
  std::vector<std::string> text;
  for (int i = 0; i < 70'000; ++i) text.push_back("w" + std::to_string(i));
  nodes[0].map(text);
  size_t told = 0;
  for (int i = 0; i < 8; ++i) {
    const VocabularyReport report = nodes[0].words.take_report();
    EXPECT_LE(report.words.size(), 1u << 14);
    told += report.words.size();
  }
  EXPECT_EQ(told, size_t{StreamVocabulary::kWaitingMax});
}

TEST_F(Shared, AFollowerMakesItAnewWhenItsLeaderIsGoneAndTellsEachWhatItLacks) {
  begin(3, 1);
  nodes[0].map({"a", "b", "b"});
  report(0);
  tell();
  nodes[0].map({"c", "b"});
  report(0);
  std::vector<Slot> admitted;
  ASSERT_TRUE(nodes[1].words.follow(leader->take_changes(), admitted).ok());
  const uint64_t lacks = nodes[0].words.stamp();
  SharedVocabulary next(StreamVocabulary::successor(nodes[1].words), true);
  EXPECT_GT(next.vocabulary().stamp(), leader->vocabulary().stamp() + 1'000'000) << "of which nobody has heard";
  EXPECT_EQ(next.vocabulary().weight(next.vocabulary().find("b")), 2);
  const VocabularyChanges rest = next.changes_since(lacks);
  ASSERT_EQ(rest.changes.size(), 1u);
  EXPECT_EQ(rest.changes[0].word, "c");
  EXPECT_EQ(rest.counts.size(), 3u);
  leader.emplace(std::move(next));
  for (Node& node : nodes) ASSERT_TRUE(node.words.follow(leader->changes_since(node.words.stamp()), admitted).ok());
  expect_equal();
  nodes[0].map({"d", "d", "d", "d"});
  report(0);
  tell();
  expect_equal();
  EXPECT_NE(nodes[1].slot_of("d"), kNoSlot) << "it admits, and evicts";
}

TEST(SharedVocabularyMessage, ComesBackAsItWasSentAndWhatIsCutShortIsRefused) {
  const VocabularyReport report{3, 70'000, 2.5, 10, 4, {{0, 1}, {5, 300}, {200'000, 2}}, {{"a", 1}, {"öl", 77}}, {}};
  const VocabularyChanges changes{
      5, 9, 1'000, 3.5, {{0, 6, 2.5, "a"}, {130, 9, 1, "b"}}, {1.5f, 2}, {{U'a', 6}, {U'b', 6}, {0x10FFFF, 9}}};
  const auto got = decode_vocabulary_report(encode(report));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->slots, report.slots);
  EXPECT_EQ(got->words, report.words);
  EXPECT_EQ(got->stamp, report.stamp);
  const auto told = decode_vocabulary_changes(encode(changes));
  ASSERT_TRUE(told.ok());
  ASSERT_EQ(told->changes.size(), 2u);
  EXPECT_EQ(told->changes[1].slot, 130);
  EXPECT_EQ(told->changes[1].word, "b");
  EXPECT_EQ(told->counts, changes.counts);
  EXPECT_EQ(characters_of(told->characters), characters_of(changes.characters));
  EXPECT_EQ(told->characters[2].born, 9u);
  for (const std::string& whole : {encode(report), encode(changes)})
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_vocabulary_report(whole.substr(0, size)).ok() && whole == encode(report));
      EXPECT_FALSE(decode_vocabulary_changes(whole.substr(0, size)).ok() && whole == encode(changes));
    }
  VocabularyChanges impossible = changes;
  impossible.changes[0].born = 5;  // before these changes
  EXPECT_FALSE(decode_vocabulary_changes(encode(impossible)).ok());
  for (const MetCharacter wrong : {MetCharacter{U'c', 8}, MetCharacter{U'c', 10}, MetCharacter{0x110000, 9}}) {
    impossible = changes;
    impossible.characters.push_back(wrong);  // earlier than the one before, later than all, none
    EXPECT_FALSE(decode_vocabulary_changes(encode(impossible)).ok());
  }
}

}  // namespace
}  // namespace streamvec
