#include "streamvec/serve/event_board.h"

#include <algorithm>

#include "streamvec/core/clock.h"
#include "streamvec/core/json.h"

namespace streamvec {
namespace {

class SseReader final : public EventReader {
 public:
  explicit SseReader(std::shared_ptr<EventSink> sink) : sink_(std::move(sink)) {
    sink_->send(std::make_shared<const std::string>("retry: 2000\n\n"));
  }
  bool tell(const std::shared_ptr<const BoardEvent>& event) override { return sink_->send(event->text); }
  // An event, since scripts do not see comments; without an id, so that Last-Event-ID stays.
  bool keep_alive() override {
    static const auto kAlive = std::make_shared<const std::string>("event: alive\ndata: {}\n\n");
    return sink_->send(kAlive);
  }
  bool is_there() const override { return sink_->is_open(); }
  void end() override { sink_->end(); }

 private:
  const std::shared_ptr<EventSink> sink_;
};

class PassingReader final : public EventReader {
 public:
  PassingReader(int64_t expires_s, std::shared_ptr<EventReader> reader)
      : expires_s_(static_cast<double>(expires_s)), reader_(std::move(reader)) {}
  bool tell(const std::shared_ptr<const BoardEvent>& event) override { return !is_over() && reader_->tell(event); }
  bool keep_alive() override { return !is_over() && reader_->keep_alive(); }
  bool is_there() const override { return !is_over() && reader_->is_there(); }
  void end() override { reader_->end(); }

 private:
  bool is_over() const { return unix_now() >= expires_s_; }

  const double expires_s_;
  const std::shared_ptr<EventReader> reader_;
};

}  // namespace

std::shared_ptr<EventReader> sse_reader(std::shared_ptr<EventSink> sink) {
  return std::make_shared<SseReader>(std::move(sink));
}

std::shared_ptr<EventReader> reader_until(int64_t expires_s, std::shared_ptr<EventReader> reader) {
  return expires_s == 0 ? reader : std::make_shared<PassingReader>(expires_s, std::move(reader));
}

bool EventBoard::is_kind(const std::string& kind) {
  for (const char* known : {"progress", "metrics", "alert", "model", "map", "end"})
    if (kind == known) return true;
  return false;
}

bool EventBoard::wants(const Reader& reader, const std::string& kind) {
  if (reader.kinds.empty()) return kind != "map";
  return std::find(reader.kinds.begin(), reader.kinds.end(), kind) != reader.kinds.end();
}

void EventBoard::tell(const std::string& kind, const Json& data, bool remembered) {
  std::string json = json_text(data);
  const std::lock_guard lock(mutex_);
  const auto event = put(kind, data, std::move(json), remembered);
  leave([&](const Reader& reader) { return wants(reader, kind) && !reader.reader->tell(event); });
}

void EventBoard::recall(const std::string& kind, const Json& data, bool is_last) {
  std::string json = is_last ? json_text(data) : "";
  const std::lock_guard lock(mutex_);
  if (is_last)
    put(kind, data, std::move(json), true);
  else
    remember(kind, data);
}

// Words are bytes of the stream: what is no UTF-8 has become U+FFFD. JSON on one line cannot end an event early.
std::shared_ptr<const BoardEvent> EventBoard::put(const std::string& kind, const Json& data, std::string json,
                                                  bool remembered) {
  const int64_t id = next_id_++;
  auto text = std::make_shared<const std::string>("id: " + std::to_string(id) + "\nevent: " + kind + "\ndata: " + json +
                                                  "\n\n");
  if (kind != "map") last_[kind] = data;  // large, and the board of models has it
  if (remembered) remember(kind, data);
  return last_event_[kind] = std::make_shared<const BoardEvent>(BoardEvent{id, kind, std::move(json), std::move(text)});
}

void EventBoard::remember(const std::string& kind, const Json& data) {
  std::vector<Json>& all = remembered_[kind];
  all.push_back(data);
  if (static_cast<int64_t>(all.size()) < 2 * options_.remembered_max) return;
  std::vector<Json> kept;
  for (size_t i = (all.size() - 1) % 2; i < all.size(); i += 2) kept.push_back(std::move(all[i]));  // the last stays
  all = std::move(kept);
}

bool EventBoard::add_reader(std::shared_ptr<EventReader> reader, std::vector<std::string> kinds) {
  const std::lock_guard lock(mutex_);
  leave_gone();
  if (std::ssize(readers_) >= options_.readers_max) return false;
  Reader added{std::move(reader), std::move(kinds)};
  std::vector<std::shared_ptr<const BoardEvent>> last;
  for (const auto& [kind, event] : last_event_)
    if (wants(added, kind)) last.push_back(event);
  std::sort(last.begin(), last.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  for (const auto& event : last)
    if (!added.reader->tell(event)) {
      added.reader->end();
      return true;
    }
  readers_.push_back(std::move(added));
  return true;
}

void EventBoard::keep_alive(std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  leave_gone();
  if (now - alive_ < options_.alive_every) return;
  alive_ = now;
  leave([](const Reader& reader) { return !reader.reader->keep_alive(); });
}

EventBoard::Json EventBoard::history(const std::string& kind, int64_t count) const {
  const std::lock_guard lock(mutex_);
  Json points = Json::array();
  const auto known = remembered_.find(kind);
  if (known == remembered_.end() || count < 1) return points;
  const std::vector<Json>& all = known->second;
  const size_t wanted = std::min(all.size(), static_cast<size_t>(count));
  for (size_t i = 1; i <= wanted; ++i) points.push_back(all[i * all.size() / wanted - 1]);
  return points;
}

EventBoard::Json EventBoard::last(const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  const auto known = last_.find(kind);
  return known == last_.end() ? Json(nullptr) : known->second;
}

int64_t EventBoard::readers() {
  const std::lock_guard lock(mutex_);
  leave_gone();
  return std::ssize(readers_);
}

void EventBoard::leave_gone() {
  leave([](const Reader& reader) { return !reader.reader->is_there(); });
}

template <typename Gone>
void EventBoard::leave(const Gone& gone) {
  std::erase_if(readers_, [&](const Reader& reader) {
    if (!gone(reader)) return false;
    reader.reader->end();
    return true;
  });
}

}  // namespace streamvec
