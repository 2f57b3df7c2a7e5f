#include "streamvec/ingest/intake.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "streamvec/core/clock.h"
#include "streamvec/core/durable_file.h"
#include "streamvec/core/json.h"
#include "streamvec/core/random.h"
#include "streamvec/ingest/chunker.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

// Short waits, so that a thread soon sees that it is to pause or to stop.
constexpr std::chrono::milliseconds kWait{50};
constexpr int64_t kDocumentsAtOnce = 16;
constexpr size_t kWordsAtOnce = 1'024;    // of a document whose new words have to be told first
constexpr size_t kWordsToAskFor = 4'096;  // a document of fewer does not wait for its words' slots

constexpr size_t kOthersMax = 1'000;  // places of sources that are not read now

// Throws as the library does for what is no whole number. (Its own conversion takes 1e300 for one.)
int64_t whole(const nlohmann::json& state, const char* name) {
  return state.at(name).get_ref<const nlohmann::json::number_integer_t&>();
}

Status no_state(const nlohmann::json::exception& e) {
  return error(Code::kDataLoss, "cursors.json does not say where the sources stood (", e.what(),
               "); it was written by another program or another version");
}

}  // namespace

struct Intake::Reader {
  Reader(std::unique_ptr<Source> its_source, int32_t number, const Options& options)
      : source(std::move(its_source)),
        index(number),
        remote(source->capabilities().remote),
        tokenizer(options.tokenizer),
        random(mix(options.seed, number)) {
    statistics.name = read_back(source->name()).get<std::string>();  // paths are any bytes
    keys = read_back(source->keys()).get<std::vector<std::string>>();
  }

  // A hash of the record's name. Never 0, which names no record.
  uint64_t record_of(const std::string& id) {
    record_sum.reset();
    record_sum.update(statistics.name);
    record_sum.update(std::string_view("\0", 1));
    record_sum.update(id);
    return std::max<uint64_t>(record_sum.value(), 1);
  }

  std::unique_ptr<Source> source;
  std::vector<std::string> keys;  // Source::keys()
  const int32_t index;
  const bool remote;
  std::thread thread;
  // Of its own thread.
  Tokenizer tokenizer;
  Tokens tokens;
  std::vector<Slot> slots, admitted;
  std::vector<uint64_t> stamps;  // of the parts in which a document is mapped
  std::vector<Document> documents;
  std::vector<std::shared_ptr<const ReplayItem>> items;
  Random random;
  Checksum record_sum;
  int32_t tries = 0;  // at a source that has a fault
  // Under the intake's mutex.
  SourceStatistics statistics;
  std::string restored;          // what restore() put it to
  std::string cursor;            // of the last document taken in since then; "" none
  std::string saved_cursor;      // of the last one in the checkpoint under way
  std::string committed_cursor;  // of the last one in a checkpoint that is safe
  std::string told_cursor;       // the last of these that the source has taken
  bool commit_due = false;
  bool gone = false;   // its thread has done with the source
  bool dated = false;  // a document of it had a date; under the vocabulary's lock
};

Intake::Intake(std::vector<std::unique_ptr<Source>> sources, DocumentFilter filter, const Options& options,
               const Sinks& sinks)
    : options_(options),
      sinks_(sinks),
      others_(std::make_unique<nlohmann::json>(nlohmann::json::array())),
      clock_(options.clock_seconds),
      filter_(std::move(filter)) {
  for (std::unique_ptr<Source>& source : sources)
    readers_.push_back(std::make_unique<Reader>(std::move(source), static_cast<int32_t>(readers_.size()), options));
  live_ = static_cast<int32_t>(readers_.size());
}

Intake::~Intake() {
  stop();
  join();
}

Status Intake::start() {
  Status made;
  {
    const std::lock_guard lock(mutex_);  // until all are made: stop() waits for those that are
    for (auto& reader : readers_) {
      try {
        reader->thread = std::thread([this, &reader = *reader] { run(reader); });
      } catch (const std::system_error& refused) {
        made = error(Code::kResourceExhausted, "no thread can be made to read ", reader->statistics.name, " (",
                     refused.what(), "); try fewer sources or --threads");
        break;
      }
      ++running_;
    }
  }
  if (made.ok()) return {};
  stop();
  join();
  return made;
}

void Intake::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return running_ == 0; });
}

void Intake::join() {
  for (auto& reader : readers_)
    if (reader->thread.joinable()) reader->thread.join();
}

void Intake::pause() {
  std::unique_lock lock(mutex_);
  ++pauses_;
  changed_.wait(lock, [&] { return running_ == 0; });
}

void Intake::resume() {
  const std::lock_guard lock(mutex_);
  --pauses_;
  changed_.notify_all();
}

bool Intake::over() const {
  const std::lock_guard lock(mutex_);
  return live_ == 0;
}

Status Intake::status() const {
  const std::lock_guard lock(mutex_);
  if (readers_.empty()) return {};
  for (const auto& reader : readers_)
    if (reader->statistics.state != "failed") return {};
  if (readers_.size() == 1) return Status(Code::kUnavailable, readers_.front()->statistics.last_error);
  return error(Code::kUnavailable, "all ", readers_.size(),
               " sources have failed; the first: ", readers_.front()->statistics.last_error);
}

