// The replay memory: chunks come in, and go out to training as often as they are worth it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/replay/item.h"
#include "streamvec/replay/rate_limiter.h"
#include "streamvec/replay/record_index.h"
#include "streamvec/replay/union.h"
#include "streamvec/replay/weights.h"

namespace streamvec {

enum class ReplaySelector {
  kInOrderOnce,  // each chunk once, in the order of arrival; it leaves then. The limiter's size_min and ratio are 1
  kUniform,      // any chunk held is as likely as any other
  kPrioritised,  // in proportion to priority^alpha
};

struct ReplayOptions {
  ReplaySelector selector = ReplaySelector::kUniform;
  int64_t capacity = 1 << 16;              // chunks
  int64_t bytes_max = int64_t{256} << 20;  // of chunks; one larger chunk is held all the same
  // At least this share of the samples is the oldest chunk not sampled yet, while there is one; no less than
  // 1 / samples_per_insert, so that each chunk is seen. 0: chunks may leave unseen (counted).
  double in_order_share = 0.25;
  double alpha = 0.6;                         // of kPrioritised: see ReplayWeights
  double beta = 0.4;                          // likewise; 0: importance is 1
  double half_life = ForwardDecay::kForever;  // of a chunk's chance to be drawn, on the clock of ReplayItem::t
  RateLimiter::Options limiter = {};
  uint64_t seed = 1;
};

struct ReplaySample {
  uint64_t key = 0;                        // for update_priorities(); never used again for another chunk
  std::shared_ptr<const ReplayItem> item;  // stays whole when the table drops it
  float importance = 1;                    // what its steps are to be multiplied by; 0 < importance <= 1
  uint32_t times_sampled = 0;              // before this time: 0 is the first
};

// All of a table at one moment; the chunks are shared with it. table_file.h makes bytes of it.
struct ReplaySnapshot {
  struct Held {
    uint64_t key = 0;
    std::shared_ptr<const ReplayItem> item;
    float weight = 1;
    uint32_t times_sampled = 0;
  };
  std::vector<Held> held;  // oldest first
  uint64_t next_key = 0;
  RateLimiter::State limiter;
  ReplayWeights::State weights;
  double in_order_credit = 0;
  int64_t bytes_wanted = 0;
  uint64_t seed = 0, draws = 0;
  int64_t evicted = 0, evicted_unsampled = 0, erased = 0, priorities_refused = 0;
};

// Thread-safe. A lock is held for the length of a batch; nothing is freed under it. One seed and one order of calls
// give one result, bit for bit, across restarts too.
//
// When it is full the oldest chunk leaves. One that was not sampled yet never does (unless in_order_share is 0):
// insert() waits, and sampling, which could wait for an insert, goes on with the oldest meanwhile. So a table loses
// nothing but by erase_record().
class ReplayTable {
 public:
  struct Statistics {  // counts since the stream began, restarts included
    int64_t inserted = 0, sampled = 0;
    int64_t evicted = 0;            // left for lack of room; of these ...
    int64_t evicted_unsampled = 0;  // ... never sampled
    int64_t erased = 0;             // withdrawn by erase_record()
    int64_t priorities_refused = 0;
    // At this moment:
    int64_t size = 0, unsampled = 0, bytes = 0;
    double owed = 0;  // samples that the limiter would allow
  };

  // kInvalidArgument for options that make no sense together, kResourceExhausted for more places than fit, with what
  // to try.
  static Result<std::unique_ptr<ReplayTable>> create(const ReplayOptions& options);

  // Waits while sampling is too far behind or there is no room. On an error nothing was inserted: kDeadlineExceeded;
  // kCancelled after close(); kFailedPrecondition after finish(). Bytes are counted as if the chunk's vectors had no
  // slack: shrink them. REQUIRES: item is not null, item->t finite.
  Status insert(std::shared_ptr<const ReplayItem> item, Deadline deadline);

  // Appends 1..count_max samples to `out` and returns how many; waits while there are none to be had. 0 after finish(),
  // when every chunk was sampled and no more samples are owed. A chunk may come several times. On kDeadlineExceeded,
  // and kCancelled after close(), none was taken. REQUIRES: count_max > 0.
  Result<int64_t> sample(int64_t count_max, Deadline deadline, std::vector<ReplaySample>& out);

