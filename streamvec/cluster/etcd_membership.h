// Nodes that find each other by etcd, without being told addresses: every node writes its own under a lease, which ends
// with it; the first that came waits for all and writes the roster, which is the same for everybody then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/etcd_client.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Thread-safe. A thread of its own keeps the lease alive.
class EtcdMembership {
 public:
  struct Options {
    std::string url;                // of etcd
    std::string job = "streamvec";  // nodes of one job find each other; letters, digits, '-', '_' and '.'
    std::string address;            // where the others reach this node, host:port
    int32_t nodes = 2;              // that the job has
    double lease_s = 10;            // a node that is gone is forgotten after this
  };
  // kInvalidArgument for a job's name with other signs, kUnavailable when etcd cannot be reached.
  static Result<std::unique_ptr<EtcdMembership>> join(const Options& options);
  ~EtcdMembership();  // the key goes at once

  struct Roster {
    std::vector<std::string> nodes;  // addresses, in the order in which they came
    int32_t rank = 0;                // of this one
  };
  // Waits until all are there. kCancelled when `stop` was set before, kUnavailable with who is there when `wait_s` have
  // passed, kFailedPrecondition when the job has all its nodes without this one.
  Result<Roster> await_roster(double wait_s, const std::atomic<bool>* stop);

 private:
  explicit EtcdMembership(const Options& options) : options_(options), etcd_(options.url) {}
  Status add_key();
  void keep_alive();
  // The roster, if it is there or can be written; an empty one: not yet.
  Result<Roster> look(int64_t& present);
  Result<Roster> read_roster(const std::string& text) const;
  std::string prefix() const { return "/streamvec/" + options_.job + "/"; }

  const Options options_;
  const EtcdClient etcd_;
  int64_t lease_ = 0;
  std::string key_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  std::thread thread_;
};

}  // namespace streamvec