// ---- a reader's thread

void Intake::run(Reader& reader) {
  while (await_turn(reader)) {
    tell_committed(reader);
    if (!await_turn(reader) || !read_some(reader)) break;
    for (Document& document : reader.documents)
      if (!await_turn(reader) || !take(reader, document)) break;
  }
  while (!leave(reader)) tell_committed(reader);
}

// False while there is something to tell its source.
bool Intake::leave(Reader& reader) {
  const std::lock_guard lock(mutex_);
  if (reader.commit_due) return false;
  reader.gone = true;
  --running_;
  changed_.notify_all();
  return true;
}

// Stands aside while the intake is paused. False when it is to stop.
bool Intake::await_turn(Reader&) {
  std::unique_lock lock(mutex_);
  if (pauses_ > 0 && !stopping_) {
    --running_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return pauses_ == 0 || stopping_; });
    ++running_;
  }
  return !stopping_;
}

// From here until step_back() a thread changes nothing that is saved, and nobody waits for it.
void Intake::step_aside() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void Intake::step_back() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pauses_ == 0 || stopping_; });
  ++running_;
}

// Fills reader.documents, with none if nothing came. False when the source has ended or failed for good.
bool Intake::read_some(Reader& reader) {
  reader.documents.clear();
  const Clock::time_point begin = Clock::now();
  if (reader.remote) step_aside();
  const Result<int64_t> count = reader.source->read(kDocumentsAtOnce, Deadline::after(kWait), reader.documents);
  if (reader.remote) step_back();
  {
    const std::lock_guard lock(mutex_);
    reader.statistics.reading_s += seconds_since(begin);
    reader.statistics.permission = reader.source->permission();
    if (count.ok()) reader.statistics.state = "reading";
  }
  if (count.ok()) {
    reader.tries = 0;
    if (*count > 0) return true;
    finish_reader(reader, "ended");
    return false;
  }
  if (count.status().code() == Code::kDeadlineExceeded) return true;
  note_failure(reader, count.status());
  if (count.status().code() == Code::kUnavailable) {
    // What came before the fault is good.
    if (reader.documents.empty()) retry_later(reader);
    return true;
  }
  for (Document& document : reader.documents)
    if (!await_turn(reader) || !take(reader, document)) return false;
  finish_reader(reader, "failed");
  return false;
}

void Intake::note_failure(Reader& reader, const Status& status) {
  const std::lock_guard lock(mutex_);
  ++reader.statistics.errors;
  reader.statistics.last_error = status.message();
  reader.statistics.state = "waiting";
}

// Waits twice as long after each failure, up to a limit, and never just as long as others do.
void Intake::retry_later(Reader& reader) {
  const int32_t doublings = std::min(reader.tries++, 20);
  const auto longest = std::min(options_.retry_first * (int64_t{1} << doublings), options_.retry_max);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        longest * (0.5 + 0.5 * static_cast<double>(reader.random.uniform())));
  step_aside();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return stopping_; });
  }
  step_back();
}

void Intake::finish_reader(Reader& reader, std::string_view state) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    reader.statistics.state = state;
    last = --live_ == 0;
  }
  if (last) sinks_.replay.finish();
}

// Makes one document part of everything. False when the intake is stopping before that was done.
bool Intake::take(Reader& reader, Document& document) {
  const Clock::time_point begin = Clock::now();
  if (document.deleted) {
    sinks_.replay.erase_record(reader.record_of(document.id));
  } else if (prepare(reader, document)) {
    map(reader, document);
  }
  const double working_s = seconds_since(begin);
  const bool inserted = insert(reader);
  const std::lock_guard lock(mutex_);
  SourceStatistics& statistics = reader.statistics;
  statistics.working_s += working_s;
  statistics.blocked_s += seconds_since(begin) - working_s;
  if (!inserted) return false;
  reader.cursor = std::move(document.cursor);
  ++statistics.documents;
  statistics.deletes += document.deleted;
  statistics.bytes += static_cast<int64_t>(document.text.size());
  if (document.time_s > 0) statistics.lag_s = std::max(0.0, unix_now() - static_cast<double>(document.time_s));
  ++totals_.documents;
  totals_.newest_time_s = std::max(totals_.newest_time_s, document.time_s);
  return true;
}

// Tokenises, and says whether the document is wanted.
bool Intake::prepare(Reader& reader, const Document& document) {
  reader.items.clear();
  const bool language_wanted = filter_.language_wanted(document.text);
  if (language_wanted) reader.tokenizer.tokenize(document.text, reader.tokens);
  const std::lock_guard lock(mutex_);
  if (!language_wanted) {
    ++totals_.other_languages;
    return false;
  }
  totals_.bytes_replaced += reader.tokens.bytes_replaced;
  totals_.words_dropped += reader.tokens.words_dropped;
  reader.statistics.tokens += static_cast<int64_t>(reader.tokens.words.size());
  totals_.tokens += static_cast<int64_t>(reader.tokens.words.size());
  return true;
}

