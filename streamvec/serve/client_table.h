// Who is connected, how often, and how fast each of them asks. Private to the server; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "streamvec/serve/http_server.h"

namespace streamvec {

class ClientTable {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ClientTable(const HttpLimits& limits) : limits_(limits) {}

  // Counts one more connection of `client`; false, and not counted, when it has too many.
  bool enter(const std::string& client, Clock::time_point now);
  void leave(const std::string& client, Clock::time_point now);
  // A token bucket: as many requests as a second's worth at once, then at the rate.
  bool may_ask(const std::string& client, Clock::time_point now);
  // Forgets clients that left long enough ago for their bucket to be full again.
  void sweep(Clock::time_point now);
  size_t size() const { return clients_.size(); }

 private:
  struct Client {
    int64_t connections = 0;
    double tokens = 0;
    Clock::time_point filled;
  };
  bool is_limited(const std::string& client) const;
  Client& find(const std::string& client, Clock::time_point now);

  const HttpLimits limits_;
  std::unordered_map<std::string, Client> clients_;
};

}  // namespace streamvec
