// The hybrid's generator taught by moves: rows are trained in place, and what they have moved by is shared with their
// n-grams every few occurrences.
#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/hybrid.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/widest_directions.h"

namespace streamvec {
namespace {

// Between two shares of a word's moves lie a 64th of its occurrences, and soon up to kWaitSoon of them. Whoever has
// moves later goes on from rows that lack them, and n-grams that many words have then move too far: most of all along
// the mean of all rows, to which every word moves, so that n-grams take less of that.
constexpr int64_t kShares = 64, kWaitMost = 64;
constexpr int64_t kSoon = Hybrid::kRareMet / 2, kWaitSoon = 8;  // of these, one for every kSoon occurrences
constexpr int64_t kWordsBetween = 250'000;  // trained on, between two shares of a word, however long the text is
constexpr float kMeanShared = 0.45f;        // of what n-grams take otherwise
constexpr Slot kMeanEvery = 8;              // every so many slots tell what the mean is
constexpr float kMeanNew = 1.0f / 512;      // the part of a row in it
constexpr int64_t kWideRows = 8'192;        // that tell where rows spread most
constexpr int64_t kWideLeast = 10;          // words of a vocabulary for every dimension that has such directions
constexpr int64_t kMetMost = int64_t{1} << 31;
constexpr int64_t kWaitingMost = int64_t{1} << 29;
enum ScratchRow { kMoved, kShared, kComposed, kScratchRows };

constexpr int32_t kNotTaken = -1;  // of Due::place

// With the zeros behind it.
void copy_padded(const float* from, int64_t dim, float* to) {
  std::copy_n(from, (dim + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple, to);
}

void expect_row(const float* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += 16) __builtin_prefetch(row + d, 1);
}

}  // namespace

// The right to teach the bag beside other threads, or by oneself in builds whose rows are locked; not had while someone
// wants it to stay as it is. Rows are locked first: who tells a new word has locked its row, and then waits.
class Hybrid::Sharing {
 public:
  Sharing(Hybrid& hybrid, Parameters& parameters, std::span<const Due> due)
      : guard_(parameters.locks, slots_of(due), {}), teaching_(hybrid.teaching_) {
    if (hybrid.wanted_still_.load(std::memory_order_relaxed) > 0) return;
    has_ = RowLocks::kLocking ? teaching_.try_lock() : teaching_.try_lock_shared();
  }
  ~Sharing() {
    if (has_) RowLocks::kLocking ? teaching_.unlock() : teaching_.unlock_shared();
  }
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  explicit operator bool() const { return has_; }

