// A node of a cluster whose tables are shared out: every row lies with its owner alone (rendezvous hashing), workers
// ask for the rows that they need and send back what they have changed (model/sharded_sgns.h), which owners add up. So
// a model may be larger than any node's memory. A thread of its own does the talking and owns the rows.
//
// The set of nodes is fixed: when one is lost, so are its rows, and all others end with an error; the newest checkpoint
// is what remains.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/piece_board.h"
#include "streamvec/cluster/piece_queue.h"
#include "streamvec/cluster/sandblaster_message.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/cluster/vector_shard.h"
#include "streamvec/model/remote_rows.h"
#include "streamvec/transport/reliable_transport.h"

namespace streamvec {

struct ShardNodeOptions {
  std::vector<NodeId> workers, owners;  // the first worker leads
  RowKey row_end = 0;
  int64_t dim = 0;
  std::function<void(RowKey, std::span<float>)> initial;  // where rows begin; called for this node's own, in start()
  double dead_after_s = 10;                               // a node that is silent for longer is lost
  double start_within_s = 60;                             // all nodes have to be there by then
  uint64_t fingerprint = 0;                               // of what must be equal everywhere
  std::string fingerprint_of;                             // the same in words

  // Pieces that the leader hands out to the workers (piece_board.h). None: each knows itself what to train on.
  std::optional<PieceRange> text = {};
  std::vector<PieceRange> finished = {};  // of them, before this run
  TrainedTotals trained_before = {};      // by the run so far
  int32_t threads = 1;                    // that train here
};

class ShardNode final : public Synchronizer, public RemoteRows {
 public:
  // The transport must know its peers.
  static Result<std::unique_ptr<ShardNode>> start(const ShardNodeOptions& options,
                                                  std::unique_ptr<Transport> transport);
  // The leader's tells the others that all is done, if everybody has finished; else it is as a crash for them.
  ~ShardNode() override;

  Result<bool> await_start(const std::atomic<bool>* stop = nullptr) override;
  Status trained(int64_t words, double lr = 1) override;
  // The leader returns when everybody's text is over and every change is in its row; the others when the leader parts,
  // so that it can read all rows meanwhile.
  Result<TrainedTotals> finish(const TrainedTotals& own) override;
  // A node that only owns rows: it has them for the others until the leader parts. When `stop` is set meanwhile, the
  // text is over for all, as by stop_text().
  Status serve(const std::atomic<bool>* stop = nullptr);
  void stop_text() override;
  bool text_stopped() const override { return text_stopped_; }
  bool leads() const override { return self_ == leader_; }
  ClusterStats stats() const override;
  PieceQueue* pieces() override { return pieces_.get(); }

  uint64_t ask(std::span<const uint32_t> rows) override;
  Status await(uint64_t question, std::vector<float>& values) override;
  void add(std::span<const uint32_t> rows, std::span<const float> changes) override;

  // For a checkpoint in the middle, rows and text have to be of one moment. The leader, whose threads have stopped,
  // waits in halt_all() until no worker trains and every change is in its row; pieces()->standing() is of that moment,
  // and go_on() ends it. The others look at halt_wanted(), stop their threads, and wait in halt() for go_on(). One that
  // has finished its text is not waited for.
  Status halt_all();
  void go_on();
  bool halt_wanted() const;
  Status halt();

  // Every row, in no order, as it is when its owner is asked. By one thread at a time.
  Status read_all(const std::function<void(RowKey, std::span<const float>)>& row);
  int64_t bytes_owned() const { return bytes_owned_; }  // by this node's rows

 private:
  struct Part {
    std::vector<size_t> places;  // in the question
    std::vector<float> values;
    bool answered = false;
  };

  explicit ShardNode(const ShardNodeOptions& options) : options_(options) {}
  void run();
  Status receive_frame(NodeId from, std::string_view frame);
  void receive(NodeId from, const SandblasterMessage& message);
  Status serve_rows(NodeId from, const SandblasterMessage& message);
  void receive_from_worker(NodeId from, const SandblasterMessage& message);
  // Of text that is handed out (shard_text.cc).
  void begin_text();
  Status receive_text(NodeId from, std::string_view frame);
  void hand_out();
  void leave_text(NodeId worker);
  void add_text(TrainedTotals& all);
  // Of nodes that stand still (shard_halt.cc).
  void tell_halt();
  void receive_of_halt(NodeId from, const SandblasterMessage& message);
  void keep_in_touch(double now_s);
  void look_for_silent(double now_s);
  Status await_owners();
  void post(NodeId to, const SandblasterMessage& message) { transport_->send(to, encode(message)); }
  void post(NodeId to, const Control& control) { transport_->send(to, encode(control)); }
  void fail(const Status& status);
  void give_up();

  const ShardNodeOptions options_;
  NodeId self_ = 0, leader_ = 0;
  std::set<NodeId> all_;
  std::unique_ptr<ReliableTransport> transport_;
  std::unique_ptr<VectorShard> shard_;  // of the talking thread
  std::unique_ptr<PieceQueue> pieces_;  // a worker's, where text is handed out
  int64_t bytes_owned_ = 0;
  double started_s_ = 0, alive_sent_s_ = 0;  // of the talking thread

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Status status_;
  std::map<NodeId, double> heard_s_;
  std::set<NodeId> present_, finished_;
  bool begun_ = false, ended_ = false;
  uint64_t questions_ = 0;
  std::map<uint64_t, std::vector<Part>> open_;                   // by question
  std::map<uint64_t, std::pair<uint64_t, size_t>> question_of_;  // by a part's number
  TrainedTotals all_trained_;
  std::optional<PieceBoard> board_;   // the leader's, where text is handed out
  std::map<NodeId, int64_t> wanted_;  // pieces, by workers that wait for some
  bool text_over_ = false;
  uint64_t halt_ = 0, gone_on_ = 0;         // numbers of checkpoints: the last to stand still for, and to have stood
  uint64_t still_for_ = 0, halt_told_ = 0;  // the one that this node's threads stand still for, and the leader knows
  std::map<NodeId, uint64_t> halted_;       // the leader's: who stands still for which
  ClusterStats stats_;
  std::atomic<bool> failed_{false}, stopping_{false}, text_stopped_{false};
  std::thread thread_;
};

}  // namespace streamvec
