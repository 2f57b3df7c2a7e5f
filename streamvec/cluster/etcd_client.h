// The few calls of etcd (v3, JSON over HTTP) that a membership needs: leases, keys that live as long as a lease, lists
// of keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"

namespace streamvec {

struct EtcdKey {
  std::string key, value;
  int64_t created = 0;   // the revision at which the key came to be: no two keys have the same, later ones are larger
  int64_t modified = 0;  // the revision at which it was last written
};

// Thread-safe: every call has a connection of its own. All give kUnavailable when etcd cannot be reached or fails, and
// kDeadlineExceeded when it does not answer in time.
class EtcdClient {
 public:
  // "http://host:port", or https.
  explicit EtcdClient(std::string url) : url_(std::move(url)) {}

  // A lease that ends when it is not kept alive for so long; its number.
  Result<int64_t> grant_lease(double seconds, Deadline deadline) const;
  // kNotFound when it has ended.
  Status keep_alive(int64_t lease, Deadline deadline) const;
  // Ends the lease; its keys go with it.
  Status revoke(int64_t lease, Deadline deadline) const;
  // `lease` 0: for ever.
  Status put(const std::string& key, const std::string& value, int64_t lease, Deadline deadline) const;
  struct Write {
    std::string key;
    std::optional<std::string> value;  // none: the key goes
    int64_t lease = 0;
  };
  // All of the writes, if each of the keys `unchanged` was last written at the revision it has there (0: is not there);
  // the revision that the written ones then have. kAborted when one was not: nothing is changed.
  Result<int64_t> write_if(const std::vector<EtcdKey>& unchanged, const std::vector<Write>& writes,
                           Deadline deadline) const;
  // All keys that begin so, in the order in which they came to be.
  Result<std::vector<EtcdKey>> list(const std::string& prefix, Deadline deadline) const;

 private:
  Result<std::string> call(const std::string& path, const std::string& body, Deadline deadline) const;

  const std::string url_;
};

}  // namespace streamvec
