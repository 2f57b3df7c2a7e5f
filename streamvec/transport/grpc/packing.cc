#include "streamvec/transport/grpc/packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace streamvec {
namespace {

constexpr uint32_t kGoesOn = uint32_t{1} << 31;
constexpr size_t kHeader = 4;
constexpr size_t kCopiedBelow = 4'096;  // a slice of its own costs more than copying so much

// Slices of a message: small pieces are gathered in one, large ones keep their bytes alive.
class Slices {
 public:
  void copy(const void* data, size_t size) { small_.append(static_cast<const char*>(data), size); }

  void share(const std::shared_ptr<const std::string>& frame, size_t begin, size_t size) {
    end_small();
    auto* owner = new std::shared_ptr<const std::string>(frame);
    const auto release = [](void* held) { delete static_cast<std::shared_ptr<const std::string>*>(held); };
    slices_.emplace_back(const_cast<char*>(frame->data() + begin), size, release, owner);
  }

  grpc::ByteBuffer message() {
    end_small();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void end_small() {
    if (!small_.empty()) slices_.emplace_back(small_);
    small_.clear();
  }
  std::string small_;
  std::vector<grpc::Slice> slices_;
};

// Reads through the slices of a message as through one run of bytes.
class SliceCursor {
 public:
  explicit SliceCursor(const grpc::ByteBuffer& message) : left_(message.Length()) {
    readable_ = message.Valid() && message.Dump(&slices_).ok();
  }
  bool readable() const { return readable_; }
  size_t left() const { return left_; }

  // REQUIRES: size <= left().
  void append_to(std::string& out, size_t size) {
    left_ -= size;
    while (size > 0) {
      const size_t here = std::min(size, slices_[slice_].size() - place_);
      out.append(reinterpret_cast<const char*>(slices_[slice_].begin()) + place_, here);
      size -= here;
      place_ += here;
      if (place_ == slices_[slice_].size()) ++slice_, place_ = 0;
    }
  }

 private:
  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0, place_ = 0, left_ = 0;
  bool readable_ = false;
};

}  // namespace

void FrameQueue::push(std::string frame) {
  bytes_ += static_cast<int64_t>(frame.size());
  frames_.push_back(std::make_shared<const std::string>(std::move(frame)));
}

FrameQueue::Message FrameQueue::pop() {
  Message message;
  Slices slices;
  while (!frames_.empty() && message.payload_bytes < message_bytes_) {
    const auto& frame = frames_.front();
    const size_t left = frame->size() - popped_;
    const size_t room = static_cast<size_t>(message_bytes_ - message.payload_bytes);
    if (message.payload_bytes > 0 && left > room) break;
    const size_t size = std::min(left, room);
    const bool ends = popped_ + size == frame->size();
    const uint32_t header = static_cast<uint32_t>(size) | (ends ? 0 : kGoesOn);
    slices.copy(&header, kHeader);
    if (size < kCopiedBelow) {
      slices.copy(frame->data() + popped_, size);
    } else {
      slices.share(frame, popped_, size);
    }
    popped_ += size;
    message.payload_bytes += static_cast<int64_t>(size + kHeader);
    message.frames += ends;
    if (!ends) break;
    bytes_ -= static_cast<int64_t>(frame->size());
    frames_.pop_front();
    popped_ = 0;
  }
  message.bytes = slices.message();
  return message;
}

void FrameQueue::rewind() {
  popped_ = 0;
}

int64_t FrameQueue::clear() {
  const auto dropped = static_cast<int64_t>(frames_.size());
  frames_.clear();
  popped_ = 0;
  bytes_ = 0;
  return dropped;
}

Status FrameReader::read(const grpc::ByteBuffer& message, std::vector<std::string>& frames) {
  SliceCursor cursor(message);
  if (!cursor.readable()) return error(Code::kInvalidArgument, "a message that cannot be read");
  std::string header_bytes;
  while (cursor.left() > 0) {
    if (cursor.left() < kHeader) return error(Code::kInvalidArgument, "a message ends inside a record's header");
    header_bytes.clear();
    cursor.append_to(header_bytes, kHeader);
    uint32_t header = 0;
    std::memcpy(&header, header_bytes.data(), kHeader);
    const size_t size = header & ~kGoesOn;
    if (size > cursor.left())
      return error(Code::kInvalidArgument, "a record of ", size, " bytes in a message that has ", cursor.left());
    if (static_cast<int64_t>(begun_.size() + size) > frame_bytes_max_)
      return error(Code::kInvalidArgument, "a frame of more than ", frame_bytes_max_, " bytes");
    if (begun_.empty()) begun_.reserve(size);
    cursor.append_to(begun_, size);
    if (header & kGoesOn) continue;
    frames.push_back(std::move(begun_));
    begun_ = std::string();
  }
  return {};
}

}  // namespace streamvec
