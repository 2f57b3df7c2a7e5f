#include "streamvec/format/input_stream.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstring>

namespace streamvec {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

bool is_compressed(std::string_view head) {
  using namespace std::string_view_literals;
  for (const std::string_view magic : {"\x1f\x8b"sv, "\x28\xb5\x2f\xfd"sv, "\xfd\x37zXZ\0"sv, "BZh"sv})
    if (head.starts_with(magic)) return true;
  return false;
}

}  // namespace

void InputStream::CloseArchive::operator()(archive* reader) const {
  archive_read_free(reader);
}

Result<InputStream> InputStream::open(const std::string& path) {
  InputStream stream;
  stream.path_ = path;
  STREAMVEC_ASSIGN_OR_RETURN(stream.file_, FileReader::open(path));
  std::string head(static_cast<size_t>(std::min<int64_t>(stream.file_.size(), 6)), '\0');
  STREAMVEC_RETURN_IF_ERROR(stream.file_.read(0, head.data(), static_cast<int64_t>(head.size())));
  if (is_compressed(head)) STREAMVEC_RETURN_IF_ERROR(stream.open_archive());
  // One byte more than a small plain file needs: its end is found without growing.
  const bool small = !stream.compressed() && stream.file_.size() < static_cast<int64_t>(kBufferBytes);
  stream.buffer_.resize(small ? static_cast<size_t>(stream.file_.size()) + 1 : kBufferBytes);
  return stream;
}

Status InputStream::open_archive() {
  archive_.reset(archive_read_new());
  STREAMVEC_CHECK(archive_ != nullptr);
  archive_entry* entry = nullptr;
  archive_read_support_filter_all(archive_.get());
  archive_read_support_format_raw(archive_.get());
  archive_read_support_format_empty(archive_.get());
  if (archive_read_open_filename(archive_.get(), path_.c_str(), kBufferBytes) == ARCHIVE_OK &&
      archive_read_next_header(archive_.get(), &entry) == ARCHIVE_OK)
    return {};
  const char* reason = archive_error_string(archive_.get());
  return error(Code::kDataLoss, path_, ": the compressed stream cannot be read: ", reason ? reason : "damaged",
               "; fetch or compress the file again");
}

Result<int64_t> InputStream::read_some(char* bytes, int64_t count) {
  if (archive_ != nullptr) {
    const la_ssize_t got = archive_read_data(archive_.get(), bytes, static_cast<size_t>(count));
    if (got >= 0) return int64_t{got};
    const char* reason = archive_error_string(archive_.get());
    return error(Code::kDataLoss, path_, ": byte ", offset_ + static_cast<int64_t>(end_ - begin_),
                 " of the decompressed text: ", reason ? reason : "damaged", "; fetch or compress the file again");
  }
  count = std::min(count, file_.size() - stored_);
  STREAMVEC_RETURN_IF_ERROR(file_.read(stored_, bytes, count));
  stored_ += count;
  return count;
}

Status InputStream::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t got,
                             read_some(buffer_.data() + end_, static_cast<int64_t>(buffer_.size() - end_)));
  end_ += static_cast<size_t>(got);
  ended_ = got == 0;
  return {};
}

Result<std::string_view> InputStream::peek(int64_t count) {
  while (static_cast<int64_t>(end_ - begin_) < count && !ended_) STREAMVEC_RETURN_IF_ERROR(fill());
  return std::string_view(buffer_.data() + begin_, std::min(end_ - begin_, static_cast<size_t>(count)));
}

void InputStream::skip(int64_t count) {
  STREAMVEC_CHECK(static_cast<size_t>(count) <= end_ - begin_);
  begin_ += static_cast<size_t>(count);
  offset_ += count;
}

Result<std::optional<std::string_view>> InputStream::next_line() {
  for (size_t searched = 0;;) {
    const char* start = buffer_.data() + begin_;
    const char* found = static_cast<const char*>(std::memchr(start + searched, '\n', end_ - begin_ - searched));
    if (found != nullptr) {
      std::string_view line(start, static_cast<size_t>(found - start));
      skip(static_cast<int64_t>(line.size()) + 1);
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      return std::optional(line);
    }
    searched = end_ - begin_;
    if (static_cast<int64_t>(searched) > kLineBytesMax)
      return error(Code::kResourceExhausted, path_, ": line ", line_ + 1, " is longer than ", kLineBytesMax,
                   " bytes; check that it is a file of vectors");
    if (ended_ && searched == 0) return std::optional<std::string_view>();
    if (ended_)
      return error(Code::kDataLoss, path_, ": line ", line_ + 1, " has no end at byte ",
                   offset_ + static_cast<int64_t>(searched),
                   ": the file was cut short; fetch it again, or end its last line if it is whole");
    STREAMVEC_RETURN_IF_ERROR(fill());
  }
}

}  // namespace streamvec
