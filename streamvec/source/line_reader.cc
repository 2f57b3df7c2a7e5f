#include "streamvec/source/line_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "streamvec/source/record.h"

namespace streamvec {
namespace {

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.substr(0, kRecordBytesMax + 1);
}

}  // namespace

LineReader::LineReader(std::unique_ptr<FileSource> files) : source_(std::move(files)) {
  files_ = static_cast<FileSource*>(source_.get());
}

LineReader::LineReader(std::unique_ptr<Source> stream) : source_(std::move(stream)) {}

// Leaves pieces_ with the next piece; false at the end.
Result<bool> LineReader::next_piece(Deadline deadline) {
  if (!pieces_.empty()) previous_ = std::move(pieces_[0].cursor);
  pieces_.clear();
  begin_ = 0;
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source_->read(1, deadline, pieces_));
  if (count == 0) return false;
  const int64_t file = files_ == nullptr ? 0 : static_cast<int64_t>(files_->file_index());
  if (file != file_) {
    at_file_begin_ = true;
    if (files_ != nullptr) previous_ = files_->file_begin_cursor();
  }
  file_ = file;
  return true;
}

void LineReader::append(std::string_view part) {
  line_begun_ = true;
  line_ += part.substr(0, kRecordBytesMax + 2 - std::min(line_.size(), kRecordBytesMax + 2));
}

Result<bool> LineReader::next(Deadline deadline, std::string_view& line) {
  if (!line_begun_) line_.clear();
  for (;;) {
    if (pieces_.empty() || begin_ == pieces_[0].text.size()) {
      STREAMVEC_ASSIGN_OR_RETURN(const bool more, next_piece(deadline));
      if (!more && !line_begun_) return false;
      if (!more) break;  // a stream's last line
    }
    const std::string_view rest = std::string_view(pieces_[0].text).substr(begin_);
    const size_t end = rest.find('\n');
    begin_ += end == std::string_view::npos ? rest.size() : end + 1;
    if (end != std::string_view::npos && !line_begun_) {
      line = without_return(rest.substr(0, end));
      first_of_file_ = std::exchange(at_file_begin_, false);
      return true;
    }
    append(rest.substr(0, end));
    if (end != std::string_view::npos || (files_ != nullptr && files_->at_file_end())) break;
  }
  line = without_return(line_);
  line_begun_ = false;
  first_of_file_ = std::exchange(at_file_begin_, false);
  return true;
}

std::string LineReader::place() const {
  if (pieces_.empty()) return "0 " + previous_;
  const bool whole = begin_ == pieces_[0].text.size();
  return std::to_string(whole ? 0 : begin_) + " " + (whole ? pieces_[0].cursor : previous_);
}

Status LineReader::seek(const std::string& place) {
  pieces_.clear();
  previous_.clear();
  line_.clear();
  begin_ = 0;
  line_begun_ = false;
  file_ = -1;
  at_file_begin_ = true;
  if (place.empty()) return source_->seek("");
  size_t bytes = 0;
  const auto [end, failure] = std::from_chars(place.data(), place.data() + place.size(), bytes);
  if (failure != std::errc() || end == place.data() + place.size() || *end != ' ')
    return error(Code::kInvalidArgument, "not a cursor of lines: ", place.substr(0, 200));
  previous_ = end + 1;
  STREAMVEC_RETURN_IF_ERROR(source_->seek(previous_));
  if (!previous_.empty() && files_ != nullptr) file_ = static_cast<int64_t>(files_->file_index());
  if (bytes == 0) {
    at_file_begin_ = file_ < 0;
    return {};
  }
  STREAMVEC_ASSIGN_OR_RETURN(const bool more, next_piece(Deadline::never()));
  if (!more || bytes > pieces_[0].text.size())
    return error(Code::kFailedPrecondition, source_->name(), " ends before the place where the run stopped");
  begin_ = bytes;
  at_file_begin_ = false;
  return {};
}

}  // namespace streamvec
