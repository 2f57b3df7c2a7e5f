// The words of a stream in one thread, under a seeded network: nodes read at speeds of their own, what each tells each
// is delayed, words move on, so that slots change hands, and nodes die, most often the one that leads, which may speak
// on for a while.
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/cluster/stream_testing.h"
#include "streamvec/core/testing_seeds.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

class SimulatedWords {
 public:
  struct Options {
    uint64_t seed = 1;
    double death = 0.01;  // in a step
    // What a leader says last reaches some only. Then the words are all that is looked at: what it has counted and told
    // some may be counted twice, or not at all.
    bool torn = false;
    // Planted faults, to see that they are found.
    bool count_twice = false;    // all reports come twice, and are counted as often as they come
    bool ignore_births = false;  // what was counted in a slot counts for whatever word it has by then
    bool skip_change = false;    // now and then one node is not told of a change of hands
    bool overtake = false;       // news of the leader's overtake each other
    bool take_early = false;     // rows of who has heard of more changes do not wait
    bool hear_former = false;    // one node takes news of one that has led before
    bool forget_untold = false;  // what the leader before has not told all is not told the next one
    bool ask_nobody = false;     // the next one begins with the changes that itself has heard of
    bool tell_nobody = false;    // and believes that all others have heard of them, too
  };
  explicit SimulatedWords(const Options& options) : options_(options), random_(options.seed) {
    StreamVocabulary::Options words = words_of_test();
    if (!options_.torn) words.half_life = ForwardDecay::kForever;  // counts are whole numbers, and add up
    for (NodeId id = 1; id <= kNodes; ++id) {
      Node& node = nodes_[id];
      node.member = std::make_unique<StreamMember>(id, id == leader_, words, kWholeMessage);
      node.member->exchange->close();  // nobody waits for answers: there is one thread
      node.speed = 0.2 + 0.8 * random_.uniform();
      living_.insert(id);
    }
    change_view();
  }

  // What is wrong, in the end; "" when nothing is.
  std::string run() {
    for (int step = 0; step < kSteps && wrong_.empty(); ++step) this->step(true);
    for (int step = 0; step < kSettling && wrong_.empty(); ++step) this->step(false);
    for (const NodeId id : living_)
      if (wrong_.empty()) look_at_rows(id);
    if (wrong_.empty() && !options_.torn) look_at_counts();
    return wrong_;
  }
  int64_t successions() const { return successions_; }
  int64_t evicted() const { return of(leader_).vocabulary.statistics().evicted; }

 private:
  static constexpr NodeId kNodes = 5;
  static constexpr int kFilling = 100;  // steps: all slots have words then
  static constexpr int kSteps = 400, kSettling = 100;
  static constexpr int64_t kWholeMessage = 1 << 20;
  static constexpr double kWayMax = 0.5;  // seconds that a message takes
  struct Frame {
    double due_s = 0;
    std::string bytes = {};              // of words; else:
    Message rows = {};                   // 1 was added to each of these
    std::optional<uint64_t> heard = {};  // or a greeting: up to which change the node has heard
  };
  struct Node {
    std::unique_ptr<StreamMember> member;
    EarlyMessages early;
    NodeId leader = 1;  // that it knows
    double speed = 1;
  };

  StreamMember& of(NodeId id) { return *nodes_.at(id).member; }
  const StreamMember& of(NodeId id) const { return *nodes_.at(id).member; }
  void expect(bool right, NodeId id, const std::string& what) {
    if (!right && wrong_.empty()) wrong_ = "node " + std::to_string(id) + ": " + what;
  }
  void expect_between(float least, float value, float most, const std::string& what) {
    expect(value >= least, leader_,
           what + std::to_string(value) + ", but those that live have " + std::to_string(least));
    expect(value <= most, leader_, what + std::to_string(value) + ", but there were " + std::to_string(most));
  }
  void expect(const Status& status, NodeId id) { expect(status.ok(), id, status.message()); }

  void step(bool reads) {
    now_s_ += 0.05;
    step_ += 1;
    if (reads && step_ > kFilling && living_.size() > 2 && random_.uniform() < options_.death) lose_one();
    for (const NodeId id : living_)
      if (nodes_[id].leader != leader_ && random_.below(10) == 0) greet(id);
    take_place();
    compare_words();
    for (const NodeId id : living_) {
      deliver_to(id);
      if (reads && random_.uniform() < nodes_[id].speed) read(id);
      talk(id, nodes_[id].leader, !reads);
    }
    for (const auto& [id, until_s] : cut_off_)
      if (now_s_ < until_s) deliver_to(id), talk(id, id, false);
  }

