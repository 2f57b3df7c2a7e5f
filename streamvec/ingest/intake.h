// From sources to replay: every source is read by a thread of its own, its documents are tokenised, counted and cut
// into chunks. A source that fails does not touch the others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/ingest/document_filter.h"
#include "streamvec/ingest/stream_clock.h"
#include "streamvec/replay/table.h"
#include "streamvec/source/source.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/sampling_buffer.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// How one source fares.
struct SourceStatistics {
  std::string name;
  std::string state = "reading";  // reading, waiting (its other side has a fault), ended, failed
  int64_t documents = 0, bytes = 0, tokens = 0;
  int64_t deletes = 0;
  int64_t errors = 0;
  std::string last_error;
  std::string permission;  // Source::permission()
  double lag_s = 0;        // from when its newest document was written until it was read; 0 unknown
  double reading_s = 0;    // spent waiting for the source ...
  double working_s = 0;    // ... tokenising and counting ...
  double blocked_s = 0;    // ... and waiting for replay to take the chunks
};

class Intake {
 public:
  struct Options {
    TokenizerOptions tokenizer;
    int64_t chunk_tokens = 256;
    bool clock_seconds = false;                                     // half-lives are times; else tokens
    uint64_t seed = 1;                                              // of the waits' jitter
    std::chrono::milliseconds retry_first{500}, retry_max{30'000};  // between tries at a source that has a fault
    // state() also has where sources stood that are not among these now: they go on there when they come again.
    bool keeps_others = false;
    bool divided = false;  // shared sources wait until share() says what is theirs; else they read all
    // Who reads, where chunks of several nodes come into one replay: records of a source that is not shared are its
    // own, whatever others call theirs. "": nobody else's come there, or none has a source of the same name.
    std::string node;
  };
  // What the documents become part of. All is borrowed. `admitted` is called under the vocabulary's lock with the slots
  // whose rows must start anew, before any chunk that names them is in replay.
  struct Sinks {
    StreamVocabulary& vocabulary;
    SamplingTablesBuffer& tables;
    ReplayTable& replay;
    std::function<void(std::span<const Slot>)> admitted;
    // Called without a lock before some words of a document are mapped: waits as long as is good for them. Of clusters,
    // where words that are new have to be told first.
    std::function<void()> await_words = {};
    // Likewise, called when a document of many words is mapped and some have no slot: waits until those that may have
    // one have got it.
    std::function<void()> await_slots = {};
    // Of a replay that is on the way to that of others. A record was withdrawn: `item`, which tells them so, comes into
    // replay after this call, behind what was read before and ahead of what is read later.
    std::function<void(const std::shared_ptr<const ReplayItem>& item)> withdrawn = {};
  };
  struct Totals {
    int64_t documents = 0, tokens = 0, bytes_replaced = 0, words_dropped = 0;
    int64_t duplicates = 0, other_languages = 0;  // documents left out
    int64_t newest_time_s = 0;                    // when the latest document was written; 0: none has a date
  };

  // The sources must be where they are to go on.
  Intake(std::vector<std::unique_ptr<Source>> sources, DocumentFilter filter, const Options& options,
         const Sinks& sinks);
  ~Intake();

  // kResourceExhausted when threads cannot be made; none runs then.
  Status start();
  // Takes in no more than the document at hand of every source. Threads whose source is remote may still stand in its
  // read() then.
  void stop();
  // Returns when all threads are gone, as soon as the sources let them. REQUIRES: stopped.
  void join();
  // Returns when every thread stands between two documents, or in a remote source, which may take its time; none takes
  // anything in until resume(). In between, vocabulary, tables, filter, replay and cursors() are one state: each
  // document is in all of them, or in none.
  void pause();
  void resume();

  // Every source has ended or failed. Replay has been told then (finish()).
  bool over() const;
  // kOk unless all sources have failed; the first one's error then.
  Status status() const;

  // What came to attention on the way, a line each. REQUIRES: joined.
  std::vector<std::string> notes() const;

  // What state() returned when the checkpoint was taken that is now safe: its sources are told soon, those that are not
  // read any more at once, and all once the threads are joined.
  void commit();
  // Where the sources stand and what else must go on after a restart. REQUIRES: paused, not started yet, or stopped.
  nlohmann::json state();
  // Puts the sources where `state` says. Sources are matched by name; one that is not in it begins at its beginning,
  // and one that cannot go on where it was is left there, with a note. REQUIRES: not started.
  Status restore(const nlohmann::json& state);
  // The same of their places alone: nothing else of what was read then is in what is learned from now on.
  Status restore_places(const nlohmann::json& state);
  // Of sources that are shared with other readers (Capabilities::shared), where others come and go. They take in
  // nothing more, so that state() is where the next reader of each split goes on. REQUIRES: as state().
  void withhold_shared();
  // The shared source of this name goes on with these splits, from `cursor`. Thread-safe.
  void share(const std::string& name, const std::string& cursor, const Splits& splits);
  std::string filter_state() const { return filter_.save(); }  // REQUIRES: as state()
  Status restore_filter(std::string_view bytes) { return filter_.restore(bytes); }

  // Thread-safe.
  std::vector<SourceStatistics> statistics() const;
  Totals totals() const;
  // Locks the vocabulary: for reading it from outside.
  std::unique_lock<std::mutex> lock_vocabulary() { return std::unique_lock(vocabulary_mutex_); }

 private:
  struct Reader;

  void run(Reader& reader);
  bool read_some(Reader& reader);
  void note_failure(Reader& reader, const Status& status);
  void retry_later(Reader& reader);
  bool take(Reader& reader, Document& document);
  void withdraw(Reader& reader, uint64_t record);
  bool prepare(Reader& reader, const Document& document);
  void look_again(Reader& reader, size_t part);
  void map(Reader& reader, const Document& document);
  bool insert(Reader& reader);
  bool await_turn(Reader& reader);
  Result<bool> await_share(Reader& reader);
  bool is_withheld(const Reader& reader) const;
  bool take_all(Reader& reader);
  void step_aside();
  void step_back();
  bool leave(Reader& reader);
  void tell_committed(Reader& reader);
  void note_failed_commit(Reader& reader, const Status& status);
  void finish_reader(Reader& reader, std::string_view state);
  Status seek_places(const nlohmann::json& places);

  const Options options_;
  Sinks sinks_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<nlohmann::json> others_;  // places of sources that are not read now, as state() has them

  mutable std::mutex mutex_;  // of all that follows, and of the readers' statistics and cursors
  std::condition_variable changed_;
  bool stopping_ = false;
  int32_t pauses_ = 0;   // asked for
  int32_t running_ = 0;  // threads that are neither between two documents nor aside
  int32_t live_ = 0;     // readers that have neither ended nor failed
  Totals totals_;

  std::mutex vocabulary_mutex_;  // of vocabulary, clock and filter
  StreamClock clock_;
  DocumentFilter filter_;
};

}  // namespace streamvec
