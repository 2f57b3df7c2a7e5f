#include "streamvec/source/tail_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "streamvec/source/piece.h"
#include "streamvec/source/tail_place.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr std::chrono::milliseconds kLookEvery{200};  // how often to look when no event comes
constexpr std::chrono::milliseconds kStill{500};      // how long a rotated file must be still

int64_t mtime_ns_of(const struct stat& info) {
  return info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

std::string pread_string(int descriptor, size_t size, int64_t offset) {
  std::string bytes(size, '\0');
  const ssize_t got = ::pread(descriptor, bytes.data(), size, offset);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

}  // namespace

struct TailSource::Candidate {
  std::string path;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
};

Result<std::unique_ptr<Source>> TailSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(RecordFormat::check_keys(location, {"from"}));
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
  const std::string from = location.text("from", "start");
  if (from != "start" && from != "end")
    return error(Code::kInvalidArgument, location.name, ": from=", from, " is not known; it is start or end");
  if (!location.host.empty() || location.path.empty())
    return error(Code::kInvalidArgument, name, ": a path is missing; write tail:PATH");
  std::error_code unknown;
  if (!fs::is_directory(directory_of(location.path), unknown))
    return file_error(ENOENT, "open directory", directory_of(location.path));
  if (fs::exists(location.path, unknown)) STREAMVEC_RETURN_IF_ERROR(FileStamp::of(location.path).status());
  return std::unique_ptr<Source>(new TailSource(location.name, location.path, from == "end", std::move(format)));
}

TailSource::TailSource(std::string name, std::string path, bool from_end, RecordFormat format)
    : name_(std::move(name)),
      path_(std::move(path)),
      from_end_(from_end),
      format_(std::move(format)),
      watch_(directory_of(path_)) {}

void TailSource::reset() {
  file_.reset();
  inode_ = 0;
  started_ = ended_ = dropping_ = false;
  head_.clear();
  last_.clear();
  buffer_.clear();
  begin_ = 0;
  offset_ = bytes_read_ = 0;
  still_since_.reset();
}

std::vector<std::string> TailSource::notes() const {
  std::vector<std::string> lines = counts_.notes(name_);
  if (truncations_ > 0)
    lines.push_back(name_ + ": cut to nothing " + std::to_string(truncations_) +
                    " times without a copy; lines written just before may be lost");
  if (losses_ > 0)
    lines.push_back(name_ + ": " + std::to_string(losses_) +
                    " times the file being read was gone; what it had got since is lost");
  return lines;
}

// Files ------------------------------------------------------------------------------------------------------------

// PATH and what it was rotated to, oldest first, PATH last.
std::vector<TailSource::Candidate> TailSource::candidates() const {
  std::vector<Candidate> found;
  const auto add = [&](const std::string& path) {
    struct stat info;
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      found.push_back({path, info.st_ino, mtime_ns_of(info)});
  };
  const std::string base = fs::path(path_).filename().string();
  std::error_code failure;
  for (fs::directory_iterator entry(directory_of(path_), failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(base) && is_rotation_suffix(std::string_view(name).substr(base.size())))
      add(entry->path().string());
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.mtime_ns < b.mtime_ns; });
  add(path_);
  return found;
}

// The oldest file changed after `mtime_ns`; nothing while PATH is not there.
std::optional<TailSource::Candidate> TailSource::next_candidate(int64_t mtime_ns, uint64_t inode) const {
  const std::vector<Candidate> found = candidates();
  if (found.empty() || found.back().path != path_) return std::nullopt;
  for (const Candidate& candidate : found) {
    const bool between = candidate.mtime_ns > mtime_ns && candidate.mtime_ns <= found.back().mtime_ns;
    if (candidate.inode != inode && candidate.inode != found.back().inode && between) return candidate;
  }
  return found.back();
}

Status TailSource::open_at(const std::string& path, int64_t offset) {
  STREAMVEC_ASSIGN_OR_RETURN(DecodedFile file, DecodedFile::open(path));
  struct stat info;
  if (::fstat(file.descriptor(), &info) != 0) return file_error(errno, "look at", path);
  head_.assign(std::min<size_t>(TailPlace::kHeadBytes, static_cast<size_t>(offset)), '\0');
  last_.clear();
  if (offset > 0) {
    STREAMVEC_ASSIGN_OR_RETURN(const size_t got, file.read(head_));
    head_.resize(got);
    STREAMVEC_ASSIGN_OR_RETURN(const bool there, file.skip(offset - static_cast<int64_t>(got)));
    if (!there) return error(Code::kFailedPrecondition, path, " ends before byte ", offset);
    if (file.compression() == Compression::kNone) {
      const auto size = static_cast<size_t>(std::min<int64_t>(TailPlace::kLastBytes, offset));
      last_ = pread_string(file.descriptor(), size, offset - static_cast<int64_t>(size));
    }
  }
  file_.emplace(std::move(file));
  inode_ = info.st_ino;
  was_live_ = path == path_;
  buffer_.clear();
  begin_ = 0;
  offset_ = offset;
  ended_ = dropping_ = false;
  still_since_.reset();
  return {};
}

