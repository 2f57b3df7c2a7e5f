// Where the sources of an intake stand: what is saved, sought again, and told to them.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "streamvec/core/json.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/ingest/intake_reader.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

constexpr std::chrono::milliseconds kShareWait{50};  // short, so that what is safe is told meanwhile
constexpr size_t kOthersMax = 1'000;                 // places of sources that are not read now

Status no_state(const nlohmann::json::exception& e) {
  return error(Code::kDataLoss, "cursors.json does not say where the sources stood (", e.what(),
               "); it was written by another program or another version");
}

}  // namespace

void Intake::tell_committed(Reader& reader) {
  std::string cursor;
  bool aside = false;
  {
    const std::lock_guard lock(mutex_);
    if (!reader.commit_due) return;
    reader.commit_due = false;
    cursor = reader.committed_cursor;
    aside = reader.remote && !reader.gone;  // its own thread; one that is gone is aside for good
  }
  if (aside) step_aside();
  const Status status = reader.source->commit(cursor);
  if (aside) step_back();
  if (!status.ok()) return note_failed_commit(reader, status);
  const std::lock_guard lock(mutex_);
  reader.told_cursor = cursor;
}

// The next commit tells it again. Reading goes on by itself.
void Intake::note_failed_commit(Reader& reader, const Status& status) {
  const std::lock_guard lock(mutex_);
  ++reader.statistics.errors;
  reader.statistics.last_error = status.message();
}

void Intake::commit() {
  std::vector<Reader*> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto& reader : readers_) {
      reader->committed_cursor = reader->saved_cursor;
      reader->commit_due = reader->committed_cursor != reader->told_cursor;
      // One that is given up while others are read is told at the end: nobody waits for its broker before that.
      if (reader->gone && (stopping_ || !reader->remote)) gone.push_back(reader.get());
    }
  }
  for (Reader* const reader : gone) tell_committed(*reader);
}

nlohmann::json Intake::state() {
  const std::lock_guard lock(mutex_);
  nlohmann::json cursors = nlohmann::json::array();
  for (auto& reader : readers_) {
    reader->saved_cursor = reader->cursor;
    cursors.push_back({{"name", reader->keys.front()},
                       {"dated", reader->dated},
                       {"cursor", reader->cursor.empty() ? reader->restored : reader->source->saved(reader->cursor)},
                       {"documents", reader->statistics.documents}});
    if (reader->shared) cursors.back()["shared"] = true;
  }
  cursors.insert(cursors.end(), others_->begin(), others_->end());
  return {{"sources", cursors},
          {"clock", clock_.latest()},
          {"totals",
           {{"documents", totals_.documents},
            {"tokens", totals_.tokens},
            {"bytes_replaced", totals_.bytes_replaced},
            {"words_dropped", totals_.words_dropped},
            {"duplicates", totals_.duplicates},
            {"other_languages", totals_.other_languages},
            {"newest_time_s", totals_.newest_time_s}}}};
}

void Intake::withhold_shared() {
  const std::lock_guard lock(mutex_);
  for (auto& reader : readers_) {
    if (!reader->shared) continue;
    reader->withheld = true;
    reader->share.reset();
    ++reader->shares;
  }
}

void Intake::share(const std::string& name, const std::string& cursor, const Splits& splits) {
  const std::lock_guard lock(mutex_);
  const auto named = [&](const auto& reader) { return reader->shared && reader->keys.front() == name; };
  const auto found = std::find_if(readers_.begin(), readers_.end(), named);
  if (found == readers_.end()) return;
  Reader& reader = **found;
  reader.withheld = true;  // until its thread, which may stand in a read, has put the source there
  reader.share = {cursor, splits};
  ++reader.shares;
  changed_.notify_all();
}

bool Intake::is_withheld(const Reader& reader) const {
  const std::lock_guard lock(mutex_);
  return reader.withheld;
}

// Puts a shared source to what it is to read. False while that is not known, or was changed meanwhile: look again.
Result<bool> Intake::await_share(Reader& reader) {
  std::optional<Reader::Share> share;
  int64_t shares = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!reader.withheld) return true;
    share = reader.share;
    shares = reader.shares;
  }
  step_aside();
  Status status;
  if (share) {
    reader.source->read_splits(share->splits);
    status = reader.source->seek(share->cursor);
  } else {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kShareWait, [&] { return stopping_ || reader.share || reader.commit_due; });
  }
  step_back();
  STREAMVEC_RETURN_IF_ERROR(status);
  const std::lock_guard lock(mutex_);
  if (!share || reader.shares != shares) return false;
  reader.share.reset();
  reader.withheld = false;
  reader.cursor = reader.restored = share->cursor;
  return true;
}

// Throws as the library does for what is no list of places.
Status Intake::seek_places(const nlohmann::json& places) {
  std::set<const nlohmann::json*> taken;  // sources that differ by their passwords alone have one name
  for (auto& reader : readers_) {
    const auto place_of = [&](const std::string& key) {
      return std::find_if(places.begin(), places.end(), [&](const nlohmann::json& place) {
        return !taken.contains(&place) && presentable(place.at("name").get<std::string>()) == key;
      });
    };
    auto found = places.end();
    for (const std::string& key : reader->keys)
      if (found == places.end()) found = place_of(key);
    if (found == places.end()) continue;
    taken.insert(&*found);
    if (!reader->source->capabilities().replayable) continue;
    const Status status = reader->source->seek(found->at("cursor").get<std::string>());
    if (!status.ok())
      return error(status.code(), reader->statistics.name, " cannot go on where it was: ", status.message());
    reader->restored = found->at("cursor").get<std::string>();
    reader->statistics.documents = whole_number(*found, "documents");
    reader->dated = found->value("dated", false);
  }
  for (const nlohmann::json& place : places)
    if (options_.keeps_others && !taken.contains(&place) && others_->size() < kOthersMax) {
      others_->push_back(place);
      others_->back()["other"] = true;
    }
  return {};
}

Status Intake::restore_places(const nlohmann::json& state) {
  try {
    return seek_places(state.at("sources"));
  } catch (const nlohmann::json::exception& e) {
    return no_state(e);
  }
}

Status Intake::restore(const nlohmann::json& state) {
  try {
    STREAMVEC_RETURN_IF_ERROR(seek_places(state.at("sources")));
    const auto& totals = state.at("totals");
    totals_ = {whole_number(totals, "documents"),      whole_number(totals, "tokens"),
               whole_number(totals, "bytes_replaced"), whole_number(totals, "words_dropped"),
               whole_number(totals, "duplicates"),     whole_number(totals, "other_languages"),
               whole_number(totals, "newest_time_s")};
    clock_.go_to(state.at("clock"));
  } catch (const nlohmann::json::exception& e) {
    return no_state(e);
  }
  return {};
}

}  // namespace streamvec
