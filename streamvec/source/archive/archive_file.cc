#include "streamvec/source/archive/archive_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace streamvec {
namespace {
constexpr size_t kBlockBytes = size_t{64} << 10;
}

Result<ArchiveFile> ArchiveFile::open(const std::string& path, Place place) {
  ArchiveFile file;
  file.path_ = path;
  file.file_ = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.file_.get() < 0) return file_error(errno, "open", path);
  char head[kMagicBytes];
  STREAMVEC_ASSIGN_OR_RETURN(const size_t head_size, file.read_stored(head, sizeof head, 0));
  file.compression_ = recognise_compression({head, head_size});
  STREAMVEC_RETURN_IF_ERROR(file.seek(place));
  return file;
}

Status ArchiveFile::seek(Place place) {
  start_at(place.stored);
  bool there = place.stored <= ::lseek(file_.get(), 0, SEEK_END);
  if (there) {
    STREAMVEC_ASSIGN_OR_RETURN(there, skip(place.skip));
  }
  if (there) return {};
  return error(Code::kFailedPrecondition, path_,
               " ends before the place where the run stopped; restore it, or start anew");
}

void ArchiveFile::start_at(int64_t stored) {
  decoder_ = compression_ == Compression::kNone ? nullptr : Decoder::make(compression_);
  pending_ = {};
  offset_ = stored;
  ended_ = false;
  damage_ = {};
  buffer_.clear();
  begin_ = 0;
  decoded_ = 0;
  members_ = {{stored, 0}};
}

Result<size_t> ArchiveFile::read_stored(char* out, size_t size, int64_t offset) const {
  size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::pread(file_.get(), out + filled, size - filled, offset + static_cast<int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read at byte " + std::to_string(offset) + " of", path_);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

Status ArchiveFile::refill() {
  if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return decoder_ == nullptr ? refill_plain() : refill_decoded();
}

Status ArchiveFile::refill_plain() {
  const size_t size_before = buffer_.size();
  buffer_.resize(size_before + kBlockBytes);
  const Result<size_t> got = read_stored(buffer_.data() + size_before, kBlockBytes, offset_);
  buffer_.resize(size_before + (got.ok() ? *got : 0));
  if (!got.ok()) return got.status();
  offset_ += static_cast<int64_t>(*got);
  ended_ = *got < kBlockBytes;
  return {};
}

Status ArchiveFile::refill_decoded() {
  const size_t size_before = buffer_.size();
  buffer_.resize(size_before + kBlockBytes);
  std::span<char> room = std::span(buffer_).subspan(size_before);
  const auto finish = [&](Status status) {
    buffer_.resize(buffer_.size() - room.size());
    return status;
  };
  while (!room.empty()) {
    if (pending_.empty()) {
      stored_.resize(kBlockBytes);
      Result<size_t> got = read_stored(stored_.data(), kBlockBytes, offset_);
      if (!got.ok()) return finish(got.status());
      pending_ = std::string_view(stored_).substr(0, *got);
      offset_ += static_cast<int64_t>(*got);
    }
    const bool no_more = pending_.empty();
    const size_t room_before = room.size();
    const Status status = decoder_->decode_member(pending_, room);
    if (!status.ok())
      return finish(error(status.code(), path_, ": ", compression_name(compression_), " stream at byte ",
                          stored_offset(), " of the file: ", status.message()));
    if (decoder_->at_member_end()) {
      const int64_t decoded = decoded_ + static_cast<int64_t>(buffer_.size() - begin_ - room.size());
      if (members_.back().decoded == decoded) members_.pop_back();  // it was empty
      members_.push_back({stored_offset(), decoded});
    }
    if (!no_more || room.size() != room_before) continue;
    ended_ = true;
    const bool empty_file = stored_offset() == members_.front().stored && members_.size() == 1;
    if (!decoder_->at_member_end() && !empty_file)
      return finish(error(Code::kDataLoss, path_, ": ", compression_name(compression_), " stream at byte ",
                          stored_offset(), " of the file: it ends in the middle of the stream; it was cut short"));
    break;
  }
  return finish({});
}

Result<std::string_view> ArchiveFile::peek(size_t size) {
  while (buffer_.size() - begin_ < size && !ended_) {
    const Status status = refill();
    if (status.ok()) continue;
    if (status.code() != Code::kDataLoss) return status;
    // What came of the damaged member was not checked: its sum stands at its end.
    const int64_t checked = std::max<int64_t>(members_.back().decoded - decoded_, 0);
    buffer_.resize(begin_ + static_cast<size_t>(checked));
    damage_ = status;
    ended_ = true;
  }
  if (begin_ == buffer_.size() && !damage_.ok()) return damage_;
  return std::string_view(buffer_).substr(begin_);
}

void ArchiveFile::take(size_t size) {
  begin_ += size;
  decoded_ += static_cast<int64_t>(size);
  while (members_.size() > 1 && members_[1].decoded <= decoded_) members_.pop_front();
}

Result<bool> ArchiveFile::skip(int64_t count) {
  while (count > 0) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view next, peek(1));
    if (next.empty()) return false;
    const size_t part = std::min<size_t>(next.size(), static_cast<size_t>(count));
    take(part);
    count -= static_cast<int64_t>(part);
  }
  return true;
}

Result<bool> ArchiveFile::recover() {
  if (compression_ == Compression::kNone) return false;
  std::string block(kBlockBytes, '\0');
  int64_t at = members_.back().stored + 1;
  for (;; at += static_cast<int64_t>(kBlockBytes - kMagicBytes)) {
    STREAMVEC_ASSIGN_OR_RETURN(const size_t size, read_stored(block.data(), block.size(), at));
    for (size_t i = 0; i + 4 <= size; ++i)
      if (recognise_compression(std::string_view(block).substr(0, size).substr(i, kMagicBytes)) == compression_) {
        start_at(at + static_cast<int64_t>(i));
        return true;
      }
    if (size < block.size()) return false;
  }
}

ArchiveFile::Place ArchiveFile::place() const {
  if (decoder_ == nullptr) return {members_.front().stored + decoded_, 0};
  return {members_.front().stored, decoded_ - members_.front().decoded};
}

}  // namespace streamvec
