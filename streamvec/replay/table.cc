#include "streamvec/replay/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "streamvec/core/memory.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr double kWeightBytes = 20;  // of a place, in the trees

bool is_share(double value) {
  return value >= 0 && value <= 1;
}

Status check(const ReplayOptions& options) {
  STREAMVEC_RETURN_IF_ERROR(RateLimiter::check(options.limiter));
  if (options.capacity < 1 || options.capacity > int64_t{1} << 31 || options.bytes_max < 1)
    return error(Code::kInvalidArgument, "replay: capacity ", options.capacity, " chunks and ", options.bytes_max,
                 " bytes; both must be at least 1, and chunks at most 2^31");
  if (!is_share(options.in_order_share) || !is_share(options.alpha) || !is_share(options.beta))
    return error(Code::kInvalidArgument, "replay: in_order_share ", options.in_order_share, ", alpha ", options.alpha,
                 " and beta ", options.beta, " must be from 0 to 1");
  if (!(options.half_life > 0))
    return error(Code::kInvalidArgument, "replay: half-life ", options.half_life, "; it must be above 0");
  if (options.selector == ReplaySelector::kInOrderOnce) return {};
  if (options.limiter.size_min > options.capacity)
    return error(Code::kInvalidArgument, "replay: sampling waits for ", options.limiter.size_min,
                 " chunks, but there is room for ", options.capacity);
  if (options.in_order_share > 0 && options.limiter.samples_per_insert < 1)
    return error(Code::kInvalidArgument, "replay: with ", options.limiter.samples_per_insert,
                 " samples per insert not every chunk can be seen; try --replay-ratio 1 or more, or --replay once");
  return {};
}

RateLimiter::Options limiter_options(const ReplayOptions& options) {
  if (options.selector != ReplaySelector::kInOrderOnce) return options.limiter;
  return {.samples_per_insert = 1, .size_min = 1, .inserts_ahead_max = options.limiter.inserts_ahead_max};
}

double share_in_order(const ReplayOptions& options) {
  if (options.selector == ReplaySelector::kInOrderOnce) return 1;
  if (options.in_order_share == 0) return 0;
  return std::max(options.in_order_share, 1 / options.limiter.samples_per_insert);
}

ReplayWeights::Options weight_options(const ReplayOptions& options) {
  return {.prioritised = options.selector == ReplaySelector::kPrioritised,
          .alpha = options.alpha,
          .beta = options.beta,
          .half_life = options.half_life};
}

}  // namespace

Result<std::unique_ptr<ReplayTable>> ReplayTable::create(const ReplayOptions& options) {
  STREAMVEC_RETURN_IF_ERROR(check(options));
  const double places = static_cast<double>(std::bit_ceil(static_cast<size_t>(options.capacity)));
  STREAMVEC_RETURN_IF_ERROR(check_memory("a replay memory of " + std::to_string(options.capacity) + " chunks",
                                         places * (sizeof(Entry) + kWeightBytes), "a smaller --replay-chunks"));
  return std::unique_ptr<ReplayTable>(new ReplayTable(options));
}

ReplayTable::ReplayTable(const ReplayOptions& options)
    : options_(options),
      in_order_share_(share_in_order(options)),
      limiter_(limiter_options(options)),
      weights_(weight_options(options), std::bit_ceil(static_cast<size_t>(options.capacity))),
      entries_(std::bit_ceil(static_cast<size_t>(options.capacity))),
      seed_(options.seed) {}

// The count of a chunk's owners stands right before it (std::make_shared).
void ReplayTable::prefetch_owners(const Entry& entry) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(entry.item.get()) - 16), 1);
}

// An erased chunk takes up its place in the ring until it is the oldest.
bool ReplayTable::lacks_room(int64_t bytes) const {
  return size_ > 0 &&
         (size_ >= options_.capacity || bytes_ + bytes > options_.bytes_max || next_ - head_ == entries_.size());
}

bool ReplayTable::make_room(int64_t bytes, Items& gone) {
  while (lacks_room(bytes)) {
    const bool unsampled = entry(head_).times_sampled == 0;
    if (unsampled && in_order_share_ > 0) {
      if (bytes > bytes_wanted_) limiter_.wake_samplers();
      bytes_wanted_ = std::max(bytes_wanted_, bytes);
      return false;
    }
    ++evicted_;
    evicted_unsampled_ += unsampled;
    gone.push_back(take_out(head_));
    limiter_.evicted();
    skip_empty();
  }
  return true;
}

Status ReplayTable::insert(std::shared_ptr<const ReplayItem> item, Deadline deadline) {
  STREAMVEC_CHECK(item != nullptr && std::isfinite(item->t));
  const int64_t bytes = item->bytes();
  Items gone;  // freed after the lock
  Lock lock(mutex_);
  STREAMVEC_RETURN_IF_ERROR(limiter_.await_insert(lock, deadline, [&] { return make_room(bytes, gone); }));
  bytes_wanted_ = 0;
  weights_.advance(item->t);
  weights_.add(place_of(next_), item->t);
  put(next_++, std::move(item), 0);
  limiter_.inserted();
  limiter_.wake();
  return {};
}

