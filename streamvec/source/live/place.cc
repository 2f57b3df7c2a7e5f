#include "streamvec/source/live/place.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr size_t kRecent = 16, kHashesMax = 4'096, kLanesMax = 256;
constexpr int64_t kOverlap = 1'000;

// Throws as the library does for what is no whole number. (Its own get<int64_t>() takes 1e300 for one.)
int64_t whole(const Json& json) {
  return json.get_ref<const Json::number_integer_t&>();
}

// At most the last `count_max` of them.
std::vector<uint64_t> hashes_of(const Json& list, size_t count_max) {
  std::vector<uint64_t> hashes;
  for (size_t i = list.size() - std::min(list.size(), count_max); i < list.size(); ++i)
    hashes.push_back(static_cast<uint64_t>(whole(list.at(i))));
  return hashes;
}

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
  return json_text(all);
}

Result<Place> Place::parse(const std::string& cursor, int64_t& bytes) {
  Place place;
  bytes = 0;
  if (cursor.empty()) return place;
  try {
    const Json all = parse_json(cursor);
    bytes = whole(all.at("bytes"));
    place.token_ = all.value("token", "");
    if (all.contains("recent")) place.recent_ = hashes_of(all["recent"], kRecent);
    if (all.contains("lanes"))
      for (const auto& [name, lane] : all["lanes"].items())
        place.lanes_[name] = {whole(lane.at("number")), hashes_of(lane.at("hashes"), kHashesMax), true};
  } catch (const Json::exception&) {
    return error(Code::kInvalidArgument, "not a cursor of a live stream: ", cursor.substr(0, 100));
  }
  return place;
}

}  // namespace streamvec
