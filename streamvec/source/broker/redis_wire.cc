#include "streamvec/source/broker/redis_wire.h"

#include <string_view>
#include <utility>

namespace streamvec {
namespace {

constexpr size_t kReplyBytesMax = size_t{256} << 20;

std::string encoded(const RedisCommand& command) {
  std::string text = "*" + std::to_string(command.size()) + "\r\n";
  for (const std::string& part : command) text += "$" + std::to_string(part.size()) + "\r\n" + part + "\r\n";
  return text;
}

}  // namespace

RedisWire::RedisWire(Peer peer)
    : connection_(std::move(peer)), reader_(redisReaderCreate(), redisReaderFree), room_(size_t{64} << 10) {
  STREAMVEC_CHECK(reader_ != nullptr);
}

Result<std::vector<RedisReply>> RedisWire::call(const std::vector<RedisCommand>& commands,
                                                std::chrono::milliseconds wait) {
  std::string request;
  for (const RedisCommand& command : commands) request += encoded(command);
  const Deadline deadline = Deadline::after(wait);
  STREAMVEC_RETURN_IF_ERROR(connection_.send(request, deadline));
  std::vector<RedisReply> replies;
  while (replies.size() < commands.size()) {
    STREAMVEC_ASSIGN_OR_RETURN(RedisReply reply, await_reply(deadline));
    replies.push_back(std::move(reply));
  }
  return replies;
}

Result<RedisReply> RedisWire::await_reply(Deadline deadline) {
  for (size_t received = 0;;) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
      return error(Code::kUnavailable, "the server does not speak Redis' protocol: ", reader_->errstr);
    if (reply != nullptr) return RedisReply(static_cast<redisReply*>(reply));
    if (received > kReplyBytesMax) return error(Code::kUnavailable, "a reply is longer than 256 MiB");
    Result<size_t> size = connection_.receive(room_, deadline);
    if (!size.ok()) return error(Code::kUnavailable, size.status().message());
    if (*size == 0) return error(Code::kUnavailable, "the server hung up");
    received += *size;
    redisReaderFeed(reader_.get(), room_.data(), *size);
  }
}

std::string redis_text(const redisReply& reply) {
  return reply.str == nullptr ? "" : std::string(reply.str, static_cast<size_t>(reply.len));
}

Code redis_error_code(const redisReply& reply) {
  const std::string text = redis_text(reply);
  const std::string_view kind = std::string_view(text).substr(0, text.find(' '));
  if (kind == "NOAUTH" || kind == "WRONGPASS" || kind == "DENIED") return Code::kUnauthenticated;
  if (kind == "NOPERM") return Code::kPermissionDenied;
  for (const std::string_view passing : {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "UNBLOCKED"})
    if (kind == passing) return Code::kUnavailable;
  return Code::kFailedPrecondition;
}

}  // namespace streamvec