void ReplayTable::put(uint64_t key, std::shared_ptr<const ReplayItem> item, uint32_t times_sampled) {
  ++size_;
  unsampled_ += times_sampled == 0;
  bytes_ += item->bytes();
  Entry& entry = this->entry(key);
  entry = {std::move(item), kNoKey, times_sampled};
  if (entry.item->record == 0) return;
  bool is_new = false;
  uint64_t& last = last_of_record_.add(entry.item->record, key, is_new);
  if (!is_new) entry.previous_of_record = std::exchange(last, key);
}

// REQUIRES: of its record, the chunk is the oldest held, or all go.
std::shared_ptr<const ReplayItem> ReplayTable::take_out(uint64_t key) {
  Entry& entry = this->entry(key);
  --size_;
  unsampled_ -= entry.times_sampled == 0;
  bytes_ -= entry.item->bytes();
  weights_.remove(place_of(key));
  if (entry.item->record != 0) {
    const uint64_t* last = last_of_record_.find(entry.item->record);
    if (last != nullptr && *last == key) last_of_record_.erase(entry.item->record);
  }
  return std::exchange(entry.item, nullptr);
}

void ReplayTable::skip_empty() {
  while (head_ < next_ && entry(head_).item == nullptr) ++head_;
}

int64_t ReplayTable::erase_record(uint64_t record) {
  Items gone;
  Lock lock(mutex_);
  const uint64_t* last = last_of_record_.find(record);
  if (record == 0 || last == nullptr) return 0;
  for (uint64_t key = *last; key != kNoKey && holds(key);) {
    const Entry& entry = this->entry(key);
    const uint64_t previous = entry.previous_of_record;
    const uint32_t times_sampled = entry.times_sampled;
    gone.push_back(take_out(key));
    limiter_.erased(times_sampled);
    key = previous;
  }
  skip_empty();
  limiter_.wake();
  erased_ += static_cast<int64_t>(gone.size());
  return static_cast<int64_t>(gone.size());
}

// Samples that cannot wait for the limiter: at the end every chunk still unseen, else the oldest if it is in the way.
int64_t ReplayTable::pressing() const {
  if (unsampled_ == 0) return 0;
  if (limiter_.finished()) return unsampled_;
  return bytes_wanted_ > 0 && lacks_room(bytes_wanted_) && entry(head_).times_sampled == 0 ? 1 : 0;
}

Result<int64_t> ReplayTable::sample(int64_t count_max, Deadline deadline, std::vector<ReplaySample>& out) {
  STREAMVEC_CHECK(count_max > 0);
  Lock lock(mutex_);
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t count,
                             limiter_.await_sample(count_max, lock, deadline, [&] { return pressing(); }));
  for (auto left = static_cast<size_t>(count); left > 0;) {
    const size_t some = std::min(left, kDrawsAhead);
    draw_some(some, out);
    left -= some;
  }
  limiter_.wake();
  return count;
}

// Every draw leads to another corner of the memory: they are found first and fetched together. No weight changes here,
// so that this is the same as one after the other.
void ReplayTable::draw_some(size_t count, std::vector<ReplaySample>& out) {
  std::array<size_t, kDrawsAhead> places{};
  if (!once()) find_some({places.data(), count});
  for (size_t i = 0; i < count; ++i) {
    out.push_back(in_order_next() ? draw_in_order() : draw_at(places[i]));
    limiter_.sampled(1);
  }
}

void ReplayTable::find_some(std::span<size_t> places) {
  std::array<double, kDrawsAhead> numbers;
  for (size_t i = 0; i < places.size(); ++i) numbers[i] = static_cast<double>(mix(seed_, draws_++) >> 11) * 0x1p-53;
  weights_.draw({numbers.data(), places.size()}, places);
  for (const size_t place : places) __builtin_prefetch(&entries_[place], 1);
  for (const size_t place : places) prefetch_owners(entries_[place]);
}

bool ReplayTable::in_order_next() {
  in_order_credit_ = std::min(in_order_credit_ + in_order_share_, 2.0);
  if (unsampled_ == 0) return false;
  if (!once() && in_order_credit_ < 1 && pressing() == 0 && limiter_.owed() >= 1) return false;
  in_order_credit_ = std::max(in_order_credit_ - 1, 0.0);
  return true;
}

void ReplayTable::count_sample(Entry& entry) {
  unsampled_ -= entry.times_sampled == 0;
  entry.times_sampled += entry.times_sampled != std::numeric_limits<uint32_t>::max();
}

ReplaySample ReplayTable::draw_in_order() {
  in_order_ = std::max(in_order_, head_);
  while (entry(in_order_).item == nullptr || entry(in_order_).times_sampled > 0) ++in_order_;
  const uint64_t key = in_order_++;
  if (once()) {
    ReplaySample sample{key, take_out(key), 1, 0};
    limiter_.evicted();
    skip_empty();
    return sample;
  }
  Entry& entry = this->entry(key);
  count_sample(entry);
  return {key, entry.item, weights_.importance_in_order(), 0};
}

