#include "streamvec/source/live/live_source.h"

#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

uint64_t hash_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

const Json* find(const Json& all, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return all.contains(at) ? &all.at(at) : nullptr;
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

LiveSource::LiveSource(Options options, RecordFormat format)
    : options_(std::move(options)), intake_(std::move(format)), backoff_(options_.backoff, std::random_device()()) {}

Capabilities LiveSource::capabilities() const {
  return {.endless = true,
          .replayable = options_.lookback_s > 0,
          .pausable = false,
          .lookback_s = options_.lookback_s,
          .remote = true};
}

Status LiveSource::seek(const std::string& cursor) {
  int64_t bytes = 0;
  STREAMVEC_ASSIGN_OR_RETURN(place_, Place::parse(cursor, bytes));
  bytes_read_ = bytes_handed_ = bytes;
  ready_.clear();
  ready_bytes_.clear();
  link_.reset();
  place_checked_ = ended_ = false;
  return {};
}

Result<int64_t> LiveSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  while (ready_.empty() && !ended_) STREAMVEC_RETURN_IF_ERROR(advance(deadline));
  int64_t count = 0;
  for (; count < count_max && !ready_.empty(); ++count) {
    out.push_back(std::move(ready_.front()));
    bytes_handed_ = ready_bytes_.front();
    ready_.pop_front();
    ready_bytes_.pop_front();
  }
  documents_ += count;
  if (documents_ == 0) return error(Code::kInvalidArgument, options_.name, " ended before it gave anything to read");
  return count;
}

// One step: waits for the time to come back, makes a link, or takes what one has.
Status LiveSource::advance(Deadline deadline) {
  if (link_ == nullptr) {
    std::this_thread::sleep_until(std::min(retry_at_, deadline.when()));
    if (Deadline::Clock::now() < retry_at_)
      return trouble_.ok() ? error(Code::kDeadlineExceeded, options_.name, " is waited for") : trouble_;
    note_old_place();
    link_ = link(place_);
    place_.connected();
    link_served_ = false;
  }
  const int64_t bad_before = link_->bad();
  const Status status = link_->receive(deadline, records_);
  intake_.count_bad(link_->bad() - bad_before);
  if (link_->established()) agreed_ = true;
  digest();
  if (!status.ok() && status.code() != Code::kDeadlineExceeded) return after_loss(status);
  if (!ready_.empty() || (status.ok() && !deadline.passed())) return {};
  return error(Code::kDeadlineExceeded, "nothing to read came from ", options_.name, " in time");
}

// The loss of a link that gave records is ordinary and silent; a link that gave none is told of.
Status LiveSource::after_loss(const Status& status) {
  if (status.code() == Code::kOutOfRange) {
    ended_ = true;
    link_.reset();
    return {};
  }
  if (link_->retry_first().count() > 0) backoff_.set_first(link_->retry_first());
  const auto wished = link_->retry_after();
  link_.reset();
  retry_at_ =
      Deadline::Clock::now() + std::max(backoff_.failed(), std::min(wished, std::chrono::milliseconds(600'000)));
  if (!agreed_ && status.code() != Code::kUnavailable) return status;
  if (link_served_) return {};
  trouble_ = error(Code::kUnavailable, options_.name, ": ", status.message());
  return trouble_;
}

void LiveSource::digest() {
  for (const LiveRecord& record : records_) {
    Document document;
    const bool readable = intake_.take(record.data, document);
    if (place_.repeated(place_of(record, document))) {
      ++repeats_;
      continue;
    }
    bytes_read_ += static_cast<int64_t>(record.data.size());
    if (!readable) continue;
    document.cursor = place_.cursor(bytes_read_);
    ready_.push_back(std::move(document));
    ready_bytes_.push_back(bytes_read_);
  }
  if (!records_.empty()) {
    backoff_.succeeded();
    link_served_ = true;
    trouble_ = {};
  }
  records_.clear();
}

RecordPlace LiveSource::place_of(const LiveRecord& record, const Document& document) const {
  RecordPlace place = {.token = record.token};
  place.hash = document.id.empty() ? mix(hash_of(record.data), hash_of(record.token))
                                   : mix(hash_of(document.id), document.deleted ? 1 : 0);
  if (options_.numbering.number.empty()) return place;
  const Json all = parse_json(record.data);
  if (all.is_discarded()) return place;
  const Json* number = find(all, options_.numbering.number);
  if (number == nullptr) return place;
  if (number->is_number_integer()) place.number = number->get<int64_t>();
  for (const std::string& pointer : options_.numbering.lane)
    if (const Json* part = find(all, pointer)) place.lane += plain(*part) + "/";
  if (options_.numbering.number_is_token) place.token = plain(*number);
  return place;
}

// Only numbers that are times in us tell how old a place is.
void LiveSource::note_old_place() {
  if (std::exchange(place_checked_, true)) return;
  const int64_t age_s = now_s() - place_.number() / 1'000'000;
  if (place_.number() < 1'000'000'000'000'000 || static_cast<double>(age_s) <= options_.lookback_s) return;
  gaps_.push_back(options_.name + ": the saved place is " + std::to_string(age_s) +
                  " s old, more than the server looks back; what lies between may be lost");
}

std::vector<std::string> LiveSource::notes() const {
  std::vector<std::string> notes = gaps_;
  intake_.append_notes(options_.name, notes);
  if (repeats_ > 0)
    notes.push_back(options_.name + ": " + std::to_string(repeats_) +
                    " records came again after a break and were passed over");
  return notes;
}

}  // namespace streamvec
