// What happens, told to everybody who listens (server-sent events) and remembered for those who come later.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "streamvec/serve/http_server.h"

namespace streamvec {

// Immutable.
struct BoardEvent {
  int64_t id = 0;
  std::string kind;
  std::string json;                         // on one line
  std::shared_ptr<const std::string> text;  // the same as a server-sent event
};

// Called with the board's lock held: must not wait. False when the reader is gone; it is told nothing more then.
class EventReader {
 public:
  virtual ~EventReader() = default;
  virtual bool tell(const std::shared_ptr<const BoardEvent>& event) = 0;
  virtual bool keep_alive() = 0;
  virtual bool is_there() const = 0;
  virtual void end() = 0;  // nothing more will be told
};
std::shared_ptr<EventReader> sse_reader(std::shared_ptr<EventSink> sink);
// One that may be told things until `expires_s` (unix seconds; 0: for good). It is there no longer then.
std::shared_ptr<EventReader> reader_until(int64_t expires_s, std::shared_ptr<EventReader> reader);

// Thread-safe.
class EventBoard {
 public:
  using Json = nlohmann::ordered_json;
  struct Options {
    int64_t remembered_max = 1'000;  // events of a kind that is remembered; at twice that every second old one goes
    int64_t readers_max = 256;
    std::chrono::seconds alive_every{10};  // a sign of life, so that both sides notice when the other has gone
  };
  EventBoard() : EventBoard(Options()) {}
  explicit EventBoard(const Options& options) : options_(options) {}

  // To every reader that wants `kind`. The last of each kind is given to readers when they come, oldest first;
  // `remembered` kinds are kept for history(), thinned with age.
  void tell(const std::string& kind, const Json& data, bool remembered = false);
  // The same for what happened before this process began, in its order: readers that are here are not told, and those
  // that come only if it may be the last of its kind.
  void recall(const std::string& kind, const Json& data, bool is_last);
  // A reader of the kinds named; of all but `map` when none is. False: there are too many readers.
  bool add_reader(std::shared_ptr<EventReader> reader, std::vector<std::string> kinds);
  // Readers that have gone, or whose time is over, are left. REQUIRES: called now and then.
  void keep_alive(std::chrono::steady_clock::time_point now);

  // What was told of a kind, oldest first, at most `count` of it, evenly spread.
  Json history(const std::string& kind, int64_t count) const;
  Json last(const std::string& kind) const;      // null when there was none
  int64_t readers();                             // those that have gone left out
  static bool is_kind(const std::string& kind);  // one that is told of

 private:
  struct Reader {
    std::shared_ptr<EventReader> reader;
    std::vector<std::string> kinds;
  };
  static bool wants(const Reader& reader, const std::string& kind);
  template <typename Gone>
  void leave(const Gone& gone);  // readers that `gone` says yes of
  void leave_gone();
  // REQUIRES: the lock is held.
  std::shared_ptr<const BoardEvent> put(const std::string& kind, const Json& data, std::string json, bool remembered);
  void remember(const std::string& kind, const Json& data);

  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Reader> readers_;
  std::map<std::string, std::shared_ptr<const BoardEvent>> last_event_;
  std::map<std::string, std::vector<Json>> remembered_;
  std::map<std::string, Json> last_;
  int64_t next_id_ = 1;
  std::chrono::steady_clock::time_point alive_;
};

}  // namespace streamvec
