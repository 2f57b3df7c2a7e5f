#include "streamvec/source/decoded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace streamvec {
namespace {
constexpr size_t kBufferBytes = size_t{64} << 10;
}

Result<FileStamp> FileStamp::of(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return file_error(errno, "open", path);
  if (!S_ISREG(info.st_mode)) return error(Code::kInvalidArgument, path, " is not a regular file");
  return FileStamp{path, info.st_size, info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

Result<DecodedFile> DecodedFile::open(const std::string& path) {
  DecodedFile file;
  file.path_ = path;
  file.file_ = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.file_.get() < 0) return file_error(errno, "open", path);
  ::posix_fadvise(file.file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::array<char, kMagicBytes> head;
  STREAMVEC_ASSIGN_OR_RETURN(const size_t head_size, file.read_stored(head));
  file.offset_ = 0;
  file.stored_end_ = false;
  file.compression_ = recognise_compression({head.data(), head_size});
  if (file.compression_ != Compression::kNone) {
    file.decoder_ = Decoder::make(file.compression_);
    file.buffer_.resize(kBufferBytes);
  }
  return file;
}

// pread(2) rather than read(2): the place is ours, and looking at the head moves nothing.
Result<size_t> DecodedFile::read_stored(std::span<char> out) {
  size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::pread(file_.get(), out.data() + filled, out.size() - filled, offset_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read at byte " + std::to_string(offset_) + " of", path_);
    if (got == 0) {
      stored_end_ = true;
      break;
    }
    filled += static_cast<size_t>(got);
    offset_ += got;
  }
  return filled;
}

Status DecodedFile::refill() {
  STREAMVEC_ASSIGN_OR_RETURN(const size_t size, read_stored(buffer_));
  pending_ = {buffer_.data(), size};
  return {};
}

Status DecodedFile::damaged(const Status& why) const {
  return error(why.code(), path_, ": ", compression_name(compression_), " stream at byte ", stored_read_,
               " of the file: ", why.message());
}

Result<size_t> DecodedFile::read(std::span<char> out) {
  if (decoder_ == nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(const size_t size, read_stored(out));
    stored_read_ = offset_;
    return size;
  }
  std::span<char> left = out;
  while (!left.empty()) {
    if (pending_.empty() && !stored_end_) STREAMVEC_RETURN_IF_ERROR(refill());
    const bool no_more_input = pending_.empty();
    const size_t left_before = left.size();
    const Status status = decoder_->decode(pending_, left);
    stored_read_ = offset_ - static_cast<int64_t>(pending_.size());
    if (!status.ok()) return damaged(status);
    if (!no_more_input || left.size() != left_before) continue;
    if (!decoder_->at_member_end())
      return damaged(error(Code::kDataLoss, "the file ends in the middle of the stream; it was cut short"));
    break;
  }
  return out.size() - left.size();
}

Result<bool> DecodedFile::skip(int64_t count) {
  if (decoder_ == nullptr) {
    struct stat info;
    if (::fstat(file_.get(), &info) != 0) return file_error(errno, "look at", path_);
    if (count > info.st_size - offset_) return false;
    offset_ = stored_read_ = offset_ + count;
    return true;
  }
  std::vector<char> block(kBufferBytes);
  while (count > 0) {
    const std::span<char> wanted = std::span(block).first(std::min<size_t>(block.size(), static_cast<size_t>(count)));
    STREAMVEC_ASSIGN_OR_RETURN(const size_t got, read(wanted));
    if (got < wanted.size()) return false;
    count -= static_cast<int64_t>(got);
  }
  return true;
}

}  // namespace streamvec
