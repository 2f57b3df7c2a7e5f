#include "streamvec/serve/event_board.h"

#include <algorithm>

namespace streamvec {

bool EventBoard::wants(const Reader& reader, const std::string& kind) {
  if (reader.kinds.empty()) return kind != "map";
  return std::find(reader.kinds.begin(), reader.kinds.end(), kind) != reader.kinds.end();
}

void EventBoard::tell(const std::string& kind, const Json& data, bool remembered) {
  // Words are bytes of the stream: what is no UTF-8 becomes U+FFFD. JSON on one line cannot end an event early.
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::lock_guard lock(mutex_);
  const auto text = std::make_shared<const std::string>("id: " + std::to_string(next_id_++) + "\nevent: " + kind +
                                                        "\ndata: " + json + "\n\n");
  last_text_[kind] = text;
  if (kind != "map") last_[kind] = data;  // large, and the board of models has it
  if (remembered) remember(kind, data);
  std::erase_if(readers_, [&](const Reader& reader) { return wants(reader, kind) && !reader.sink->send(text); });
}

void EventBoard::remember(const std::string& kind, const Json& data) {
  std::vector<Json>& all = remembered_[kind];
  all.push_back(data);
  if (static_cast<int64_t>(all.size()) < 2 * options_.remembered_max) return;
  std::vector<Json> kept;
  for (size_t i = 0; i < all.size(); i += 2) kept.push_back(std::move(all[i]));
  all = std::move(kept);
}

bool EventBoard::add_reader(std::shared_ptr<EventSink> reader, std::vector<std::string> kinds) {
  const std::lock_guard lock(mutex_);
  if (static_cast<int64_t>(readers_.size()) >= options_.readers_max) return false;
  Reader added{std::move(reader), std::move(kinds)};
  static const auto kHello = std::make_shared<const std::string>("retry: 2000\n\n");
  if (!added.sink->send(kHello)) return true;
  for (const auto& [kind, text] : last_text_)
    if (wants(added, kind)) added.sink->send(text);
  readers_.push_back(std::move(added));
  return true;
}

void EventBoard::keep_alive(std::chrono::steady_clock::time_point now) {
  static const auto kComment = std::make_shared<const std::string>(": alive\n\n");
  const std::lock_guard lock(mutex_);
  if (now - alive_ < options_.alive_every) return;
  alive_ = now;
  std::erase_if(readers_, [&](const Reader& reader) { return !reader.sink->send(kComment); });
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

int64_t EventBoard::readers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(readers_.size());
}

}  // namespace streamvec