 private:
  static std::vector<Slot> slots_of(std::span<const Due> due) {
    std::vector<Slot> slots;
    if (RowLocks::kLocking)
      for (const Due& each : due) slots.push_back(each.slot);
    return slots;
  }
  const RowLocks::Guard guard_;
  std::shared_mutex& teaching_;
  bool has_ = false;
};

// Nobody shares until it goes. Nothing to wait for where rows teach the bag: mutex_ is enough.
std::unique_lock<std::shared_mutex> Hybrid::keep_still() const {
  if (!options_.bag.by_moves) return {};
  ++wanted_still_;
  std::unique_lock lock(teaching_);
  --wanted_still_;
  return lock;
}

// How often moves are shared while a word's count doubles, at least.
int64_t Hybrid::shares_now() const {
  return std::max(kShares, trained_.load(std::memory_order_relaxed) / kWordsBetween);
}

// Occurrences between two shares of a word's moves. Past 1 it stays so.
int64_t Hybrid::wait_of(Slot slot, int64_t shares) const {
  const int64_t times = met(slot);
  return std::clamp<int64_t>(std::max(times / shares, std::min(times / kSoon, kWaitSoon)), 1, kWaitMost);
}

// One thread at a time is at a word's row.
bool Hybrid::claim(Slot slot) {
  return (since_[static_cast<size_t>(slot)].fetch_or(kClaimed, std::memory_order_acquire) & kClaimed) == 0;
}

// With so many occurrences whose moves wait in composed_, which has the row or not.
void Hybrid::release(Slot slot, bool kept, int32_t waiting) {
  since_[static_cast<size_t>(slot)].store((kept ? kKept : 0) + static_cast<uint32_t>(waiting),
                                          std::memory_order_release);
}

bool Hybrid::is_claimed(Slot slot) const {
  return (since_[static_cast<size_t>(slot)].load(std::memory_order_relaxed) & kClaimed) != 0;
}

bool Hybrid::is_kept(Slot slot) const {
  return (since_[static_cast<size_t>(slot)].load(std::memory_order_relaxed) & kKept) != 0;
}

int64_t Hybrid::waiting(Slot slot) const {
  return since_[static_cast<size_t>(slot)].load(std::memory_order_relaxed) & ~(kClaimed | kKept);
}

bool Hybrid::start_row_by_moves(Slot slot, float* row) {
  if (trained_.load(std::memory_order_relaxed) == 0) return false;
  Scratch scratch;
  scratch.rows.reserve_zeroed(1, dim());
  float* made = scratch.rows.row(0);
  bag_.compose(slot, scratch.bag, made);
  if (!(mean_square(made, dim()) > 0)) return false;
  for (float* to : {row, composed_.row(slot)}) copy_padded(made, dim(), to);
  release(slot, true, 0);
  return true;
}

// Rare words' rows, whose moves are shared after every visit, are made anew before it: others move their n-grams in
// between. The others' have taken up all there was when their moves were last shared.
void Hybrid::take_up(std::span<const VisitedWord> words, Parameters& parameters, Scratch& scratch) {
  scratch.due.clear();
  for (size_t i = 0; i < words.size(); ++i)
    if (is_rare(words[i].slot) || !is_kept(words[i].slot))
      scratch.due.push_back({words[i].slot, static_cast<int32_t>(i)});
  scratch.rows.reserve_zeroed(kScratchRows, dim());
  scratch.made_rows.reserve(std::ssize(scratch.due), dim());
  scratch.made.assign(words.size(), nullptr);
  const Sharing sharing(*this, parameters, scratch.due);
  int64_t count = 0;
  for_each_due(parameters, scratch.due, [&](const Due& due) {
    if (!claim(due.slot)) return;  // until its move is shared
    float* made = scratch.made[static_cast<size_t>(due.place)] = scratch.made_rows.row(count++);
    float* row = parameters.input.rows.row(due.slot);
    if (!sharing) {
      copy_padded(is_kept(due.slot) ? composed_.row(due.slot) : row, dim(), made);
      return;
    }
    const bool is_drawn = met(due.slot) == 0 && !is_kept(due.slot);
    if (is_kept(due.slot)) share_move(due.slot, composed_.row(due.slot), parameters, scratch);
    bag_.compose(due.slot, scratch.bag, made);
    if (is_drawn)
      add_scaled(made, 1, dim(), row);
    else
      copy_padded(made, dim(), row);
  });
}

void Hybrid::share_moves(std::span<const VisitedWord> words, Parameters& parameters, Scratch& scratch) {
  scratch.due.clear();
  const int64_t shares = shares_now();
  int64_t all = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto& [slot, times] = words[i];
    const auto place = static_cast<size_t>(slot);
    if (met(slot) < kMetMost) met_[place].fetch_add(static_cast<uint32_t>(times), std::memory_order_relaxed);
    all += times;
    if (scratch.made[i] != nullptr) {
      scratch.due.push_back({slot, static_cast<int32_t>(i)});
    } else if (is_kept(slot)) {  // else another thread is at it
      if (waiting(slot) < kWaitingMost)
        since_[place].fetch_add(static_cast<uint32_t>(times), std::memory_order_relaxed);
      if (waiting(slot) >= wait_of(slot, shares)) scratch.due.push_back({slot, kNotTaken});
    }
  }
  met_here_.fetch_add(all, std::memory_order_relaxed);
  trained_.fetch_add(all, std::memory_order_relaxed);
  settled_.store(false, std::memory_order_relaxed);
  const Sharing sharing(*this, parameters, scratch.due);
  for_each_due(parameters, scratch.due, [&](const Due& due) {
    float* made = due.place == kNotTaken ? nullptr : scratch.made[static_cast<size_t>(due.place)];
    if (made == nullptr ? !sharing : !is_claimed(due.slot)) return;  // it goes on waiting; the slot has another word
    if (!sharing) {
      copy_padded(made, dim(), composed_.row(due.slot));
      return release(due.slot, true, words[static_cast<size_t>(due.place)].times);
    }
    if (made == nullptr && !claim(due.slot)) return;
    float* known = made != nullptr ? made : composed_.row(due.slot);
    const bool keeps = !is_rare(due.slot);
    if (keeps)
      share_and_take_up(due.slot, known, parameters, scratch);
    else
      share_move(due.slot, known, parameters, scratch);
    release(due.slot, keeps, 0);
  });
}

