// Nodes that find each other by etcd, without being told addresses: every node writes its own under a lease, which ends
// with it; the first that came waits for all and writes the roster, which is the same for everybody then. It leads, and
// writes every later membership there as well, each only over the one before: two leaders can never both write. Who
// comes later reads whom to join.
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

// Thread-safe. A thread of its own keeps the lease alive and writes.
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
  // kInvalidArgument for a job's name with other signs, kUnavailable when etcd cannot be reached.
  static Result<std::unique_ptr<EtcdMembership>> join(const Options& options);
  ~EtcdMembership() override;  // the key goes at once

  struct Roster {
    std::vector<Member> nodes;  // those that train first, this node among them
    int32_t rank = 0;           // of this one
    bool joins = false;         // the others have begun without it
  };
  // Waits until all are there, or finds that they have begun: then this node has an id that none of the job ever had.
  // kCancelled when `stop` was set before, kUnavailable with who is there when `wait_s` have passed.
  Result<Roster> await_roster(double wait_s, const std::atomic<bool>* stop);

  // Of the first node. An etcd that is away for a while is told when it is back.
  void publish(uint32_t epoch, std::vector<Member> members) override;
  Status status() const override;

 private:
  explicit EtcdMembership(const Options& options) : options_(options), etcd_(options.url) {}
  Status add_key();
  void keep_alive();
  void write_pending();
  void find_roster();
  void renew_lease();
  // The roster, if it is there or can be written; an empty one: not yet.
  Result<Roster> look(int64_t& present);
  Result<Roster> write_first(const std::vector<EtcdKey>& nodes);
  Result<Roster> read_roster(const std::string& text, const std::vector<EtcdKey>& nodes) const;
  std::string prefix() const { return "/streamvec/" + options_.job + "/"; }
  std::string roster_key() const { return prefix() + "roster"; }

  const Options options_;
  const EtcdClient etcd_;
  std::atomic<int64_t> lease_ = 0;
  std::string key_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  Status status_;
  std::optional<std::string> pending_;        // a roster that is to be written
  std::string written_;                       // the last that was
  int64_t modified_ = 0, first_created_ = 0;  // revisions of the roster as this node wrote it, and of its own key
  std::thread thread_;
};

}  // namespace streamvec
