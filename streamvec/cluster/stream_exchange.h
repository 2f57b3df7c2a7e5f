// What nodes that train on streams tell each other beside rows: counts of words and who has a slot
// (vocab/shared_vocabulary.h), how often words were trained on where a model goes by it (met_counts.h), what replay's
// draws count for (replay/union.h), where sources stand when the leader saves, and that all are to stop. Run by the
// node's talking thread (node.h); its other functions are the trainer's.
//
// The vocabulary is the leader's. Where another takes its place (stream_succession.cc) that one makes it anew of what
// followers know: all have heard of the same changes of hands, only not as many.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/cluster/chunk_relay.h"
#include "streamvec/cluster/message_parts.h"
#include "streamvec/cluster/met_counts.h"
#include "streamvec/cluster/stream_message.h"
#include "streamvec/cluster/untold_counts.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/replay/table.h"
#include "streamvec/sync/generations.h"
#include "streamvec/sync/view.h"
#include "streamvec/transport/transport.h"
#include "streamvec/vocab/shared_vocabulary.h"

namespace streamvec {

class StreamExchange {
 public:
  // What the node has; all borrowed. The functions that take slots are called under the vocabulary's lock by the
  // talking thread.
  struct Parts {
    StreamVocabulary& vocabulary;  // a follower
    ReplayTable* replay = nullptr;
    std::function<std::unique_lock<std::mutex>()> lock_vocabulary;
    // These slots have other words: their live rows are to begin anew.
    std::function<void(std::span<const Slot>)> restarted;
    std::function<void()> counted = {};  // all words' counts are new
    // The value that the row of a key begins with, for a word born then; the same on all nodes.
    std::function<void(RowKey key, uint64_t born, std::span<float> row)> first_row;
    bool clock_tokens = true;  // of the shared vocabulary (SharedVocabulary), for one that comes to lead
    // Where some nodes only read, for the others: who they are, and this one's end of it.
    std::set<NodeId> readers = {};
    ChunkSender* sender = nullptr;
    ChunkReceiver* receiver = nullptr;
    int64_t message_bytes_max = int64_t{16} << 20;  // longer ones go in parts, however many words there are
    Hybrid* hybrid = nullptr;                       // of the hybrid model
  };
  using Outbox = std::vector<std::pair<NodeId, std::string>>;

  // `shared`: of the node that leads at first. `slots_max`: as many as tables have rows at most.
  StreamExchange(Parts parts, int64_t slots_max, std::optional<SharedVocabulary> shared);

  // ---- by the talking thread
  const Generations& generations() const { return generations_; }
  // What is to be told now to those who take part. `last`: this node's text is over, and all of it is told.
  // `restarted` gets the slots whose rows begin anew now. An error ends the node.
  Status step(double now_s, NodeId self, NodeId leader, const View& view, bool last, Outbox& out,
              std::vector<Slot>& restarted);
  // News of one that does not lead, any more, is passed over; reports to one that does not yet are kept.
  Status receive(NodeId from, NodeId leader, std::string_view bytes, std::vector<Slot>& restarted);
  void first_row(RowKey key, std::span<float> row) const { parts_.first_row(key, generations_.born(key), row); }
  bool take_counted() { return std::exchange(counted_, false); }  // since the last call counts() of all are new
  void close();                                                   // nobody answers any more: nobody waits

  // Of the leader: tells one that is about to join all words, so that it can take their rows. When it takes part it
  // hears once more of those that have changed hands in this run. REQUIRES: has_words().
  void welcome(NodeId node, Outbox& out) const;

  // ---- by the talking thread, where another takes the leader's place
  bool may_lead(NodeId self) const { return parts_.readers.count(self) == 0; }
  // This node has another leader from now on, or is it: what the one before has not answered is told again.
  void change_leader(NodeId self, NodeId leader, Outbox& out);
  // It is it since that epoch: up to which change each of those has heard that take part. From the next membership on
  // it asks the one that has heard the most for what it lacks, and then tells all.
  void succeed(std::map<NodeId, uint64_t> heard, uint32_t epoch);
  bool succeeds() const { return succession_.has_value(); }  // it has not told them yet: nobody may end before

  // ---- by threads that read sources
  // Waits while too much is unanswered that had no slot: as long as a message takes to the leader and back. REQUIRES:
  // the vocabulary's lock is not held.
  void await_words();
  // Waits until the leader has counted all that was mapped so far: words that it gives slots have them then. REQUIRES:
  // as await_words().
  void await_slots();