  // Words of all, and some that follow each other, ever more of them, so that they get the slots of others.
  void read(NodeId id) {
    StreamMember& member = of(id);
    std::vector<std::string> text;
    for (int i = static_cast<int>(random_.below(20)) - 4 - step_ / 20; i < 0; ++i) {
      const uint32_t rank = std::min(random_.below(8), random_.below(8));
      text.push_back(random_.below(3) == 0 ? "all" + std::to_string(rank)
                                           : std::to_string(step_ / 20) + "of" + std::to_string(id % 3 + rank / 3));
      ++times_[text.back()];
      ++tokens_;
    }
    const std::vector<float> before = member.added;
    member.read(text);
    Frame frame;
    frame.rows.stamp = member.exchange->generations().stamp();
    for (Slot slot = 0; slot < member.vocabulary.size(); ++slot) {
      const float times = member.added[static_cast<size_t>(slot)] - before[static_cast<size_t>(slot)];
      trained_[{slot, member.vocabulary.born(slot)}] += times;
      said_of_[{frame.rows.stamp, static_cast<RowKey>(2 * slot)}] = member.vocabulary.born(slot);
      frame.rows.rows.insert(frame.rows.rows.end(), static_cast<size_t>(times), static_cast<RowKey>(2 * slot));
    }
    for (const NodeId other : living_)
      if (other != id) send(id, other, frame);
  }

  void talk(NodeId id, NodeId leader, bool last) {
    StreamExchange::Outbox out;
    std::vector<Slot> restarted;
    expect(of(id).exchange->step(now_s_, id, leader, view_, last, out, restarted), id);
    release(id);
    send_all(id, std::move(out));
  }
  void send_all(NodeId from, StreamExchange::Outbox out) {
    for (auto& [to, bytes] : out) send(from, to, {.bytes = std::move(bytes)});
  }
  // In order.
  void send(NodeId from, NodeId to, Frame frame) {
    std::deque<Frame>& link = links_[{from, to}];
    frame.due_s = now_s_ + kWayMax * random_.uniform();
    if (!link.empty()) frame.due_s = std::max(frame.due_s, link.back().due_s);
    link.push_back(std::move(frame));
  }

  void deliver_to(NodeId id) {
    for (auto& [way, link] : links_)
      if (way.second == id) deliver(way.first, id, link);
  }
  void deliver_from(NodeId id) {
    for (auto& [way, link] : links_)
      if (way.first == id && living_.count(way.second) > 0) deliver(id, way.second, link);
  }
  void deliver(NodeId from, NodeId to, std::deque<Frame>& link) {
    while (!link.empty() && link.front().due_s <= now_s_) {
      if (options_.overtake && link.size() > 1 && random_.below(10) == 0) std::swap(link[0], link[1]);
      Frame frame = std::move(link.front());
      link.pop_front();
      if (frame.heard && to == leader_)
        heard_[from] = *frame.heard;
      else if (frame.bytes.empty())
        deliver_rows(from, to, frame.rows);
      else
        deliver_words(from, to, frame.bytes);
      release(to);
    }
  }
  void deliver_words(NodeId from, NodeId to, const std::string& bytes) {
    std::vector<Slot> restarted;
    for (const std::string& each : altered(to, bytes))
      expect(of(to).exchange->receive(from, options_.hear_former && to == kNodes ? from : nodes_[to].leader, each,
                                      restarted),
             to);
  }
  // As a planted fault would have it.
  std::vector<std::string> altered(NodeId to, const std::string& bytes) {
    if (Result<StreamReport> report = decode_stream_report(bytes); report.ok()) {
      if (options_.ignore_births) report->words.stamp = std::numeric_limits<uint64_t>::max();
      if (!options_.count_twice) return {encode(*report)};
      StreamReport again = *report;
      again.words.number = 2 * report->words.number;
      report->words.number = again.words.number - 1;
      return {encode(*report), encode(again)};
    }
    if (Result<StreamNews> news = decode_stream_news(bytes); news.ok()) {
      if (options_.count_twice) news->answered /= 2;
      if (options_.skip_change && to == kNodes && !news->words.changes.empty() && random_.below(10) == 0)
        news->words.changes.pop_back();
      return {encode(*news)};
    }
    return {bytes};
  }
  void deliver_rows(NodeId from, NodeId to, Message& rows) {
    Node& node = nodes_[to];
    if (options_.take_early || !node.early.keep(from, rows, node.member->exchange->generations()))
      add(from, *node.member, rows);
  }
  void release(NodeId id) {
    Node& node = nodes_[id];
    node.early.release(node.member->exchange->generations(),
                       [&](NodeId from, const Message& rows) { add(from, *node.member, rows); });
  }
  void add(NodeId from, StreamMember& to, const Message& rows) {
    const Generations& generations = to.exchange->generations();
    for (const RowKey key : rows.rows) {
      const bool known = key < generations.key_end(), counts = known && generations.counts(key, rows.stamp);
      const bool same = known && generations.born(key) == said_of_[{rows.stamp, key}];
      expect(counts == same && known, to.id,
             counts ? "takes rows as of another word" : "passes over rows of its words");
      if (counts) to.tables[0].row(key / 2)[from - 1] += 1;
    }
  }

