// Where text comes from. A source hands out documents in batches and remembers where it stands.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/source/splits.h"

namespace streamvec {

// A piece of text that is cleaned and trained on as a whole. Long texts come as several pieces, cut between words.
struct Document {
  std::string text;
  std::string cursor;    // opaque; seek(cursor) goes on after this document
  std::string id = {};   // names the record at its source, for deletes; "" where records have no names
  int64_t time_s = 0;    // when it was written, seconds since 1970; 0 unknown
  bool deleted = false;  // the record `id` was withdrawn; there is no text
};

// What a source can do.
struct Capabilities {
  bool endless = false;    // never ends by itself: no counting pass before training, no epochs
  bool replayable = true;  // seek() works: files yes, stdin no
  bool pausable = true;    // waits while nobody reads; otherwise what comes meanwhile may be lost
  double lookback_s = std::numeric_limits<double>::infinity();  // how old a cursor may be and still find its place
  // seek() to a place ahead costs at most what reading up to there would, and notes() lack nothing by it.
  bool skips = false;
  // read() and commit() may stand for as long as another machine likes. saved() is the cursor itself and may be asked
  // for meanwhile, by another thread.
  bool remote = false;
  bool shared = false;  // several readers may have a part each, by read_splits(); its cursors are SharedCursors
};

// Not thread-safe: callers share one behind a lock.
class Source {
 public:
  virtual ~Source() = default;
  // Appends 1..count_max documents to `out` and returns how many; 0 when the stream has ended. After an error, `out`
  // may hold documents read before it. A source of which nothing at all was read at its end gives kInvalidArgument.
  // kDeadlineExceeded: nothing came in time. kUnavailable: the other side has a fault that may pass; reading again
  // later goes on without loss. Any other error is final.
  virtual Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) = 0;
  // Goes on after the document that carried `cursor`; "" means the beginning.
  // kFailedPrecondition when the source cannot be read twice, or is no longer what the cursor was made for;
  // kInvalidArgument for a cursor that is none of its own. After an error, seek again before reading.
  virtual Status seek(const std::string& cursor) = 0;
  // What to save so that seek() goes on after the document that carried `cursor`. Most save the cursor itself; one
  // that has much to remember (a crawler's pages seen) hands out short cursors and puts it all in here.
  virtual std::string saved(const std::string& cursor) const { return cursor; }
  // Everything up to the document that carried `cursor` is safe on a disk: a broker may be told.
  virtual Status commit(const std::string& /*cursor*/) { return {}; }
  virtual Capabilities capabilities() const = 0;
  virtual int64_t bytes_total() const = 0;  // of text as stored (compressed size if compressed), -1 when unknown
  // As stored, since the beginning: for progress. The same after seek(cursor) as it was after that document.
  virtual int64_t bytes_read() const = 0;
  virtual std::string name() const = 0;  // for messages: path or "-"
  // Of files a sum of their paths and sizes: it is another when some have come or grown. "" where that is not known.
  virtual std::string contents() const { return ""; }
  // By which its place is found again in a stream's next run: it is saved under the first, and sought by each in turn.
  // Sources of one key are told apart by their order.
  virtual std::vector<std::string> keys() const { return {name()}; }
  // It is part of a stream, which is read once, in many runs: from then on what is read already is known however the
  // source may be put together next time. `alone`: no other process has a part of the stream. Before seek() and read().
  virtual void join_stream(bool /*alone*/) {}
  // Of one that is shared: the splits that are this reader's from now on; before that all are. Before seek(), which
  // puts each where its last reader stood.
  virtual void read_splits(Splits /*splits*/) {}
  // What the other side allows to be read, in words ("robots.txt allows it"); "" where nobody has to allow it.
  virtual std::string permission() const { return ""; }
  // What was met on the way and is no error, a line each ("a.txt is empty").
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace streamvec
