// Server-Sent Events as the WHATWG HTML standard has them, section 9.2.6 "Interpreting an event stream".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {

struct SseEvent {
  std::string type;  // "message" when the server gives none
  std::string data;
  std::string id;  // the last id known when it was dispatched
};

// Takes the bytes of a stream in pieces of any size and gives the events they complete. Lines may end with CR, LF or
// both; a byte order mark at the beginning, comments and unknown fields are passed over. An event whose lines come to
// more than `event_bytes_max` is left out and counted; memory stays below twice that. Not thread-safe.
class SseParser {
 public:
  explicit SseParser(size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  void feed(std::string_view bytes, std::vector<SseEvent>& out);
  // A new connection begins: half an event is forgotten, the last id stays.
  void restart();
  void set_last_id(const std::string& id) { last_id_ = id_ = id; }
  // For the Last-Event-ID header.
  const std::string& last_id() const { return last_id_; }
  // What "retry:" asked for last.
  std::optional<int64_t> retry_ms() const { return retry_ms_; }
  int64_t oversized() const { return oversized_; }

 private:
  void append(std::string_view bytes);
  void end_line(std::vector<SseEvent>& out);
  void take_field(std::string_view name, std::string_view value);
  void dispatch(std::vector<SseEvent>& out);
  void give_up_event();

  size_t event_bytes_max_;
  std::string line_;  // begun, not ended
  bool after_cr_ = false, first_line_ = true;
  bool skipping_ = false;      // the event is too large: nothing of it is kept
  bool line_is_empty_ = true;  // also while skipping, when line_ stays empty
  std::string type_, data_, id_, last_id_;
  bool has_data_ = false;
  std::optional<int64_t> retry_ms_;
  int64_t oversized_ = 0;
};

}  // namespace streamvec