  void lose_one() {
    NodeId lost = leader_;
    if (!options_.torn && random_.below(2) == 0)
      lost = *std::next(living_.begin(), random_.below(static_cast<uint32_t>(living_.size())));
    if (lost == leader_ && !options_.torn) now_s_ += kWayMax, deliver_from(lost);
    living_.erase(lost);
    if (lost != leader_ && gathers_) return;
    if (lost != leader_) return change_view();
    if (options_.torn) cut_off_[lost] = now_s_ + 2 * random_.uniform();
    leader_ = *std::next(living_.begin(), random_.below(static_cast<uint32_t>(living_.size())));
    led_since_ = ++epoch_;
    gathers_ = true;
    heard_.clear();
    ++successions_;
  }
  void change_view() {
    view_ = {++epoch_, {living_.begin(), living_.end()}, {living_.begin(), living_.end()}};
    // Nobody hears those that are left out, and nothing that they have said waits.
    for (auto& [way, link] : links_)
      if (living_.count(way.first) == 0) link.clear();
    for (auto& [id, node] : nodes_)
      for (const auto& [other, of_other] : nodes_)
        if (living_.count(other) == 0) node.early.forget(other);
  }
  // Hears that another leads.
  void greet(NodeId id) {
    nodes_[id].leader = leader_;
    StreamExchange::Outbox out;
    of(id).exchange->change_leader(id, leader_, out);
    Frame greeting;
    greeting.heard = of(id).vocabulary.stamp();
    if (!options_.forget_untold) send_all(id, std::move(out));
    send(id, leader_, std::move(greeting));
  }
  // Once all have greeted.
  void take_place() {
    if (!gathers_) return;
    std::erase_if(heard_, [&](const auto& node) { return living_.count(node.first) == 0; });
    if (heard_.size() < living_.size() || nodes_[leader_].leader != leader_) return;
    std::map<NodeId, uint64_t> heard = heard_;
    const uint64_t own = heard[leader_];
    for (auto& [id, stamp] : heard) {
      if (options_.ask_nobody) stamp = std::min(stamp, own);
      if (options_.tell_nobody) stamp = std::max(stamp, own);
    }
    of(leader_).exchange->succeed(std::move(heard), led_since_);
    gathers_ = false;
    change_view();
  }

  // Who has heard of as many changes has the same words.
  void compare_words() {
    std::map<uint64_t, NodeId> first;
    for (const NodeId id : living_) {
      const StreamVocabulary &words = of(id).vocabulary,
                             &known = of(first.try_emplace(words.stamp(), id).first->second).vocabulary;
      expect(of(id).exchange->generations().stamp() == words.stamp(), id, "its rows have not heard of all changes");
      expect(words.size() == known.size(), id, "has not as many words");
      for (Slot slot = 0; slot < known.size() && wrong_.empty(); ++slot)
        expect(words.born(slot) == known.born(slot) && words.word(slot) == known.word(slot), id,
               "has another word than " + std::string(known.word(slot)));
    }
  }
  void look_at_rows(NodeId id) {
    const StreamMember &member = of(id), &first = of(leader_);
    expect(member.vocabulary.stamp() == first.vocabulary.stamp(), id, "has not heard of all changes");
    for (Slot slot = 0; slot < first.vocabulary.size() && wrong_.empty(); ++slot) {
      const std::string word(first.vocabulary.word(slot));
      const float* const row = member.tables[0].row(slot);
      expect(row[kStreamDim - 1] == StreamMember::mark_of(first.vocabulary.born(slot)), id, "row of before " + word);
      for (const NodeId other : living_)
        expect(row[other - 1] == of(other).added[static_cast<size_t>(slot)], id,
               "has not what node " + std::to_string(other) + " has added to " + word);
    }
  }