  // The gradient norm or the loss of each chunk when it was trained on. Chunks that have left are passed over;
  // negative or infinite values, and those that are no number, are refused and counted.
  // REQUIRES: keys.size() == priorities.size().
  void update_priorities(std::span<const uint64_t> keys, std::span<const float> priorities);

  // The record was withdrawn: takes out its chunks and returns how many. Samples handed out before keep theirs. Only
  // chunks inserted so far are meant, as a record may be written anew under the same id: deletes have to come in the
  // order of their source. 0 names no record.
  int64_t erase_record(uint64_t record);

  // Of a table that is one of several, whose draws together train one model: what the others have to know of it, and
  // what is known of all (ReplayUnion).
  ReplayShare share() const;
  void set_reference(std::optional<float> weight);

  void finish();  // no more inserts will come: sample() goes on to the end
  void close();   // every wait ends with kCancelled, now and later

  int64_t size() const;
  Statistics statistics() const;

  // Takes a moment under the lock: 20 ms for 10^6 chunks. Samples that are being trained on count as done.
  ReplaySnapshot snapshot() const;
  // Goes on from a snapshot. Other options than it was taken with are fine: chunks that are too many leave in their
  // turn, priorities are forgotten by other selectors, and with kInOrderOnce chunks sampled before are left out.
  // kFailedPrecondition when something was inserted already.
  Status restore(ReplaySnapshot snapshot);

 private:
  using Lock = RateLimiter::Lock;
  using Items = std::vector<std::shared_ptr<const ReplayItem>>;
  struct Entry {
    std::shared_ptr<const ReplayItem> item;  // null: erased
    uint64_t previous_of_record = kNoKey;
    uint32_t times_sampled = 0;
  };
  static constexpr uint64_t kNoKey = ~uint64_t{0};
  static constexpr size_t kDrawsAhead = 32;

  explicit ReplayTable(const ReplayOptions& options);
  size_t place_of(uint64_t key) const { return key & (entries_.size() - 1); }
  Entry& entry(uint64_t key) { return entries_[place_of(key)]; }
  const Entry& entry(uint64_t key) const { return entries_[place_of(key)]; }
  bool holds(uint64_t key) const { return key >= head_ && key < next_ && entry(key).item != nullptr; }
  bool once() const { return options_.selector == ReplaySelector::kInOrderOnce; }

  bool lacks_room(int64_t bytes) const;
  bool make_room(int64_t bytes, Items& gone);
  int64_t pressing() const;
  void put(uint64_t key, std::shared_ptr<const ReplayItem> item, uint32_t times_sampled);
  std::shared_ptr<const ReplayItem> take_out(uint64_t key);
  void skip_empty();
  void find_some(std::span<size_t> places);
  bool in_order_next();
  static void prefetch_owners(const Entry& entry);
  void draw_some(size_t count, std::vector<ReplaySample>& out);
  ReplaySample draw_in_order();
  ReplaySample draw_at(size_t place);
  void count_sample(Entry& entry);

  const ReplayOptions options_;
  const double in_order_share_;
  mutable std::mutex mutex_;
  RateLimiter limiter_;
  ReplayWeights weights_;
  std::vector<Entry> entries_;    // a ring: key k at k modulo its size, a power of two
  uint64_t head_ = 0, next_ = 0;  // the oldest key held, the next to be given
  uint64_t in_order_ = 0;         // no key before it is unsampled
  double in_order_credit_ = 1;    // samples in order that are due
  int64_t size_ = 0, unsampled_ = 0, bytes_ = 0;
  int64_t bytes_wanted_ = 0;  // of an insert that found no room; 0: none
  uint64_t seed_, draws_ = 0;
  RecordIndex last_of_record_;  // the newest key of each record with a name
  int64_t evicted_ = 0, evicted_unsampled_ = 0, erased_ = 0, priorities_refused_ = 0;
};

}  // namespace streamvec
