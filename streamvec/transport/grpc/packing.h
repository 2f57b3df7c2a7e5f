// Frames in gRPC's messages: small frames travel together, large ones in parts. A message is a sequence of records: 4
// bytes, little-endian, of which the highest bit says that the frame goes on in the next record and the others how many
// bytes follow.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

constexpr int64_t kGrpcMessageBytesMax = int64_t{64} << 20;

// Frames that wait to be sent. Not thread-safe.
class FrameQueue {
 public:
  struct Message {
    grpc::ByteBuffer bytes;
    int64_t payload_bytes = 0, frames = 0;  // of frames: those that end in this message
  };
  // More in a message: less work for each byte, and longer until its first byte can be used.
  explicit FrameQueue(int64_t message_bytes = int64_t{1} << 20) : message_bytes_(message_bytes) {}

  void push(std::string frame);
  // The next message; the bytes of large frames are handed over, not copied. REQUIRES: not empty().
  Message pop();
  // A frame of which only a part was popped is whole again.
  void rewind();
  // Returns how many frames it dropped.
  int64_t clear();
  bool empty() const { return frames_.empty(); }
  int64_t bytes() const { return bytes_; }  // of which rewind() may bring back some

 private:
  const int64_t message_bytes_;
  std::deque<std::shared_ptr<const std::string>> frames_;
  size_t popped_ = 0;  // bytes of the first frame
  int64_t bytes_ = 0;
};

// The other end. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(int64_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}
  // Appends the frames that end in this message. kInvalidArgument for a message that FrameQueue does not write.
  Status read(const grpc::ByteBuffer& message, std::vector<std::string>& frames);

 private:
  const int64_t frame_bytes_max_;
  std::string begun_;  // parts so far of a frame that goes on
};

}  // namespace streamvec