// Whether the file is the one that was read so far, only longer.
bool TailSource::is_intact() {
  struct stat info;
  if (::fstat(file_->descriptor(), &info) != 0) return false;
  mtime_ns_ = mtime_ns_of(info);
  if (file_->compression() != Compression::kNone) return true;
  if (info.st_size < read_offset()) return false;
  return pread_string(file_->descriptor(), head_.size(), 0) == head_ &&
         pread_string(file_->descriptor(), last_.size(), read_offset() - static_cast<int64_t>(last_.size())) == last_;
}

Status TailSource::seek(const std::string& cursor) {
  reset();
  if (cursor.empty()) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const TailPlace place, TailPlace::parse(cursor));
  bytes_read_ = place.bytes_read;
  started_ = true;
  std::vector<Candidate> found = candidates();
  std::reverse(found.begin(), found.end());
  // The same file under any name first; a copy or a compressed one else.
  std::stable_partition(found.begin(), found.end(), [&](const Candidate& each) { return each.inode == place.inode; });
  for (const Candidate& candidate : found)
    if (place.is_in(candidate.path)) return open_at(candidate.path, place.offset);
  ++losses_;
  if (const auto next = next_candidate(place.mtime_ns, 0)) return open_at(next->path, 0);
  return {};
}

// Bytes ------------------------------------------------------------------------------------------------------------

// The first file of a run without a cursor.
Result<bool> TailSource::start() {
  struct stat info;
  if (::stat(path_.c_str(), &info) != 0) {
    started_ = true;  // what appears later is new
    return false;
  }
  STREAMVEC_RETURN_IF_ERROR(open_at(path_, !started_ && from_end_ ? static_cast<int64_t>(info.st_size) : 0));
  dropping_ = offset_ > 0 && !last_.ends_with('\n');
  started_ = true;
  return true;
}

Result<bool> TailSource::read_more() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t size_before = buffer_.size();
  buffer_.resize(size_before + kBlockBytes);
  const Result<size_t> got = file_->read(std::span(buffer_).subspan(size_before));
  buffer_.resize(size_before + (got.ok() ? *got : 0));
  if (!got.ok()) return got.status();
  const std::string_view fresh = std::string_view(buffer_).substr(size_before);
  if (head_.size() < TailPlace::kHeadBytes) head_ += fresh.substr(0, TailPlace::kHeadBytes - head_.size());
  last_ += fresh.substr(fresh.size() - std::min(fresh.size(), TailPlace::kLastBytes));
  if (last_.size() > TailPlace::kLastBytes) last_.erase(0, last_.size() - TailPlace::kLastBytes);
  if (*got > 0) {
    still_since_.reset();
    ended_ = false;
  }
  return *got > 0;
}

// PATH was copied and cut: the rest is in the copy. Without a copy it is lost, as `tail -F` loses it.
Result<bool> TailSource::after_truncation() {
  TailPlace place;
  place.offset = read_offset();
  place.head_size = head_.size();
  place.head_sum = Checksum::of(head_);
  place.last_size = last_.size();
  place.last_sum = Checksum::of(last_);
  std::vector<Candidate> found = candidates();
  std::reverse(found.begin(), found.end());
  const std::string kept(rest());
  const int64_t kept_offset = offset_;
  for (const Candidate& candidate : found) {
    if (candidate.inode == inode_ || place.offset == 0 || !place.is_in(candidate.path)) continue;
    STREAMVEC_RETURN_IF_ERROR(open_at(candidate.path, place.offset));
    buffer_ = kept;
    offset_ = kept_offset;
    return true;
  }
  ++truncations_;
  STREAMVEC_RETURN_IF_ERROR(open_at(path_, 0));
  return true;
}

// Whether a rotated file gets nothing more. Its writer may not have noticed the rotation yet.
bool TailSource::is_still(int64_t mtime_ns) {
  constexpr int64_t kOldNs = 2'000'000'000;
  const auto wall = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!was_live_ && wall - mtime_ns > kOldNs) return true;
  const Clock::time_point now = Clock::now();
  if (!still_since_) still_since_ = now;
  return now - *still_since_ >= kStill;
}