// What rows are made of lies anywhere: that of the next ones is fetched meanwhile.
template <typename Do>
void Hybrid::for_each_due(Parameters& parameters, std::span<const Due> all, const Do& act) {
  const auto at = [&](size_t i) { return all[std::min(i, all.size() - 1)].slot; };
  for (size_t i = 0; i < all.size(); ++i) {
    const Slot next[] = {at(i + 1), at(i + 2), at(i + 3)};
    expect_row(parameters.input.rows.row(next[0]), dim());
    if (is_kept(next[0])) expect_row(composed_.row(next[0]), dim());
    bag_.expect(next);
    act(all[i]);
  }
}

// Others take a word no further along its own way than it has gone itself, and where they would have, n-grams have less
// to hear of it: words that all move one way at once would swing past it together. `known`: what the row was made as.
void Hybrid::share_and_take_up(Slot slot, float* known, Parameters& parameters, Scratch& scratch) {
  float *change = scratch.rows.row(kMoved), *shared = scratch.rows.row(kShared), *made = scratch.rows.row(kComposed);
  float *row = parameters.input.rows.row(slot), *composed = composed_.row(slot);
  bag_.compose(slot, scratch.bag, made);
  copy_padded(made, dim(), shared);
  add_scaled(known, -1, dim(), shared);  // what others have done
  if (known != composed) copy_padded(known, dim(), composed);
  take_change(row, dim(), composed, change);
  const float square = dot(change, change, dim());
  if (!std::isfinite(square)) return;
  const float times = square > 0 ? std::max(dot(shared, change, dim()) / square, 1.0f) : 1;
  add_scaled(change, 2 - times, dim(), made);
  copy_padded(change, dim(), shared);
  if (times > 1) add_scaled(change, 1 / times - 1, dim(), shared);
  hold_back_mean(slot, row, shared);
  bag_.move(slot, change, shared, scratch.bag);
  if (times > 1) bag_.keep(slot, change, 1 - times);
  replace_part(made, dim(), composed, row);
}

// The row becomes what its n-grams and what stayed with the word make.
void Hybrid::take_up_row(Slot slot, Parameters& parameters, Scratch& scratch) {
  bag_.compose(slot, scratch.bag, scratch.rows.row(kComposed));
  copy_padded(scratch.rows.row(kComposed), dim(), parameters.input.rows.row(slot));
}

// Takes out of `shared` what n-grams are not to take of a move along the mean. That is a running one, in kSum's place.
void Hybrid::hold_back_mean(Slot slot, const float* row, float* shared) {
  float* mean = rows_.row(kSum);
  const float square = dot(mean, mean, dim());
  if (square > 0) add_scaled(mean, -(1 - kMeanShared) * dot(mean, shared, dim()) / square, dim(), shared);
  if (slot % kMeanEvery != 0) return;
  for (int32_t d = 0; d < dim(); ++d) mean[d] += kMeanNew * (row[d] - mean[d]);
}

// The row has moved from `known`, which becomes what it is. One that is not finite has nothing to say.
void Hybrid::share_move(Slot slot, float* known, Parameters& parameters, Scratch& scratch) {
  float *change = scratch.rows.row(kMoved), *shared = scratch.rows.row(kShared);
  const float* row = parameters.input.rows.row(slot);
  take_change(row, dim(), known, change);
  if (!std::isfinite(mean_square(change, dim()))) return;
  copy_padded(change, dim(), shared);
  hold_back_mean(slot, row, shared);
  bag_.move(slot, change, shared, scratch.bag);
}