  // Of nodes that are gone some counts are lost, and those before a word had a slot; of the others none, and none is
  // counted twice.
  void look_at_counts() {
    const StreamMember& first = of(leader_);
    const StreamVocabulary& words = first.exchange->words();
    for (Slot slot = 0; slot < words.size(); ++slot) {
      float of_living = 0;
      for (const NodeId id : living_) of_living += of(id).added[static_cast<size_t>(slot)];
      const std::string word = " of " + std::string(words.word(slot)) + ": ";
      const auto all = static_cast<float>(times_[std::string(words.word(slot))]);
      expect_between(of_living, static_cast<float>(words.weight(slot)), all, "counts" + word);
      expect_between(of_living, static_cast<float>(first.hybrid->met(slot)), trained_[{slot, words.born(slot)}],
                     "trained occurrences" + word);
    }
    if (living_.size() == kNodes)
      expect(words.statistics().tokens == tokens_, leader_, "words of the text are lost, or came twice");
  }

  const Options options_;
  Random random_;
  double now_s_ = 0;
  int step_ = 0;
  std::map<NodeId, Node> nodes_;
  std::set<NodeId> living_;
  std::map<NodeId, double> cut_off_;  // that led, and until when they speak on
  std::map<std::pair<NodeId, NodeId>, std::deque<Frame>> links_;
  NodeId leader_ = 1;
  bool gathers_ = false;
  std::map<NodeId, uint64_t> heard_;  // of those that have greeted the leader: up to which change
  uint32_t epoch_ = 0, led_since_ = 0;
  View view_;
  std::map<std::string, int64_t> times_;                     // read by anybody
  std::map<std::pair<Slot, uint64_t>, float> trained_;       // likewise, in the slot since it has its word
  std::map<std::pair<uint64_t, RowKey>, uint64_t> said_of_;  // births of what rows mean, by the stamp of who says it
  int64_t tokens_ = 0, successions_ = 0;
  std::string wrong_;
};

TEST(WordsOfStreams, AreTheSameOnAllNodesAndCountedOnceWhileLeadersDie) {
  int64_t successions = 0, evicted = 0;
  const int64_t seeds = seeds_or(30);
  for (int64_t seed = first_seed(); seed < first_seed() + seeds; ++seed) {
    SimulatedWords words(
        {.seed = static_cast<uint64_t>(seed), .death = seed % 3 == 0 ? 0 : 0.01, .torn = seed % 2 == 0});
    ASSERT_EQ(words.run(), "") << "seed " << seed;
    successions += words.successions();
    evicted += words.evicted();
  }
  EXPECT_GT(successions, seeds / 2);
  EXPECT_GT(evicted, 30 * seeds);
}

// What the test above is worth: with a fault planted it fails.
class PlantedInWords : public ::testing::Test {
 protected:
  static constexpr int64_t kSeeds = 60;
  // How many of the seeds give the fault away.
  template <typename Plant>
  static int64_t found(Plant&& plant) {
    int64_t found = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SimulatedWords::Options faulty{.seed = seed};
      plant(faulty);
      found += SimulatedWords(faulty).run().empty() ? 0 : 1;
    }
    return found;
  }
};

TEST_F(PlantedInWords, ReportsThatAreCountedTwiceAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.count_twice = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, CountsOfASlotsLastWordAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.ignore_births = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, ChangesOfHandsThatOneIsNotToldAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.skip_change = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, ChangesOfHandsOutOfOrderAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.overtake = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, RowsThatDoNotWaitForTheWordsThatTheyMeanAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.take_early = faulty.torn = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, NewsOfAFormerLeaderAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.hear_former = faulty.torn = true, faulty.death = 0.02; }), 1);
}

TEST_F(PlantedInWords, CountsThatAreNotToldTheNextLeaderAreFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.forget_untold = true; }), kSeeds / 6);
}

TEST_F(PlantedInWords, ALeaderThatDoesNotAskWhoHasHeardMoreIsFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.ask_nobody = faulty.torn = true, faulty.death = 0.02; }), kSeeds / 6);
}

TEST_F(PlantedInWords, ALeaderThatDoesNotTellTheRestIsFound) {
  EXPECT_GE(found([](auto& faulty) { faulty.tell_nobody = faulty.torn = true, faulty.death = 0.02; }), kSeeds / 6);
}

}  // namespace
}  // namespace streamvec
