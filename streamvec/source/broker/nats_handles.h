// What NATS's client library hands out, destroyed when its owner goes, and the end of a connection, which is awaited.
// For nats_source.cc alone.
#pragma once

#include <nats/nats.h>

#include <condition_variable>
#include <memory>
#include <mutex>

namespace streamvec::nats {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Options = std::unique_ptr<natsOptions, Destroy<natsOptions_Destroy>>;
using Server = std::unique_ptr<natsConnection, Destroy<natsConnection_Destroy>>;
using Jetstream = std::unique_ptr<jsCtx, Destroy<jsCtx_Destroy>>;
using Subscription = std::unique_ptr<natsSubscription, Destroy<natsSubscription_Destroy>>;
using StreamInfo = std::unique_ptr<jsStreamInfo, Destroy<jsStreamInfo_Destroy>>;
using ConsumerInfo = std::unique_ptr<jsConsumerInfo, Destroy<jsConsumerInfo_Destroy>>;
using Inbox = std::unique_ptr<natsInbox, Destroy<natsInbox_Destroy>>;
using Message = std::unique_ptr<natsMsg, Destroy<natsMsg_Destroy>>;

// What the client calls, once for each connection, when its threads have ended.
class Closed {
 public:
  static void say(natsConnection*, void* self) {
    auto& closed = *static_cast<Closed*>(self);
    const std::lock_guard lock(closed.mutex_);
    closed.said_ = true;
    closed.changed_.notify_one();
  }
  // Waits for it; then the next connection may use this.
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return said_; });
    said_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool said_ = false;
};

}  // namespace streamvec::nats
