// Commands to a Redis server and its replies.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/source/live/connection.h"

namespace streamvec {

struct RedisReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, RedisReplyDeleter>;
using RedisCommand = std::vector<std::string>;

// hiredis reads the protocol; the bytes come by our own Connection, which has TLS and deadlines (hiredis 0.14 has not).
// A reply of more than 256 MiB is refused. Not thread-safe; after an error it is of no more use.
class RedisWire {
 public:
  explicit RedisWire(Peer peer);

  // Goes on with connecting; kDeadlineExceeded: call again.
  Status open(Deadline deadline) { return connection_.open(deadline); }
  // Sends all commands at once and waits for as many replies. What the server refuses is a reply too
  // (REDIS_REPLY_ERROR). kUnavailable when the replies do not come within `wait`.
  Result<std::vector<RedisReply>> call(const std::vector<RedisCommand>& commands, std::chrono::milliseconds wait);

 private:
  Result<RedisReply> await_reply(Deadline deadline);

  Connection connection_;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  std::vector<char> room_;
};

// What a refusal means: kUnauthenticated, kPermissionDenied, kUnavailable for what passes (LOADING, BUSY, TRYAGAIN,
// CLUSTERDOWN, MASTERDOWN), kFailedPrecondition otherwise.
Code redis_error_code(const redisReply& reply);
std::string redis_text(const redisReply& reply);

}  // namespace streamvec