  // ---- by the thread that watches the run
  // Of the leader: all nodes are to stop. Of the others: whether they are.
  void ask_to_stop() { stop_ = true; }
  bool asked_to_stop() const { return stop_; }
  // Of the leader, around a save: asks where the others' sources stand and waits for those that answer in time; no slot
  // changes hands between hold(), with which this node's counts are those of all, and go_on(); what was told is in a
  // checkpoint now. has_words(): one that took another's place has the vocabulary by now; one that never will, since
  // all have ended, makes it with hold().
  bool has_words() const;
  const StreamVocabulary& words() const {
    return shared_->vocabulary();
  }  // REQUIRES: has_words(), the vocabulary's lock
  void gather_cursors(Deadline deadline);
  std::map<NodeId, std::string> cursors() const;  // what nodes have told last
  void hold();
  void go_on();
  void saved() { saved_ = save_.load(); }
  std::string save_vocabulary() const;  // REQUIRES: hold()
  // Of the leader, where readers share sources: those that take part are others than the last division was made for.
  // Then it asks where all stand, as for a save, and from there on they read nothing of what they share; when all have
  // told it, it tells who reads what. Nobody waits for it: a node that does not answer is left out some time.
  bool division_due() const;
  void ask_to_divide();
  bool may_divide() const;                   // all have answered
  std::set<NodeId> members() const;          // that train, the leader too
  void tell_division(std::string division);  // REQUIRES: may_divide()
  // Of all: shared sources are to stand still before cursors are told; who reads what, once each time.
  bool is_dividing() const { return divide_ > divided_; }
  std::optional<std::string> take_division();
  NodeId self() const { return self_; }  // REQUIRES: take_division() or may_divide() was true
  // Of the others: cursors are wanted, here they are; those told last are safe.
  bool cursors_wanted() const { return save_ > told_save_; }
  int64_t wanted_save() const { return save_; }  // for which they are told, whatever is asked for meanwhile
  void tell_cursors(std::string cursors) { tell_cursors(std::move(cursors), save_); }
  void tell_cursors(std::string cursors, int64_t save);
  bool take_safe();  // true once for each

 private:
  void put(NodeId to, std::string message, Outbox& out) const;
  Status receive_whole(NodeId from, NodeId leader, std::string_view bytes, std::vector<Slot>& restarted);
  void take_report(NodeId from, StreamReport report);
  void relay(const View& view, Outbox& out);
  void report(double now_s, NodeId self, NodeId leader, StreamReport& report, Outbox& out);
  Status lead(NodeId self, const View& view, Outbox& out, std::vector<Slot>& restarted);
  Status apply(const StreamNews& news, std::vector<Slot>& restarted);
  Status apply_words(const VocabularyChanges& words, std::vector<Slot>& restarted);
  void receive_division(const StreamNews& news);
  StreamNews news_for(NodeId node, const VocabularyChanges& changes) const;
  Status take_place(double now_s, NodeId self, const View& view, Outbox& out);
  Status receive_changes(NodeId from, std::string_view bytes, std::vector<Slot>& restarted);
  void make_shared();

  const Parts parts_;
  // Of the talking thread, those of words under the vocabulary's lock.
  Generations generations_;
  MessageParts parts_come_;
  const uint64_t first_stamp_;  // that all began with
  RoundTrips trips_;
  UntoldCounts untold_;  // of one that does not lead
  MetCounts met_;
  bool counted_ = false, last_told_ = false;
  std::vector<Slot> admitted_;
  std::optional<SharedVocabulary> shared_;
  std::vector<std::pair<NodeId, StreamReport>> reports_;  // that have come and are not counted yet
  ReplayUnion replays_;
  struct Known {
    int64_t answered = 0, told = 0;  // reports
    int64_t save = 0, saved = 0;     // told
    bool stop = false;
    int64_t divide = 0, divided = 0;
    uint64_t stamp = 0;  // of the changes that it was told of
  };
  std::map<NodeId, Known> nodes_;
  struct Succession {
    std::map<NodeId, uint64_t> heard;
    uint32_t epoch = 0;
    NodeId asked = 0;
  };
  std::optional<Succession> succession_;
  std::optional<uint64_t> wanted_after_;  // by the leader, which has heard of the changes up to there
  bool held_ = false, closed_ = false;    // under the vocabulary's lock
  std::condition_variable words_changed_;

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> save_{0}, saved_{0}, told_save_{0};
  std::atomic<int64_t> divide_{0}, divided_{0};  // saves: the last that divides, the one the last division is of
  std::atomic<NodeId> self_{0};
  std::atomic<bool> stepped_{false};  // the last is known
  mutable std::mutex mutex_;          // of what follows
  std::condition_variable cursors_changed_;
  std::map<NodeId, std::pair<int64_t, std::string>> cursors_;  // of the leader: what nodes told, for which save
  std::set<NodeId> others_;                                    // that train
  bool led_ = false;                                           // these are known
  std::set<NodeId> divided_members_;                           // whom the leader's last division is for
  std::string division_;                                       // the last one
  int64_t taken_division_ = 0;                                 // of which save
  std::optional<std::string> own_cursors_;                     // to be told
  std::string told_cursors_;                                   // last
  bool answers_over_ = false;                                  // nobody answers any more
  int64_t own_safe_ = 0;                                       // of the saves that are safe, the last one taken
};

}  // namespace streamvec
