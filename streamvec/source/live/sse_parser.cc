#include "streamvec/source/live/sse_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace streamvec {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

}  // namespace

void SseParser::restart() {
  line_.clear();
  type_.clear();
  data_.clear();
  has_data_ = after_cr_ = skipping_ = false;
  first_line_ = line_is_empty_ = true;
  id_ = last_id_;
}

void SseParser::feed(std::string_view bytes, std::vector<SseEvent>& out) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    append(bytes.substr(0, end));
    if (end == bytes.size()) return;
    after_cr_ = bytes[end] == '\r';
    end_line(out);
    bytes.remove_prefix(end + 1);
  }
}

void SseParser::append(std::string_view bytes) {
  if (bytes.empty()) return;
  line_is_empty_ = false;
  if (skipping_) return;
  if (line_.size() + bytes.size() + data_.size() > event_bytes_max_) return give_up_event();
  line_ += bytes;
}

// From here to the next empty line nothing is kept.
void SseParser::give_up_event() {
  ++oversized_;
  skipping_ = true;
  first_line_ = has_data_ = false;
  std::string().swap(line_);
  std::string().swap(data_);
}

void SseParser::end_line(std::vector<SseEvent>& out) {
  if (std::exchange(first_line_, false) && line_.starts_with(kMark)) {
    line_.erase(0, kMark.size());
    line_is_empty_ = line_.empty();
  }
  if (std::exchange(line_is_empty_, true)) return dispatch(out);
  if (skipping_) return;
  const std::string_view line = line_;
  const size_t colon = std::min(line.find(':'), line.size());
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  take_field(line.substr(0, colon), value);
  line_.clear();
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += value;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) id_ = value;
  } else if (name == "retry") {
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool digits = std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (failure == std::errc() && digits && end == value.data() + value.size()) retry_ms_ = number;
  }
}

// The standard sets the last id even where an event has no data and so is none.
void SseParser::dispatch(std::vector<SseEvent>& out) {
  last_id_ = id_;
  if (!skipping_ && has_data_ && !data_.empty())
    out.push_back({type_.empty() ? "message" : std::move(type_), std::move(data_), last_id_});
  type_.clear();
  data_.clear();
  has_data_ = skipping_ = false;
}

}  // namespace streamvec
