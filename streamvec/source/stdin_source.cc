#include "streamvec/source/stdin_source.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

// For poll(2): -1 waits for ever, otherwise rounded up, so that the deadline has passed when the time is over.
int poll_timeout_ms(Deadline::Clock::time_point when) {
  if (when == Deadline::Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Result<std::unique_ptr<Source>> StdinSource::open(Options options) {
  FileHandle descriptor(::dup(STDIN_FILENO));
  if (descriptor.get() < 0) return error(Code::kUnavailable, "standard input is closed; name a file instead of -");
  return std::unique_ptr<Source>(std::make_unique<StdinSource>(std::move(descriptor), "-", options));
}

StdinSource::StdinSource(FileHandle descriptor, std::string name, Options options)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), options_(options), stored_(kBufferBytes) {}

std::vector<std::string> StdinSource::notes() const {
  if (stored_end_ && text_bytes_ == 0) return {name_ + " is empty"};
  return {};
}

Status StdinSource::seek(const std::string& cursor) {
  if (cursor.empty() && bytes_read_ == 0) return {};
  return error(Code::kFailedPrecondition, name_, " cannot be read twice; put the text into a file to read it again");
}

Result<int64_t> StdinSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  int64_t count = 0;
  do {
    STREAMVEC_ASSIGN_OR_RETURN(const size_t size, await_piece(deadline));
    if (size == 0) break;
    text_bytes_ += static_cast<int64_t>(size);
    out.push_back({text_.substr(0, size), "{\"offset\":" + std::to_string(text_bytes_) + "}"});
    text_.erase(0, size);
    if (line_bytes(text_) > 0) line_came_ = Deadline::Clock::now();
  } while (++count < count_max && text_.size() > kPieceBytes);
  if (count == 0 && text_bytes_ == 0 && !options_.empty_ok)
    return error(Code::kInvalidArgument, name_ == "-" ? "standard input" : name_, " is empty; give it text");
  return count;
}

// The size of the next piece in text_; 0 at the end of the stream.
Result<size_t> StdinSource::await_piece(Deadline deadline) {
  for (;;) {
    STREAMVEC_RETURN_IF_ERROR(decode());
    const bool enough = text_.size() > kPieceBytes;
    const bool ended = stored_end_ && pending_.empty() && !decoder_full_;
    if ((enough || ended) && !beginning_checked_) {
      STREAMVEC_RETURN_IF_ERROR(check_beginning());
      continue;  // a byte order mark may have gone
    }
    if (enough || ended) return enough ? piece_bytes(text_) : text_.size();
    STREAMVEC_ASSIGN_OR_RETURN(const bool came, await_bytes(deadline));
    if (came) {
      STREAMVEC_RETURN_IF_ERROR(receive());
      continue;
    }
    if (line_bytes(text_) == 0) return error(Code::kDeadlineExceeded, "no line came from ", name_, " in time");
    STREAMVEC_RETURN_IF_ERROR(check_beginning());
    return line_bytes(text_);
  }
}

// False when the deadline passed, or when lines that are there have waited long enough.
Result<bool> StdinSource::await_bytes(Deadline deadline) {
  for (;;) {
    Deadline::Clock::time_point until = deadline.when();
    if (line_bytes(text_) > 0) until = std::min(until, line_came_ + options_.line_wait);
    pollfd wanted = {descriptor_.get(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, poll_timeout_ms(until));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return file_error(errno, "wait for", name_);
    if (Deadline::Clock::now() >= until) return false;
  }
}

// Puts what the descriptor has behind what is pending, which is little: a mark that is not complete yet.
Status StdinSource::receive() {
  const size_t kept = pending_.size();
  std::copy(pending_.begin(), pending_.end(), stored_.begin());
  const ssize_t got = ::read(descriptor_.get(), stored_.data() + kept, stored_.size() - kept);
  if (got < 0 && errno != EINTR && errno != EAGAIN) return file_error(errno, "read", name_);
  pending_ = {stored_.data(), kept + static_cast<size_t>(std::max<ssize_t>(got, 0))};
  bytes_read_ += std::max<ssize_t>(got, 0);
  stored_end_ = got == 0;
  return {};
}

// Turns pending bytes into text until there is none left of them or enough text for a piece.
Status StdinSource::decode() {
  if (!decided_ && (pending_.empty() || (may_become_compression(pending_) && !stored_end_))) return {};
  if (!decided_) decide_compression();
  const bool had_line = line_bytes(text_) > 0;
  while (text_.size() <= kPieceBytes && (!pending_.empty() || decoder_full_)) {
    if (decoder_ == nullptr) {
      text_ += std::exchange(pending_, {});
      break;
    }
    const size_t size_before = text_.size();
    text_.resize(size_before + kBufferBytes);
    std::span<char> room = std::span(text_).subspan(size_before);
    const Status status = decoder_->decode(pending_, room);
    decoder_full_ = room.empty();
    text_.resize(text_.size() - room.size());
    if (!status.ok())
      return error(status.code(), name_, ": ", compression_name(compression_), " stream at byte ",
                   bytes_read_ - static_cast<int64_t>(pending_.size()), ": ", status.message());
  }
  if (!had_line && line_bytes(text_) > 0) line_came_ = Deadline::Clock::now();
  if (stored_end_ && pending_.empty() && !decoder_full_ && decoder_ != nullptr && !decoder_->at_member_end())
    return error(Code::kDataLoss, name_, ": ", compression_name(compression_), " stream at byte ", bytes_read_,
                 ": the input ends in the middle of the stream");
  return {};
}

void StdinSource::decide_compression() {
  decided_ = true;
  compression_ = recognise_compression(pending_);
  if (compression_ != Compression::kNone) decoder_ = Decoder::make(compression_);
}

Status StdinSource::check_beginning() {
  if (beginning_checked_) return {};
  beginning_checked_ = true;
  STREAMVEC_RETURN_IF_ERROR(check_text(text_, name_ == "-" ? "standard input" : name_));
  text_.erase(0, utf8_mark_bytes(text_));
  return {};
}

}  // namespace streamvec
