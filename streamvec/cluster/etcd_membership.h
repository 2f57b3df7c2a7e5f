// Nodes that find each other by etcd, without being told addresses. Every node writes its own under a lease, which ends
// with it; the first that came waits for all and writes the roster, which is the same for everybody then. It leads: it
// has the job's key `leader` under its lease, and writes every later membership over the one before, each time only if
// both keys are as it left them. When the key goes with the lease, one of the others takes it, by a transaction over
// the roster: whoever led before can write nothing any more, whatever it believes. Who comes later reads whom to join.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/etcd_client.h"
#include "streamvec/cluster/registry.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Thread-safe. A thread of its own keeps the lease alive, looks and writes.
class EtcdMembership final : public Registry {
 public:
  struct Options {
    std::string url;                // of etcd
    std::string job = "streamvec";  // nodes of one job find each other; letters, digits, '-', '_' and '.'
    std::string address;            // where the others reach this node, host:port
    int32_t nodes = 2;              // that the job begins with
    int32_t servers = 0;            // how many of the last of them only own rows; 0: all train and own
    double lease_s = 10;            // a node that is gone is forgotten after this
  };
  // kInvalidArgument for a job's name with other signs.
  static Status check_job(const std::string& job);
  // Likewise, and kUnavailable when etcd cannot be reached.
  static Result<std::unique_ptr<EtcdMembership>> join(const Options& options);
  ~EtcdMembership() override;  // the key goes at once, and the roster with a leader that has finished

  struct Roster {
    std::vector<Member> nodes;  // those that train first, this node among them
    int32_t rank = 0;           // of this one
    NodeId leader = 0;
    bool joins = false;  // the others have begun without it
    int64_t job = 0;     // no two of this etcd have the same
  };
  // Waits until all are there, or finds that they have begun: then this node has an id that none of the job ever had.
  // kCancelled when `stop` was set before, kUnavailable with who is there when `wait_s` have passed.
  Result<Roster> await_roster(double wait_s, const std::atomic<bool>* stop);

  // An etcd that is away for a while is told when it is back.
  void publish(uint32_t epoch, std::vector<Member> members) override;
  uint32_t written() const override;
  Status trouble() const override;
  Status status() const override;
  bool reached() const override;
  bool holds() const override;
  void seek(bool may_lead) override;
  std::optional<Written> found() const override;
  bool over() const override;
  void finish() override;

 private:
  // What etcd has of the job.
  struct Keys {
    std::vector<EtcdKey> nodes;
    std::optional<EtcdKey> roster, leader;
  };
  struct Text {
    uint32_t epoch = 0;
    std::string text;
  };

  explicit EtcdMembership(const Options& options) : options_(options), etcd_(options.url) {}
  Status add_key();
  void keep_alive();
  void renew();
  void renew_lease();
  void put_key();
  bool tried(const Status& written);
  void write_pending();
  void find_out();
  bool seeks() const;
  void look_for_leader();
  Result<Keys> read_keys();
  // Over what was there at these revisions, of the key `leader` (0: nobody leads, and this node does from now on) and
  // of the roster.
  Result<int64_t> write(const std::string& text, int64_t leader, int64_t roster);
  void wrote(const Text& written, int64_t revision);
  // The roster, if it is there or can be written; an empty one: not yet.
  Result<Roster> look(int64_t& present);
  Result<Roster> write_first(const Keys& keys);
  Result<Roster> read_roster(const std::string& text, const std::vector<EtcdKey>& nodes);
  std::string prefix() const { return "/streamvec/" + options_.job + "/"; }
  std::string roster_key() const { return prefix() + "roster"; }
  std::string leader_key() const { return prefix() + "leader"; }

  const Options options_;
  const EtcdClient etcd_;
  std::atomic<int64_t> lease_ = 0;
  // When the last call began that etcd answered, and when the last did that the lease lives by.
  std::atomic<double> reached_s_ = 0, kept_s_ = 0;
  std::string key_;
  bool has_key_ = false;  // of the thread: etcd has it, under this lease
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  Status status_, trouble_;
  int64_t job_ = 0;  // the revision of the first node's key, which no other job has
  NodeId id_ = 0;
  bool leads_ = false, published_ = false, finished_ = false, over_ = false;
  std::optional<Text> pending_;                // a roster that is to be written
  Text written_;                               // the last that was
  int64_t leader_key_at_ = 0, roster_at_ = 0;  // revisions of both keys, as this node has written them
  double seeking_s_ = -1e9;                    // when seek() was called last
  bool may_lead_ = false;
  std::optional<Written> found_;
  std::thread thread_;
};

}  // namespace streamvec