// Counts the words and cuts the document into chunks.
void Intake::map(Reader& reader, const Document& document) {
  const Tokens& tokens = reader.tokens;
  reader.slots.resize(tokens.words.size());
  ReplayItem like;
  bool tables_due = false;
  const size_t part = sinks_.await_words ? kWordsAtOnce : std::max<size_t>(tokens.words.size(), 1);
  reader.stamps.clear();
  for (size_t begin = 0; begin == 0 || begin < tokens.words.size(); begin += part) {
    if (sinks_.await_words) sinks_.await_words();
    const std::lock_guard lock(vocabulary_mutex_);
    if (begin == 0 && filter_.seen_before(tokens.words)) {
      const std::lock_guard totals_lock(mutex_);
      ++totals_.duplicates;
      return;
    }
    if (begin == 0) like.t = clock_.at(document, sinks_.vocabulary.statistics().tokens, reader.dated);
    const size_t count = std::min(part, tokens.words.size() - begin);
    sinks_.vocabulary.map(std::span(tokens.words).subspan(begin, count), like.t,
                          std::span(reader.slots).subspan(begin, count), reader.admitted);
    if (!reader.admitted.empty()) sinks_.admitted(reader.admitted);
    reader.stamps.push_back(sinks_.vocabulary.stamp());
    tables_due = sinks_.tables.stage(sinks_.vocabulary) || tables_due;
  }
  look_again(reader, part);
  like.stamp = reader.stamps.back();
  if (tables_due) sinks_.tables.build();
  like.source = reader.index;
  like.time_s = document.time_s;
  if (!document.id.empty()) like.record = reader.record_of(document.id);
  cut_chunks(tokens, reader.slots, options_.chunk_tokens, like, reader.items);
}

// What has come about while the document was mapped in parts: what was mapped before a slot changed hands is not its
// new word's, and words that had no slot may have got one. In a cluster those are most of what a stream has to learn
// from its rare words, which replay would lack for good; to ask for few words is not worth the time that an answer
// takes.
void Intake::look_again(Reader& reader, size_t part) {
  const std::vector<std::string_view>& words = reader.tokens.words;
  const bool asks = sinks_.await_slots && words.size() >= kWordsToAskFor &&
                    std::find(reader.slots.begin(), reader.slots.end(), kNoSlot) != reader.slots.end();
  if (!asks && reader.stamps.size() < 2) return;
  if (asks) sinks_.await_slots();
  const std::lock_guard lock(vocabulary_mutex_);
  for (size_t i = 0; i < words.size(); ++i)
    if (reader.slots[i] == kNoSlot || !sinks_.vocabulary.valid(reader.slots[i], reader.stamps[i / part]))
      reader.slots[i] = asks ? sinks_.vocabulary.find_form(words[i]) : kNoSlot;
  reader.stamps.back() = sinks_.vocabulary.stamp();
}

// Waits as long as replay does not want more; a document that was begun is finished even while a pause is asked for.
bool Intake::insert(Reader& reader) {
  for (const auto& item : reader.items) {
    Status status;
    do {
      status = sinks_.replay.insert(item, Deadline::after(kWait));
      // A stop ends the run with a checkpoint: what was counted has to be in replay then, whatever the limiter says.
    } while (status.code() == Code::kDeadlineExceeded);
    if (!status.ok()) return false;
  }
  reader.items.clear();
  return true;
}

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

// ---- checkpoints

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
    reader->statistics.documents = whole(*found, "documents");
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
    totals_ = {whole(totals, "documents"),     whole(totals, "tokens"),     whole(totals, "bytes_replaced"),
               whole(totals, "words_dropped"), whole(totals, "duplicates"), whole(totals, "other_languages"),
               whole(totals, "newest_time_s")};
    clock_.go_to(state.at("clock"));
  } catch (const nlohmann::json::exception& e) {
    return no_state(e);
  }
  return {};
}

// ---- for reports

std::vector<std::string> Intake::notes() const {
  std::vector<std::string> lines;
  for (const auto& reader : readers_) {
    for (std::string& line : reader->source->notes()) lines.push_back(std::move(line));
    const SourceStatistics& statistics = reader->statistics;
    const std::string fault(without_name(statistics.last_error, statistics.name));
    if (reader->gone && reader->committed_cursor != reader->told_cursor)
      lines.push_back(statistics.name + " could not be told of the last checkpoint: " + fault +
                      "; its place is saved, and the same command goes on from there");
    else if (statistics.state == "failed")
      lines.push_back(statistics.name + " was given up: " + fault);
    else if (statistics.errors > 0)
      lines.push_back(statistics.name + " failed " + std::to_string(statistics.errors) +
                      " times and was tried again; the last time: " + fault);
  }
  return lines;
}

std::vector<SourceStatistics> Intake::statistics() const {
  const std::lock_guard lock(mutex_);
  std::vector<SourceStatistics> all;
  for (const auto& reader : readers_) all.push_back(reader->statistics);
  return all;
}

Intake::Totals Intake::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace streamvec
