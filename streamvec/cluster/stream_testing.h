// Nodes that share a stream over a network inside the process, for tests of what they tell each other.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/core/random.h"
#include "streamvec/model/parameters.h"

namespace streamvec::testing {

constexpr int64_t kStreamDim = 6, kSlots = 24;  // for five nodes
constexpr int64_t kMessageBytes = 150;          // of a few words: longer ones go in parts

inline StreamVocabulary::Options words_of_test() {
  StreamVocabulary::Options options;
  options.min_count = 2;
  options.vocab_max = kSlots;
  options.half_life = 400;
  return options;
}

// A node that reads words of its own and "trains" by adding 1 to the rows of each, in its own column; the last column
// tells the change with which a row began. Words are counted as met, too, for a generator that nobody makes.
struct StreamMember {
  StreamMember(NodeId self, bool leads, const StreamVocabulary::Options& words = words_of_test(),
               int64_t message_bytes_max = kMessageBytes, ChunkSender* sender = nullptr)
      : id(self), shared(words), vocabulary(StreamVocabulary::follower(words, shared)) {
    for (Matrix& table : tables) table = std::move(Matrix::make(0, kStreamDim, kSlots)).value();
    EXPECT_TRUE(hybrid->only_count().ok());
    StreamExchange::Parts parts{.vocabulary = vocabulary,
                                .lock_vocabulary = [this] { return std::unique_lock(words_mutex); },
                                .restarted = [this](std::span<const Slot> slots) { restart(slots); },
                                .first_row = [](RowKey, uint64_t born, std::span<float> row) { begin(born, row); },
                                .sender = sender,
                                .message_bytes_max = message_bytes_max,
                                .hybrid = hybrid.get()};
    std::optional<SharedVocabulary> lead;
    if (leads) lead.emplace(std::move(shared), true);
    exchange = std::make_unique<StreamExchange>(std::move(parts), kSlots, std::move(lead));
  }