ReplaySample ReplayTable::draw_at(size_t place) {
  Entry& entry = entries_[place];
  const uint32_t times_sampled = entry.times_sampled;
  count_sample(entry);
  return {head_ + ((place - head_) & (entries_.size() - 1)), entry.item, weights_.importance(place), times_sampled};
}

void ReplayTable::update_priorities(std::span<const uint64_t> keys, std::span<const float> priorities) {
  STREAMVEC_CHECK_EQ(keys.size(), priorities.size());
  const Lock lock(mutex_);
  for (size_t i = 0; i < keys.size(); ++i)
    if (holds(keys[i]) && !weights_.update(place_of(keys[i]), priorities[i])) ++priorities_refused_;
}

ReplayShare ReplayTable::share() const {
  const Lock lock(mutex_);
  if (size_ == 0) return {.sampled = limiter_.state().sampled};
  return {weights_.log2_sum(), weights_.least(), limiter_.state().sampled};
}

void ReplayTable::set_reference(std::optional<float> weight) {
  const Lock lock(mutex_);
  weights_.set_reference(weight);
}

void ReplayTable::finish() {
  const Lock lock(mutex_);
  limiter_.finish();
}

void ReplayTable::close() {
  const Lock lock(mutex_);
  limiter_.close();
}

int64_t ReplayTable::size() const {
  const Lock lock(mutex_);
  return size_;
}

ReplayTable::Statistics ReplayTable::statistics() const {
  const Lock lock(mutex_);
  return {.inserted = limiter_.state().inserted,
          .sampled = limiter_.state().sampled,
          .evicted = evicted_,
          .evicted_unsampled = evicted_unsampled_,
          .erased = erased_,
          .priorities_refused = priorities_refused_,
          .size = size_,
          .unsampled = unsampled_,
          .bytes = bytes_,
          .owed = limiter_.owed()};
}

ReplaySnapshot ReplayTable::snapshot() const {
  ReplaySnapshot snapshot;
  const Lock lock(mutex_);
  snapshot.held.reserve(static_cast<size_t>(size_));
  for (uint64_t key = head_; key < next_; ++key) {
    constexpr uint64_t kAhead = 16;
    prefetch_owners(entry(key + kAhead));
    const Entry& held = entry(key);
    if (held.item != nullptr)
      snapshot.held.push_back({key, held.item, weights_.get(place_of(key)), held.times_sampled});
  }
  snapshot.next_key = next_;
  snapshot.limiter = limiter_.state();
  snapshot.weights = weights_.state();
  snapshot.in_order_credit = in_order_credit_;
  snapshot.bytes_wanted = bytes_wanted_;
  snapshot.seed = seed_;
  snapshot.draws = draws_;
  snapshot.evicted = evicted_;
  snapshot.evicted_unsampled = evicted_unsampled_;
  snapshot.erased = erased_;
  snapshot.priorities_refused = priorities_refused_;
  return snapshot;
}

Status ReplayTable::restore(ReplaySnapshot snapshot) {
  const Lock lock(mutex_);
  if (limiter_.state().inserted > 0 || next_ > 0)
    return error(Code::kFailedPrecondition, "replay: restore into a table that was used already");
  std::vector<ReplaySnapshot::Held>& held = snapshot.held;
  if (once()) std::erase_if(held, [](const ReplaySnapshot::Held& one) { return one.times_sampled > 0; });
  if (held.size() > entries_.size()) {
    entries_ = std::vector<Entry>(std::bit_ceil(held.size()));
    weights_ = ReplayWeights(weight_options(options_), entries_.size());
  }
  next_ = snapshot.next_key;
  head_ = held.empty() ? next_ : held.front().key;
  if (next_ - head_ > entries_.size()) {  // a smaller ring than it was: the keys close up
    for (size_t i = 0; i < held.size(); ++i) held[i].key = next_ - held.size() + i;
    head_ = held.front().key;
  }
  weights_.restore(snapshot.weights);
  for (const ReplaySnapshot::Held& one : held) weights_.advance(one.item->t);
  for (ReplaySnapshot::Held& one : held) {
    weights_.restore(place_of(one.key), one.item->t, one.weight);
    put(one.key, std::move(one.item), one.times_sampled);
  }
  if (once()) snapshot.limiter.owed = static_cast<double>(size_);
  limiter_.restore(snapshot.limiter, size_);
  in_order_credit_ = snapshot.in_order_credit;
  bytes_wanted_ = snapshot.bytes_wanted;
  seed_ = snapshot.seed;
  draws_ = snapshot.draws;
  evicted_ = snapshot.evicted;
  evicted_unsampled_ = snapshot.evicted_unsampled;
  erased_ = snapshot.erased;
  priorities_refused_ = snapshot.priorities_refused;
  return {};
}

}  // namespace streamvec
