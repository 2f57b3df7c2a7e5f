// What the live streams (Server-Sent Events, WebSocket) have in common: connect, read, lose it, come back.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/source/live/backoff.h"
#include "streamvec/source/live/place.h"
#include "streamvec/source/live/record_intake.h"
#include "streamvec/source/source.h"

namespace streamvec {

// An event's data or a message.
struct LiveRecord {
  std::string data;
  std::string token;  // the event's id
};

// One connection to the server, from the first packet to the last. Used by one thread.
class LiveLink {
 public:
  virtual ~LiveLink() = default;
  // Waits until something came and appends the records that it completed, which may be none. kDeadlineExceeded:
  // nothing came. kOutOfRange: the server says that the stream is over. Any other error ends the link.
  virtual Status receive(Deadline deadline, std::vector<LiveRecord>& out) = 0;
  // Whether the server has agreed to the stream.
  virtual bool established() const = 0;
  // The server's wish how long to stay away: after a loss in general, and this time. Zero when it has none.
  virtual std::chrono::milliseconds retry_first() const { return {}; }
  virtual std::chrono::milliseconds retry_after() const { return {}; }
  // Records that were too large or damaged, since the link was made.
  virtual int64_t bad() const = 0;
};

// Where the numbers of records stand in their JSON; pointers, "" for none.
struct Numbering {
  std::string number;             // "/time_us"
  std::vector<std::string> lane;  // "/meta/topic", "/meta/partition"
  bool number_is_token = false;   // a number is also what the server is given to go on after it
};

// A source over links. It reads from the network only while somebody reads from it: a sender that is too fast waits,
// as its packets are not taken. Links that fail are replaced after a wait (Backoff); a server that has once agreed to
// the stream is never given up. Memory: what one packet completes, and one record.
class LiveSource : public Source {
 public:
  struct Options {
    std::string name;
    double lookback_s = 0;
    Numbering numbering = {};
    Backoff::Options backoff = {};
  };
  LiveSource(Options options, RecordFormat format);

  // Errors other than kUnavailable only come before the server has agreed once.
  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  // Any cursor of its own is taken; what the server no longer has is lost and noted.
  Status seek(const std::string& cursor) override;
  Capabilities capabilities() const override;
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return bytes_handed_; }
  std::string name() const override { return options_.name; }
  std::vector<std::string> notes() const override;

 protected:
  // Begins to connect to where `place` is; never waits.
  virtual std::unique_ptr<LiveLink> link(const Place& place) = 0;

 private:
  Status advance(Deadline deadline);
  Status after_loss(const Status& status);
  void digest();
  RecordPlace place_of(const LiveRecord& record, const Document& document) const;
  void note_old_place();

  Options options_;
  RecordIntake intake_;
  Backoff backoff_;
  Place place_;
  std::unique_ptr<LiveLink> link_;
  std::vector<LiveRecord> records_;
  std::deque<Document> ready_;
  std::deque<int64_t> ready_bytes_;  // bytes read up to each of them
  Deadline::Clock::time_point retry_at_{};
  Status trouble_;  // why the last link ended, while there is none that works
  bool agreed_ = false, ended_ = false, place_checked_ = false, link_served_ = false;
  int64_t bytes_read_ = 0, bytes_handed_ = 0, documents_ = 0, repeats_ = 0;
  std::vector<std::string> gaps_;
};

}  // namespace streamvec
