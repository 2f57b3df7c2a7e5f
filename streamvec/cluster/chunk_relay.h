// Chunks on their way from nodes that only read to the replay of nodes that train. A reader gives each chunk to the one
// that has the most room; who trains puts it into its replay when that wants more, and says so, so that at most
// kOutstandingMax chunks of a reader wait for a node and a reader reads no faster than is trained on.
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
// kInvalidArgument for bytes that encode_chunk() does not write.
Result<std::shared_ptr<const ReplayItem>> decode_chunk(std::string_view bytes);

// Of a node that only reads. Thread-safe.
class ChunkSender {
 public:
  static constexpr int64_t kOutstandingMax = 64;

  // Waits for room. False when nobody is left to send it to, or close() was called.
  bool send(const ReplayItem& item);
  void end();    // no more will come: those who train are told
  void close();  // nobody answers any more

  // By the talking thread: who trains now, what one of them has put into its replay in all, and what is to be told.
  void set_workers(const std::set<NodeId>& workers);
  void taken(NodeId worker, int64_t chunks);
  std::vector<std::pair<NodeId, std::string>> take_out();  // "": no more will come

 private:
  struct Worker {
    int64_t sent = 0, taken = 0;
    bool told_end = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
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

  // By a thread for it: the next chunk that was mapped at no later a change of hands than `stamp` says this node has
  // heard of. nullptr when none came in time.
  std::shared_ptr<const ReplayItem> next(const std::function<uint64_t()>& stamp, Deadline deadline, NodeId& from);
  void taken(NodeId from);  // it is in replay
  // No reader will send more, and all chunks are in replay.
  bool over() const;

 private:
  struct Reader {
    std::deque<std::shared_ptr<const ReplayItem>> waiting;
    int64_t taken = 0, told = 0;
    bool ended = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<NodeId, Reader> readers_;
  NodeId last_ = 0;  // whose chunk was taken last: readers take turns
  bool known_ = false;
};

}  // namespace streamvec
