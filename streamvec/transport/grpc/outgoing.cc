#include "streamvec/transport/grpc/outgoing.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/transport/grpc/security.h"

namespace streamvec {
namespace {

constexpr double kBackoffFirst_s = 0.05, kBackoffMost_s = 2;

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(count));
}

}  // namespace

// One call. Its reactions lock the Outgoing's mutex; operations are started with it held. A hold keeps the call from
// ending while somebody may start an operation.
class Outgoing::Stream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Stream(Outgoing& owner) : owner_(owner) {
    context_.set_wait_for_ready(true);
    context_.AddMetadata(kFromKey, std::to_string(owner.options_.self));
    context_.AddMetadata(kToKey, std::to_string(owner.to_));
    if (!owner.options_.token.empty()) context_.AddMetadata(kTokenKey, owner.options_.token);
  }
  void start() {
    owner_.stub_.PrepareBidiStreamingCall(&context_, kFramesMethod, {}, this);
    AddHold();
    StartRead(&reply_);  // none ever comes: it ends when the stream does
    StartCall();
  }
  void cancel() { context_.TryCancel(); }
  void write(const grpc::ByteBuffer* message, bool more) {
    StartWrite(message, more ? grpc::WriteOptions().set_buffer_hint() : grpc::WriteOptions());
  }
  void let_end() { RemoveHold(); }

  void OnReadInitialMetadataDone(bool ok) override { ok ? owner_.opened() : owner_.broken(); }
  void OnWriteDone(bool ok) override { owner_.written(ok); }
  void OnReadDone(bool ok) override { ok ? StartRead(&reply_) : owner_.broken(); }
  void OnDone(const grpc::Status& status) override {
    Outgoing& owner = owner_;
    const grpc::Status reason = status;
    owner.let_go();
    delete this;  // before the owner may be gone: the last to let a channel go must not be gRPC's own thread
    owner.ended(reason);
  }

 private:
  Outgoing& owner_;
  grpc::ClientContext context_;
  grpc::ByteBuffer reply_;
};

Outgoing::Outgoing(const GrpcTransport::Options& options, NodeId to, const std::string& address,
                   std::shared_ptr<grpc::ChannelCredentials> credentials)
    : options_(options),
      to_(to),
      address_(address),
      stub_(grpc::CreateCustomChannel(address, credentials, channel_arguments(options))),
      random_(mix(options.self, to, static_cast<uint64_t>(Clock::now().time_since_epoch().count()))) {}

Outgoing::~Outgoing() {
  close();
}

void Outgoing::close() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  drop_queued();
  if (stream_ != nullptr) stream_->cancel();
  idle_.wait(lock, [&] { return state_ == State::kIdle; });
}

void Outgoing::send(std::string frame) {
  const std::lock_guard lock(mutex_);
  const int64_t held = queue_.bytes() + writing_.payload_bytes;
  const bool lost =
      state_ != State::kOpen && !status_.ok() && Clock::now() > unreachable_since_ + seconds(options_.patience_s);
  if (closing_ || lost || held + static_cast<int64_t>(frame.size()) > options_.queue_bytes_max) {
    ++totals_.frames_dropped;
    if (lost) connect();
    return;
  }
  queue_.push(std::move(frame));
  connect();
  write_next();
}

void Outgoing::tick(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!queue_.empty()) connect();
  if (state_ == State::kOpen || queue_.empty() || now < unreachable_since_ + seconds(options_.patience_s)) return;
  if (status_.ok()) status_ = error(Code::kUnavailable, "node ", to_, " at ", address_, " cannot be connected to");
  drop_queued();
}

void Outgoing::connect() {
  const Clock::time_point now = Clock::now();
  if (state_ != State::kIdle || closing_ || now < connect_at_) return;
  if (status_.ok()) unreachable_since_ = now;
  state_ = State::kConnecting;
  stream_ = new Stream(*this);
  stream_->start();
}

void Outgoing::opened() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kConnecting) return;
  state_ = State::kOpen;
  failures_ = 0;
  status_ = {};
  write_next();
}

void Outgoing::write_next() {
  if (state_ != State::kOpen || is_writing_ || queue_.empty()) return;
  writing_ = queue_.pop();
  is_writing_ = true;
  stream_->write(&writing_.bytes, !queue_.empty());
}

void Outgoing::written(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    totals_.frames_sent += ok ? writing_.frames : 0;
    totals_.bytes_sent += ok ? writing_.payload_bytes : 0;
    totals_.frames_dropped += ok ? 0 : writing_.frames;
    writing_ = {};
    write_next();
  }
  if (!ok) broken();
}

void Outgoing::broken() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen && state_ != State::kConnecting) return;
  if (state_ == State::kOpen) unreachable_since_ = Clock::now();
  state_ = State::kEnding;
  stream_->cancel();
  stream_->let_end();
}

void Outgoing::let_go() {
  const std::lock_guard lock(mutex_);
  state_ = State::kEnding;
  stream_ = nullptr;
}

void Outgoing::ended(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  state_ = State::kIdle;
  queue_.rewind();
  status_ = error(status.ok() ? Code::kUnavailable : static_cast<Code>(status.error_code()), "node ", to_, " at ",
                  address_, ": ", status.ok() ? "it ended the stream" : status.error_message());
  const double wait_s = std::min(kBackoffMost_s, std::ldexp(kBackoffFirst_s, std::min(failures_++, 10)));
  connect_at_ = Clock::now() + seconds(wait_s * (0.5 + 0.5 * random_.uniform()));
  idle_.notify_all();
}

void Outgoing::drop_queued() {
  totals_.frames_dropped += queue_.clear();
}

int64_t Outgoing::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queue_.bytes() + writing_.payload_bytes;
}

Status Outgoing::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Outgoing::add_to(TransportTotals& totals) const {
  const std::lock_guard lock(mutex_);
  totals.frames_sent += totals_.frames_sent;
  totals.bytes_sent += totals_.bytes_sent;
  totals.frames_dropped += totals_.frames_dropped;
}

}  // namespace streamvec
