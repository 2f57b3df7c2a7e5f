#include "streamvec/serve/client_table.h"

#include <algorithm>

#include "streamvec/core/address.h"

namespace streamvec {

bool ClientTable::is_limited(const std::string& client) const {
  return limits_.loopback_limits || !is_loopback(client);
}

ClientTable::Client& ClientTable::find(const std::string& client, Clock::time_point now) {
  const auto [at, is_new] = clients_.try_emplace(client);
  if (is_new) at->second = {0, limits_.client_rate_max, now};
  return at->second;
}

bool ClientTable::enter(const std::string& client, Clock::time_point now) {
  Client& known = find(client, now);
  if (limits_.client_connections_max > 0 && is_limited(client) && known.connections >= limits_.client_connections_max)
    return false;
  ++known.connections;
  return true;
}

void ClientTable::leave(const std::string& client, Clock::time_point now) {
  --find(client, now).connections;
}

bool ClientTable::may_ask(const std::string& client, Clock::time_point now) {
  const double rate = limits_.client_rate_max;
  if (rate <= 0 || !is_limited(client)) return true;
  Client& known = find(client, now);
  const double passed = std::chrono::duration<double>(now - known.filled).count();
  known.tokens = std::min(std::max(rate, 1.0), known.tokens + rate * passed);
  known.filled = now;
  if (known.tokens < 1) return false;
  known.tokens -= 1;
  return true;
}

void ClientTable::sweep(Clock::time_point now) {
  std::erase_if(clients_, [&](const auto& entry) {
    const double passed = std::chrono::duration<double>(now - entry.second.filled).count();
    return entry.second.connections == 0 &&
           (limits_.client_rate_max <= 0 || passed * limits_.client_rate_max >= std::max(limits_.client_rate_max, 1.0));
  });
}

}  // namespace streamvec
