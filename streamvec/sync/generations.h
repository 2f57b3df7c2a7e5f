// Rows that change hands: in a stream a slot's word may leave, and its rows then begin anew for another word, on every
// node at a moment of its own. Who speaks of a row says up to where it had heard of such changes; who listens has heard
// at least as much (EarlyMessages), and passes over what was said of a word that is gone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "streamvec/sync/message.h"

namespace streamvec {

// Changes of hands are numbered from 1 on, alike for all nodes (StreamVocabulary::stamp()). Not thread-safe.
class Generations {
 public:
  // For slots below slots_max; a slot has a row in each of the tables.
  explicit Generations(int64_t slots_max, int64_t tables = 2)
      : tables_(static_cast<RowKey>(tables)), born_(static_cast<size_t>(slots_max), 0) {}

  // This node has heard of all changes up to here.
  uint64_t stamp() const { return stamp_; }
  void go_to(uint64_t stamp) { stamp_ = stamp; }
  // The slot has had its word since that change. REQUIRES: born <= what go_to() will be told before anybody speaks.
  void begin(int64_t slot, uint64_t born) {
    born_[static_cast<size_t>(slot)] = born;
    slots_ = slot >= slots_ ? slot + 1 : slots_;
  }
  // What was said of the row at `stamp` was said of the word that it has now. REQUIRES: stamp <= stamp().
  bool counts(RowKey key, uint64_t stamp) const { return born_[key / tables_] <= stamp; }
  uint64_t born(RowKey key) const { return born_[key / tables_]; }
  // Keys of slots that have ever had a word are below it.
  RowKey key_end() const { return static_cast<RowKey>(slots_) * tables_; }

 private:
  RowKey tables_;
  uint64_t stamp_ = 0;
  int64_t slots_ = 0;
  std::vector<uint64_t> born_;  // by slot
};

// Messages whose sender has heard of changes of hands that we have not: they wait until we have, and what the same
// sender said later waits behind them. Of a sender that is forgotten they were the last: where it is not known any more
// which changes it had heard of, nobody could say what its rows mean. Not thread-safe.
class EarlyMessages {
 public:
  // True when it has to wait, and is kept then, or is of one that is forgotten.
  bool keep(NodeId from, Message& message, const Generations& generations) {
    if (forgotten_.count(from) > 0) return true;
    const auto waiting = waiting_.find(from);
    if (message.stamp <= generations.stamp() && waiting == waiting_.end()) return false;
    waiting_[from].push_back(std::move(message));
    return true;
  }
  void forget(NodeId from) {
    forgotten_.insert(from);
    waiting_.erase(from);
  }
  // Calls take(from, message) for those that need not wait any longer, each sender's in order.
  template <typename Take>
  void release(const Generations& generations, Take&& take) {
    for (auto sender = waiting_.begin(); sender != waiting_.end();) {
      std::vector<Message>& messages = sender->second;
      size_t ready = 0;
      while (ready < messages.size() && messages[ready].stamp <= generations.stamp()) ++ready;
      std::vector<Message> taken(std::make_move_iterator(messages.begin()),
                                 std::make_move_iterator(messages.begin() + static_cast<std::ptrdiff_t>(ready)));
      messages.erase(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(ready));
      const NodeId from = sender->first;
      sender = messages.empty() ? waiting_.erase(sender) : std::next(sender);
      for (const Message& message : taken) take(from, message);
    }
  }

 private:
  std::map<NodeId, std::vector<Message>> waiting_;
  std::set<NodeId> forgotten_;
};

}  // namespace streamvec
