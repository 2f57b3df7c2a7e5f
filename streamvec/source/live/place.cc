#include "streamvec/source/live/place.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr size_t kRecent = 16, kHashesMax = 4'096, kLanesMax = 256;
constexpr int64_t kOverlap = 1'000;

}  // namespace

void Place::connected() {
  for (auto& [name, lane] : lanes_) lane.overlapping = true;
  before_connect_ = {recent_.begin(), recent_.end()};
  since_connect_ = 0;
}

bool Place::repeated(const RecordPlace& record) {
  if (record.number ? repeated_in_lane(record) : repeated_by_hash(record)) return true;
  if (!record.token.empty()) token_ = record.token;
  return false;
}

bool Place::repeated_in_lane(const RecordPlace& record) {
  const bool known = lanes_.count(record.lane) > 0;
  if (!known && lanes_.size() >= kLanesMax) return false;
  Lane& lane = lanes_[record.lane];
  if (!known || *record.number > lane.number) {
    lane = {*record.number, {record.hash}, false};
    return false;
  }
  const bool met = *record.number == lane.number &&
                   std::find(lane.hashes.begin(), lane.hashes.end(), record.hash) != lane.hashes.end();
  if (lane.overlapping && (met || *record.number < lane.number)) return true;
  if (*record.number == lane.number && lane.hashes.size() < kHashesMax) lane.hashes.push_back(record.hash);
  return false;
}

bool Place::repeated_by_hash(const RecordPlace& record) {
  if (++since_connect_ <= kOverlap && !record.token.empty() && before_connect_.count(record.hash) > 0) return true;
  if (recent_.size() == kRecent) recent_.erase(recent_.begin());
  recent_.push_back(record.hash);
  return false;
}

int64_t Place::number() const {
  int64_t most = 0;
  for (const auto& [name, lane] : lanes_) most = std::max(most, lane.number);
  return most;
}

std::string Place::cursor(int64_t bytes) const {
  Json all = {{"bytes", bytes}};
  if (!token_.empty()) all["token"] = token_;
  if (!recent_.empty()) all["recent"] = recent_;
  for (const auto& [name, lane] : lanes_) all["lanes"][name] = {{"number", lane.number}, {"hashes", lane.hashes}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Place> Place::parse(const std::string& cursor, int64_t& bytes) {
  Place place;
  bytes = 0;
  if (cursor.empty()) return place;
  try {
    const Json all = Json::parse(cursor);
    bytes = all.at("bytes").get<int64_t>();
    place.token_ = all.value("token", "");
    place.recent_ = all.value("recent", std::vector<uint64_t>());
    const Json lanes = all.value("lanes", Json::object());
    for (const auto& [name, lane] : lanes.items())
      place.lanes_[name] = {lane.at("number").get<int64_t>(), lane.at("hashes").get<std::vector<uint64_t>>(), true};
  } catch (const Json::exception&) {
    return error(Code::kInvalidArgument, "not a cursor of a live stream: ", cursor.substr(0, 100));
  }
  return place;
}

}  // namespace streamvec
