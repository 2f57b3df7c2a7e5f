#include "streamvec/transport/grpc/incoming.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/address.h"
#include "streamvec/transport/grpc/packing.h"
#include "streamvec/transport/grpc/security.h"

namespace streamvec {
namespace {

std::string_view metadata(const grpc::GenericCallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

bool parse_node(std::string_view text, NodeId& node) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), node);
  return failure == std::errc() && end == text.data() + text.size();
}

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const Status& reason) {
    Finish(grpc::Status(static_cast<grpc::StatusCode>(reason.code()), reason.message()));
  }
  void OnDone() override { delete this; }
};

}  // namespace

// One peer's call. Lives until OnDone().
class Incoming::Stream final : public grpc::ServerGenericBidiReactor {
 public:
  Stream(Incoming& owner, grpc::GenericCallbackServerContext* context, NodeId from)
      : owner_(owner), context_(context), from_(from), reader_(owner.options_.queue_bytes_max) {}

  void start() {
    StartSendInitialMetadata();  // tells the peer that it was let in
    read();
  }
  void read() { StartRead(&message_); }
  void cancel() { context_->TryCancel(); }
  NodeId from() const { return from_; }

  void OnReadDone(bool ok) override {
    if (!ok) return finish(grpc::Status::OK);
    const Status read_status = reader_.read(message_, frames_);
    message_.Clear();
    const bool newest = owner_.is_newest(this);
    for (std::string& frame : frames_)
      if (newest) owner_.inbox_.push(from_, std::move(frame));
    frames_.clear();
    if (!read_status.ok()) return finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, read_status.message()));
    if (!newest) return finish(grpc::Status(grpc::StatusCode::ABORTED, "a newer stream of this node is open"));
    owner_.read_on(this);
  }
  void OnCancel() override { finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void finish(const grpc::Status& status) {
    if (owner_.end(this)) Finish(status);
  }

  Incoming& owner_;
  grpc::GenericCallbackServerContext* const context_;
  const NodeId from_;
  FrameReader reader_;
  grpc::ByteBuffer message_;
  std::vector<std::string> frames_;
};

Result<NodeId> Incoming::sender(const grpc::GenericCallbackServerContext& context) const {
  if (context.method() != kFramesMethod) return error(Code::kUnimplemented, "no method ", context.method());
  if (!same_token(metadata(context, kTokenKey), options_.token))
    return error(Code::kUnauthenticated, "the token is not that of this cluster");
  NodeId from = 0, to = 0;
  if (!parse_node(metadata(context, kFromKey), from) || !parse_node(metadata(context, kToKey), to))
    return error(Code::kInvalidArgument, "the call does not name its nodes");
  if (to != options_.self)
    return error(Code::kFailedPrecondition, "node ", options_.self, " listens here now, not node ", to);
  return from;
}

grpc::ServerGenericBidiReactor* Incoming::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const Result<NodeId> from = sender(*context);
  if (!from.ok()) return new Refusal(from.status());
  auto* stream = new Stream(*this, context, *from);
  if (!begin(stream)) {
    delete stream;
    return new Refusal(error(Code::kUnavailable, "node ", options_.self, " is closing"));
  }
  stream->start();
  return stream;
}

bool Incoming::begin(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  streams_.insert(stream);
  newest_[stream->from()] = stream;
  return true;
}

void Incoming::read_on(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (!streams_.contains(stream)) return;
  if (inbox_.bytes() <= options_.inbox_bytes_max) return stream->read();
  waiting_.insert(stream);
  ++waiting_count_;
  // Whoever emptied the inbox before it could see this stream waiting will not call it.
  if (inbox_.bytes() > options_.inbox_bytes_max) return;
  waiting_.erase(stream);
  --waiting_count_;
  stream->read();
}

void Incoming::taken() {
  if (waiting_count_ == 0 || inbox_.bytes() > options_.inbox_bytes_max / 2) return;
  const std::lock_guard lock(mutex_);
  for (Stream* stream : waiting_) stream->read();
  waiting_count_ -= static_cast<int64_t>(waiting_.size());
  waiting_.clear();
}

bool Incoming::end(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (streams_.erase(stream) == 0) return false;
  waiting_count_ -= static_cast<int64_t>(waiting_.erase(stream));
  if (const auto found = newest_.find(stream->from()); found != newest_.end() && found->second == stream)
    newest_.erase(found);
  return true;
}

bool Incoming::is_newest(const Stream* stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = newest_.find(stream->from());
  return found != newest_.end() && found->second == stream;
}

void Incoming::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (Stream* stream : streams_) stream->cancel();
}

}  // namespace streamvec