  // Whole numbers that a float has: those of a leader's successor are far from its own.
  static float mark_of(uint64_t born) { return static_cast<float>(born % 999'983); }
  static void begin(uint64_t born, std::span<float> row) {
    std::fill(row.begin(), row.end(), 0.0f);
    row[kStreamDim - 1] = mark_of(born);
  }
  void restart(std::span<const Slot> slots) {
    const std::lock_guard lock(rows_mutex);
    for (const Slot slot : slots) hybrid->set_word(slot, vocabulary.word(slot));
    for (const Slot slot : slots)
      for (Matrix& table : tables) {
        if (slot >= table.rows()) table.grow(slot + 1);
        begin(vocabulary.born(slot), {table.row(slot), static_cast<size_t>(kStreamDim)});
        added[static_cast<size_t>(slot)] = 0;
      }
  }
  void read(const std::vector<std::string>& text) {
    exchange->await_words();
    const std::vector<std::string_view> views(text.begin(), text.end());
    std::vector<Slot> slots(views.size()), admitted;
    const std::lock_guard words(words_mutex);
    vocabulary.map(views, static_cast<double>(vocabulary.statistics().tokens), slots, admitted);
    const std::lock_guard rows(rows_mutex);
    Chunk chunk;
    for (const Slot slot : slots) {
      if (slot == kNoSlot) continue;
      chunk.slots.push_back(slot);
      for (Matrix& table : tables) table.row(slot)[id - 1] += 1;
      added[static_cast<size_t>(slot)] += 1;
    }
    Parameters none;
    hybrid->learn(chunk, none);
  }

  const NodeId id;
  std::mutex words_mutex, rows_mutex;
  StreamVocabulary shared;
  StreamVocabulary vocabulary;
  Matrix tables[2];
  std::vector<float> added = std::vector<float>(kSlots, 0.0f);
  std::unique_ptr<Hybrid> hybrid =
      std::move(Hybrid::make({.dim = kStreamDim, .words_max = kSlots, .bag = {.bucket_bits = 8}})).value();
  std::unique_ptr<StreamExchange> exchange;
  std::unique_ptr<ClusterNode> node;
};

// Nodes that begin together; found by a registry when they are `elastic`.
class StreamNodes {
 public:
  void start(size_t count, Admission admission, double dead_after_s = 10, bool elastic = false) {
    ClusterOptions& options = options_;
    for (size_t i = 0; i < count; ++i) options.workers.push_back(static_cast<NodeId>(i + 1));
    options.servers = options.workers;
    options.sync.scheme = {admission, Combine::kSum, CodecKind::kFp32};
    options.sync.dim = kStreamDim;
    options.sync.key_end = 2 * kSlots;
    options.words_min = 20;
    options.words_max = 400;
    options.dead_after_s = dead_after_s;
    options.joinable = elastic;
    for (size_t i = 0; elastic && i < count; ++i) {
      options.addresses[options.workers[i]] = "";
      notebook.last.push_back({options.workers[i], "", true, true});
    }
    for (size_t i = 0; i < count; ++i) members.push_back(std::make_unique<StreamMember>(options.workers[i], i == 0));
    for (auto& member : members) start(*member, options);
  }
  void start(StreamMember& member, ClusterOptions options) {
    auto transport = network.join(member.id);
    for (const NodeId other : options.workers)
      if (other != member.id) transport->add_peer(other, "");
    if (options.joinable) options.registry = &notebook.page(member.id);
    options.stream = member.exchange.get();
    options.sync.generations = &member.exchange->generations();
    options.sync.live_mutex = &member.rows_mutex;
    member.node =
        std::move(ClusterNode::start(options, std::move(transport), {&member.tables[0], &member.tables[1]})).value();
  }
  // One that comes while others read, and has no words yet.
  StreamMember& join(NodeId id) {
    ClusterOptions now = options_;
    now.joins = true;
    now.workers.push_back(id);
    now.servers.push_back(id);
    now.addresses[id] = "";
    now.leader = notebook.leader();
    start(*members.emplace_back(std::make_unique<StreamMember>(id, false)), now);
    return *members.back();
  }
  // Lines of text each, all at once, and until all have ended that are still there.
  std::vector<Status> run(const std::vector<int>& lines, int first_line = 0) {
    std::vector<Status> statuses(members.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < members.size(); ++i)
      threads.emplace_back([&, i] {
        statuses[i] = members[i]->node->await_start().status();
        if (statuses[i].ok()) read(*members[i], lines[i], first_line);
        if (statuses[i].ok() && members[i]->node != nullptr) statuses[i] = members[i]->node->finish({}).status();
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  void read_all(int lines) {
    std::vector<std::thread> threads;
    for (auto& member : members) threads.emplace_back([&] { read(*member, lines); });
    for (std::thread& thread : threads) thread.join();
  }
  // Each node reads words of its own and some that all have; the words move on, so that slots change hands.
  static void read(StreamMember& member, int lines, int first_line = 0) {
    Random random(member.id + static_cast<uint64_t>(first_line));
    for (int line = first_line; line < first_line + lines; ++line) {
      std::vector<std::string> text;
      for (int i = 0; i < 10; ++i) {
        const bool own = random.below(2) == 0;
        text.push_back((own ? "n" + std::to_string(member.id) : std::string("all")) +
                       std::to_string(line / 20 + static_cast<int>(random.below(6))));
      }
      member.read(text);
      if (!member.node->trained(10).ok()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  }
  // Those nodes end with the same words in the same slots, and with rows that have what each of them has added to them,
  // and alike of nodes that are gone.
  void expect_equal(const std::vector<NodeId>& living) const {
    const StreamMember& first = *members[living.front() - 1];
    ASSERT_GT(first.vocabulary.size(), 10);
    for (const NodeId id : living) {
      const StreamMember& member = *members[id - 1];
      EXPECT_EQ(member.vocabulary.stamp(), first.vocabulary.stamp());
      ASSERT_EQ(member.vocabulary.size(), first.vocabulary.size());
      for (Slot slot = 0; slot < first.vocabulary.size(); ++slot) {
        EXPECT_EQ(member.vocabulary.word(slot), first.vocabulary.word(slot));
        for (size_t table = 0; table < 2; ++table) {
          const float* row = member.tables[table].row(slot);
          EXPECT_EQ(row[kStreamDim - 1], StreamMember::mark_of(first.vocabulary.born(slot)));
          for (const NodeId other : living)
            EXPECT_EQ(row[other - 1], members[other - 1]->added[static_cast<size_t>(slot)])
                << "slot " << slot << " of node " << id << ", by node " << other;
          for (int64_t k = 0; k + 1 < kStreamDim; ++k)
            EXPECT_EQ(row[k], first.tables[table].row(slot)[k]) << "slot " << slot << ", by node " << k + 1;
        }
      }
    }
  }
  // That one knows how often all of them have trained on each word.
  void expect_met(NodeId leader) const {
    const StreamMember& first = *members[leader - 1];
    for (Slot slot = 0; slot < first.vocabulary.size(); ++slot) {
      float all = 0;
      for (const auto& member : members) all += member->added[static_cast<size_t>(slot)];
      EXPECT_EQ(static_cast<float>(first.hybrid->met(slot)), all) << "slot " << slot;
    }
  }
  // Parts at once, and its lease ends.
  void kill(NodeId id) {
    members[id - 1]->node.reset();
    notebook.forget(id);
  }

  InprocNetwork network;
  Notebook notebook;
  std::vector<std::unique_ptr<StreamMember>> members;

 private:
  ClusterOptions options_;
};

}  // namespace streamvec::testing