// At the end of what is there: goes to the next file when this one was rotated and is still.
Result<bool> TailSource::follow_rotation() {
  struct stat live, mine;
  if (::stat(path_.c_str(), &live) != 0 || ::fstat(file_->descriptor(), &mine) != 0) return false;
  if (live.st_ino == inode_ && live.st_dev == mine.st_dev) return false;
  if (!is_still(mtime_ns_of(mine))) return false;
  if (!ended_ && !rest().empty()) {
    ended_ = true;  // its last line has no end
    return true;
  }
  const auto next = next_candidate(mtime_ns_of(mine), inode_).value_or(Candidate{path_, 0, 0});
  STREAMVEC_RETURN_IF_ERROR(open_at(next.path, 0));
  return true;
}

// True when there is something new to look at.
Result<bool> TailSource::fill() {
  if (!file_) return start();
  if (!is_intact()) return after_truncation();
  const Result<bool> more = read_more();
  if (!more.ok() && more.status().code() == Code::kDataLoss) {  // a rotated file that was compressed is damaged
    ++losses_;
    STREAMVEC_RETURN_IF_ERROR(open_at(path_, 0));
    return true;
  }
  if (!more.ok() || *more) return more;
  return follow_rotation();
}

// Documents --------------------------------------------------------------------------------------------------------

// How much of `rest` makes the next document; 0 when none is complete.
size_t TailSource::unit_bytes(std::string_view rest) const {
  if (format_.kind() != RecordFormat::Kind::kText) {
    const size_t end = rest.find('\n');
    return end != std::string_view::npos ? end + 1 : ended_ ? rest.size() : 0;
  }
  if (rest.size() > kPieceBytes) return piece_bytes(rest);
  return ended_ ? rest.size() : line_bytes(rest);
}

void TailSource::drop(size_t size) {
  begin_ += size;
  offset_ += static_cast<int64_t>(size);
  bytes_read_ += static_cast<int64_t>(size);
}

bool TailSource::take(Document& document) {
  while (!rest().empty()) {
    if (dropping_) {
      const size_t end = rest().find('\n');
      drop(end == std::string_view::npos ? rest().size() : end + 1);
      if (end == std::string_view::npos) break;
      dropping_ = false;
      continue;
    }
    const size_t size = unit_bytes(rest());
    if (size == 0) {
      if (rest().size() <= kRecordBytesMax) break;
      counts_.bad(error(Code::kResourceExhausted, "a record longer than ", kRecordBytesMax, " bytes"));
      dropping_ = true;
      continue;
    }
    const std::string_view unit = rest().substr(0, size);
    if (finish(unit, size, document)) return true;
  }
  return false;
}

// Makes a document of `unit`; false when it is blank or bad.
bool TailSource::finish(std::string_view unit, size_t size, Document& document) {
  std::string_view record = unit;
  const bool blank = record.find_first_not_of(" \t\r\n") == std::string_view::npos;
  if (format_.kind() != RecordFormat::Kind::kText)
    while (record.ends_with('\n') || record.ends_with('\r')) record.remove_suffix(1);
  const Status status = blank ? Status() : format_.read(record, document);
  if (blank || !status.ok()) {
    if (!blank) counts_.bad(status);
    drop(size);
    return false;
  }
  counts_.good();
  drop(size);
  document.cursor = cursor(unit);
  return true;
}

// After `unit`, which ends at offset_.
std::string TailSource::cursor(std::string_view unit) const {
  TailPlace place;
  place.inode = inode_;
  place.offset = offset_;
  place.bytes_read = bytes_read_;
  place.mtime_ns = mtime_ns_;
  place.head_size = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(head_.size()), offset_));
  place.head_sum = Checksum::of(std::string_view(head_).substr(0, place.head_size));
  const std::string_view last = unit.substr(unit.size() - std::min(unit.size(), TailPlace::kLastBytes));
  place.last_size = last.size();
  place.last_sum = Checksum::of(last);
  return place.text();
}

Result<int64_t> TailSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  std::vector<DirectoryWatch::Event> events;
  for (;;) {
    int64_t count = 0;
    for (Document document; count < count_max && take(document); ++count) out.push_back(std::move(document));
    if (count > 0) return count;
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, fill());
    if (more) continue;
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "no line came from ", name_, " in time");
    events.clear();
    watch_.await(deadline, kLookEvery, events);
  }
}

}  // namespace streamvec
