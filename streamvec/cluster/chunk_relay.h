// Chunks on their way from nodes that only read to the replay of nodes that train. A reader gives each chunk to the one
// that has the most room; who trains puts it into its replay when that wants more, and says so, so that at most
// kOutstandingMax chunks of a reader wait for a node and a reader reads no faster than is trained on.
//
// An item that withdraws a record goes to all, in its place among the chunks, and counts as one: so it takes out what
// was sent before it, wherever that is, and nothing that was written later under the same name.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/replay/table.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

std::string encode_chunk(const ReplayItem& item);
// kInvalidArgument for bytes that encode_chunk() does not write, and for what is neither text nor withdraws a record.
Result<std::shared_ptr<const ReplayItem>> decode_chunk(std::string_view bytes);

// Of a node that only reads. Thread-safe.
class ChunkSender {
 public:
  static constexpr int64_t kOutstandingMax = 64;

  // By threads that read: send() will be called with this item, which withdraws a record, or with a later one of that
  // record.
  void announce(std::shared_ptr<const ReplayItem> item);
  // Records that are withdrawn and that somebody may still have in replay.
  std::vector<uint64_t> withdrawn() const;

  // Waits for room at one of them, at all when the item withdraws a record. False when nobody is left to send it to, or
  // close() was called.
  bool send(const ReplayItem& item);
  void end();              // no more will come: those who train are told
  void await_withdrawn();  // until all have erased what they were told to, nobody is left, or close() was called
  void close();            // nobody answers any more

  // By the talking thread: who trains now, what one of them has put into its replay in all, and what is to be told.
  void set_workers(const std::set<NodeId>& workers);
  void taken(NodeId worker, int64_t chunks);
  std::vector<std::pair<NodeId, std::string>> take_out();  // "": no more will come

 private:
  struct Worker {
    int64_t outstanding() const { return sent - taken; }
    int64_t sent = 0, taken = 0;
    // Records on their way to be withdrawn, each with `sent` at that time.
    std::deque<std::pair<int64_t, uint64_t>> withdrawn;
    bool told_end = false;
  };

  std::map<NodeId, Worker>::iterator with_most_room();
  bool has_room(const ReplayItem& item) const;
  bool left_alone() const { return closed_ || (known_ && workers_.empty()); }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::shared_ptr<const ReplayItem>> announced_;  // by record, the latest that is not sent yet
  std::map<NodeId, Worker> workers_;
  std::vector<std::pair<NodeId, std::string>> out_;
  bool known_ = false, ended_ = false, closed_ = false;
};

// Of a node that trains. Thread-safe.
class ChunkReceiver {
 public:
  // By the talking thread: who reads now, a chunk ("": no more will come from that one), and how many of each reader's
  // are in replay, where that is news.
  void set_readers(const std::set<NodeId>& readers);
  Status receive(NodeId from, std::string_view chunk);
  std::vector<std::pair<NodeId, int64_t>> take_taken();

  // By a thread for it: the next item that was mapped at no later a change of hands than `stamp` says this node has
  // heard of. nullptr when none came in time.
  std::shared_ptr<const ReplayItem> next(const std::function<uint64_t()>& stamp, Deadline deadline, NodeId& from);
  void taken(NodeId from);  // it is in replay, or its record is erased there
  // No reader will send more, and nothing waits.
  bool over() const;

 private:
  struct Reader {
    std::deque<std::shared_ptr<const ReplayItem>> waiting;
    int64_t taken = 0, told = 0;
    bool ended = false;
  };

  void leave_out(uint64_t record, NodeId reader);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<NodeId, Reader> readers_;
  NodeId last_ = 0;  // whose chunk was taken last: readers take turns
  bool known_ = false;
};

}  // namespace streamvec