// Words that share n-grams come one after the other: their rows are in the cache then.
void Hybrid::finish_sharing(Parameters& parameters) {
  if (settled_) return;
  std::vector<Slot> slots;
  {
    const auto still = keep_still();
    const std::lock_guard lock(mutex_);
    slots = bag_.slots_by_ngrams();
  }
  std::erase_if(slots, [&](Slot slot) { return met(slot) == 0; });
  std::vector<Due> all;
  for (const Slot slot : slots) all.push_back({slot, kNotTaken});
  Scratch scratch;
  scratch.rows.reserve_zeroed(kScratchRows, dim());
  {
    const RowLocks::Guard guard(parameters.locks, slots, {});
    const auto still = keep_still();
    for_each_due(parameters, all, [&](const Due& due) {
      if (is_kept(due.slot)) share_move(due.slot, composed_.row(due.slot), parameters, scratch);
    });
    for_each_due(parameters, all, [&](const Due& due) {
      const bool kept = is_kept(due.slot);
      take_up_row(due.slot, parameters, scratch);
      if (kept) copy_padded(parameters.input.rows.row(due.slot), dim(), composed_.row(due.slot));
      release(due.slot, kept, 0);
    });
    settled_ = true;
  }
}

void Hybrid::note_common(Parameters& parameters) {
  if (!options_.bag.by_moves) return;
  const auto words_now = [&] {
    const std::lock_guard lock(mutex_);
    return words_;
  };
  std::vector<double> sum(static_cast<size_t>(dim()));
  int64_t count = 0;
  const int64_t words = words_now();
  RowBuffer rows;
  MatrixView<float> some = rows.reserve(words >= kWideLeast * dim() ? kWideRows : 0, dim());  // from all over the words
  const int64_t every = (words + kWideRows - 1) / kWideRows, some_most = std::exchange(some.rows, 0);
  for (Slot slot = 0; slot < words; ++slot) {
    if (met(slot) == 0) continue;
    const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), {});
    const float* row = parameters.input.rows.row(slot);
    if (!std::isfinite(mean_square(row, dim()))) continue;
    for (int32_t d = 0; d < dim(); ++d) sum[static_cast<size_t>(d)] += row[d];
    ++count;
    if (slot % every == 0 && some.rows < some_most) std::copy_n(row, dim(), some.row(some.rows++));
  }
  const Result<Matrix> widest = widest_directions(some, kWideEnd - kWide);
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  for (int32_t d = 0; count > 0 && d < dim(); ++d)
    rows_.row(kMean)[d] = static_cast<float>(sum[static_cast<size_t>(d)] / static_cast<double>(count));
  for (int32_t i = kWide; widest.ok() && i < kWideEnd; ++i) copy_padded(widest->row(i - kWide), dim(), rows_.row(i));
}

Status Hybrid::restore_composed(MatrixView<const float> composed, const Parameters& parameters) {
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  composed_.grow(std::max(composed_.rows(), words_));
  for (Slot slot = 0; slot < words_; ++slot) {
    if (!is_kept(slot)) continue;
    if (composed.rows > 0 && (composed.rows <= slot || composed.cols != options_.dim))
      return error(Code::kDataLoss, "there are ", composed.rows, " rows of ", composed.cols, " values for ", words_,
                   " words of ", options_.dim);
    std::copy_n(composed.rows > 0 ? composed.row(slot) : parameters.input.rows.row(slot), dim(), composed_.row(slot));
  }
  settled_ = composed.rows == 0;
  return {};
}

Result<std::unique_ptr<Hybrid>> Hybrid::to_be_taught_by_rows() const {
  Options options = options_;
  options.bag = {};
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Hybrid> made, make(options));
  for (Slot slot = 0; slot < words_; ++slot)
    made->met_[static_cast<size_t>(slot)].store(static_cast<uint32_t>(met(slot)), std::memory_order_relaxed);
  made->words_ = words_;
  return made;
}

}  // namespace streamvec
