#include "streamvec/ingest/intake.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>

#include "streamvec/core/clock.h"
#include "streamvec/ingest/chunker.h"
#include "streamvec/ingest/intake_reader.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

// Short waits, so that a thread soon sees that it is to pause or to stop.
constexpr std::chrono::milliseconds kWait{50};
constexpr int64_t kDocumentsAtOnce = 16;
constexpr size_t kWordsAtOnce = 1'024;    // of a document whose new words have to be told first
constexpr size_t kWordsToAskFor = 4'096;  // a document of fewer does not wait for its words' slots

}  // namespace

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

void Intake::run(Reader& reader) {
  while (await_turn(reader)) {
    tell_committed(reader);
    if (!await_turn(reader)) break;
    const Result<bool> may_read = await_share(reader);
    if (!may_read.ok()) {
      note_failure(reader, may_read.status());
      finish_reader(reader, "failed");
      break;
    }
    if (!*may_read) continue;
    if (!read_some(reader)) break;
    take_all(reader);
  }
  while (!leave(reader)) tell_committed(reader);
}

// What was read and is another reader's by now is left to that one. False when the intake is stopping.
bool Intake::take_all(Reader& reader) {
  for (Document& document : reader.documents) {
    if (!await_turn(reader)) return false;
    if (is_withheld(reader)) return true;
    if (!take(reader, document)) return false;
  }
  return true;
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
  if (!take_all(reader)) return false;
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
    withdraw(reader, reader.record_of(document.id));
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

void Intake::withdraw(Reader& reader, uint64_t record) {
  sinks_.replay.erase_record(record);
  if (!sinks_.withdrawn) return;
  auto item = std::make_shared<ReplayItem>();
  item->record = record;
  reader.items.push_back(std::move(item));
  sinks_.withdrawn(reader.items.back());
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
