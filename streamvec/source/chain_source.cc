#include "streamvec/source/chain_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"

namespace streamvec {

using Json = nlohmann::json;

ChainSource::ChainSource(std::vector<std::unique_ptr<Source>> sources) : sources_(std::move(sources)) {
  STREAMVEC_CHECK(!sources_.empty());
}

Result<int64_t> ChainSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  for (; index_ < sources_.size(); ++index_) {
    const size_t size_before = out.size();
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, sources_[index_]->read(count_max, deadline, out));
    for (size_t i = size_before; i < out.size(); ++i) out[i].cursor = cursor_of({index_, std::move(out[i].cursor)});
    if (count == 0) continue;
    anything_read_ = true;
    return count;
  }
  if (!anything_read_) return error(Code::kInvalidArgument, "all sources are empty (", name(), "); give them text");
  return 0;
}

Result<ChainSource::Place> ChainSource::place_of(const std::string& cursor) const {
  if (cursor.empty()) return Place();
  const Json at = parse_json(cursor);
  if (!at.is_object() || !at.value("source", Json()).is_number_unsigned() || !at.value("cursor", Json()).is_string())
    return error(Code::kInvalidArgument, "not a cursor of several sources: ", cursor.substr(0, 200));
  const Place place{at["source"], at["cursor"]};
  if (place.index >= sources_.size())
    return error(Code::kFailedPrecondition, "the run stopped in source ", place.index + 1, ", but there are only ",
                 sources_.size(), " now; name the same sources in the same order, or start anew");
  return place;
}

std::string ChainSource::cursor_of(const Place& place) {
  return json_text(Json{{"source", place.index}, {"cursor", place.cursor}});
}

Status ChainSource::seek(const std::string& cursor) {
  index_ = 0;
  anything_read_ = false;
  STREAMVEC_ASSIGN_OR_RETURN(const Place place, place_of(cursor));
  STREAMVEC_RETURN_IF_ERROR(sources_[place.index]->seek(place.cursor));
  for (size_t i = place.index + 1; i < sources_.size(); ++i) STREAMVEC_RETURN_IF_ERROR(sources_[i]->seek(""));
  index_ = place.index;
  anything_read_ = !cursor.empty();
  return {};
}

std::string ChainSource::saved(const std::string& cursor) const {
  const auto place = place_of(cursor);
  if (!place.ok() || cursor.empty()) return cursor;
  return cursor_of({place->index, sources_[place->index]->saved(place->cursor)});
}

Status ChainSource::commit(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const Place place, place_of(cursor));
  return sources_[place.index]->commit(place.cursor);
}

std::string ChainSource::contents() const {
  std::string all;
  for (const auto& source : sources_) all += (all.empty() ? "" : " ") + source->contents();
  return all;
}

Capabilities ChainSource::capabilities() const {
  Capabilities all{.skips = true};
  for (const auto& source : sources_) {
    const Capabilities one = source->capabilities();
    all.endless |= one.endless;
    all.replayable &= one.replayable;
    all.pausable &= one.pausable;
    all.skips &= one.skips;
    all.lookback_s = std::min(all.lookback_s, one.lookback_s);
  }
  return all;
}

int64_t ChainSource::bytes_total() const {
  int64_t total = 0;
  for (const auto& source : sources_) {
    if (source->bytes_total() < 0) return -1;
    total += source->bytes_total();
  }
  return total;
}

int64_t ChainSource::bytes_read() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < sources_.size() && i <= index_; ++i) {
    // A member that was passed by seek() has not been read, but counts as a whole.
    const bool passed = i < index_ && sources_[i]->bytes_total() >= 0;
    bytes += passed ? sources_[i]->bytes_total() : sources_[i]->bytes_read();
  }
  return bytes;
}

std::string ChainSource::name() const {
  std::string names = sources_[0]->name();
  for (size_t i = 1; i < sources_.size(); ++i) names += ", " + sources_[i]->name();
  return names;
}

std::vector<std::string> ChainSource::notes() const {
  std::vector<std::string> lines;
  for (const auto& source : sources_)
    for (std::string& line : source->notes()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace streamvec
