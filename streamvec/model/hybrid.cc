#include "streamvec/model/hybrid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "streamvec/core/memory.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/parameters.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr float kKnown = 100;          // occurrences that make half of a word's weight
constexpr float kOwn = 12;             // occurrences that make half of a word's served vector
constexpr float kWell = 300;           // occurrences that make half of a word's say in how long vectors are
constexpr float kBlended = 0.5f;       // that a visit blends into a row of what the spelling says, of a word never met
constexpr int64_t kBlendedMet = 1000;  // occurrences past which a row is left alone
// Rows of n-grams touched for each word trained on, without what is blended into rows: about an eighth of the time that
// training takes. Rows move on meanwhile; what brings the bag to its solution is the passes at the end.
constexpr double kWorkPerToken = 0.3;
constexpr double kWorkMax = 200'000;       // that may be left to do: with many threads one distils, and cannot do all
constexpr double kWorkForOthers = 10'000;  // at a time: some 2 ms, of the 20 between two calls
constexpr double kNewMost = 0.05;  // of the words, since the pass before this one, for new ones to start from the bag
constexpr int64_t kLastPasses = 3;
constexpr int64_t kMetMax = int64_t{1} << 31;  // counted no further: a frequent word of an endless stream would wrap
constexpr int64_t kPassesOfCard = 8;           // in all: it is done with a text before the walk has gone around often
constexpr int32_t kBucketBitsMax = 26;         // a quarter of a gigabyte for an index: no file asks for more

constexpr float kNarrowed = 0.5f;  // of what rows have where all spread most, to be served

constexpr std::string_view kHybridMagic = "svhybrid";
constexpr uint32_t kVersion = 3;  // 1: always taught by rows; 2: moves, without where rows spread most

float share_of(int64_t met, float half) {
  return static_cast<float>(met) / (static_cast<float>(met) + half);
}

float length_of(const float* row, int32_t dim) {
  return std::sqrt(mean_square(row, dim) * static_cast<float>(dim));
}

void copy_row(Parameters& parameters, Slot slot, float* out) {
  const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), {});
  std::copy_n(parameters.input.rows.row(slot), parameters.dim(), out);
}

void expect_row(const Parameters& parameters, Slot slot) {
  const float* row = parameters.input.rows.row(slot);
  for (int64_t d = 0; d < parameters.dim(); d += 16) __builtin_prefetch(row + d);
}

// What is further off than these bounds makes sums that are not finite.
bool sound(const Hybrid::Options& options) {
  const NgramBagOptions& bag = options.bag;
  return options.dim >= 1 && options.dim <= 65'536 && bag.minn >= 1 && bag.maxn >= bag.minn && bag.maxn <= 64 &&
         bag.length_step >= 1 && bag.length_step <= 64 && bag.short_minn >= 1 && bag.bucket_bits >= 1 &&
         bag.bucket_bits <= kBucketBitsMax && bag.shrinkage >= 1e-6f && bag.shrinkage <= 1e6f &&
         std::abs(bag.length_power) <= 8;
}

constexpr double kFar = 1e12;          // longer than any row that was trained
constexpr double kWeightLeast = 1e-9;  // less than a single word weighs

Status damaged(const std::string& path, const char* what) {
  return error(Code::kDataLoss, path, ": ", what, "; the file was damaged");
}

}  // namespace

SlotWalk::SlotWalk(int64_t slots) : slots_(slots) {
  stride_ = std::max<int64_t>(1, static_cast<int64_t>(0.618 * static_cast<double>(slots)));
  while (slots > 0 && std::gcd(stride_, slots) != 1) ++stride_;
}

Result<std::unique_ptr<Hybrid>> Hybrid::make(const Options& options) {
  std::unique_ptr<Hybrid> made(new Hybrid(options));
  STREAMVEC_ASSIGN_OR_RETURN(made->bag_, NgramBag::make(options.bag, options.dim, options.words_max));
  STREAMVEC_ASSIGN_OR_RETURN(made->rows_, Matrix::make(kRowCount, options.dim));
  STREAMVEC_ASSIGN_OR_RETURN(
      made->met_, make_values<std::atomic<uint32_t>>(options.words_max, "counts of words", "a smaller --vocab-max"));
  if (!options.bag.by_moves) return made;
  STREAMVEC_ASSIGN_OR_RETURN(made->composed_, Matrix::make(0, options.dim, options.words_max));
  STREAMVEC_ASSIGN_OR_RETURN(
      made->since_, make_values<std::atomic<uint32_t>>(options.words_max, "counts of words", "a smaller --vocab-max"));
  return made;
}

void Hybrid::set_word(Slot slot, std::string_view word) {
  STREAMVEC_CHECK(slot >= 0 && slot < options_.words_max);
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  words_ = std::max<int64_t>(words_, slot + 1);
  met_[static_cast<size_t>(slot)].store(0, std::memory_order_relaxed);
  ++told_;
  if (distils_) bag_.set_word(slot, word);
  if (!options_.bag.by_moves) return;
  if (slot >= composed_.rows()) composed_.grow(slot + 1);
  since_[static_cast<size_t>(slot)].store(0, std::memory_order_relaxed);
}

void Hybrid::restore_word(Slot slot, std::string_view word) {
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  words_ = std::max<int64_t>(words_, slot + 1);
  bag_.set_word(slot, word);
}

bool Hybrid::start_row(Slot slot, float* row) {
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  if (options_.bag.by_moves) return start_row_by_moves(slot, row);
  if (passes_ < 2 || static_cast<double>(told_ - told_before_) > kNewMost * static_cast<double>(words_)) return false;
  std::copy_n(rows_.row(kMean), options_.dim, row);
  bag_.add_vector(slot, row);
  return true;
}

bool Hybrid::has_learnt() const {
  const std::lock_guard lock(mutex_);
  return options_.bag.by_moves ? trained_.load(std::memory_order_relaxed) > 0 : passes_ > 0;
}

Narrowing::Narrowing(MatrixView<const float> directions) {
  for (int64_t i = 0; i < directions.rows; ++i)
    directions_.emplace_back(directions.row(i), directions.row(i) + directions.cols);
}

void Narrowing::operator()(std::span<float> row) const {
  for (const std::vector<float>& direction : directions_) {
    const float along = std::inner_product(direction.begin(), direction.end(), row.begin(), 0.0f);
    for (size_t d = 0; d < row.size(); ++d) row[d] -= kNarrowed * along * direction[d];
  }
}

Narrowing Hybrid::narrowing() const {
  const std::lock_guard lock(mutex_);
  return narrowed();
}

// REQUIRES: mutex_ is held.
Narrowing Hybrid::narrowed() const {
  const MatrixView<const float> all = rows_.view();
  return Narrowing({all.row(kWide), kWideEnd - kWide, all.cols, all.stride});
}

std::vector<float> Hybrid::mean() const {
  const std::lock_guard lock(mutex_);
  std::vector<float> mean(rows_.row(kMean), rows_.row(kMean) + options_.dim);
  narrowed()(mean);
  return mean;
}

void Hybrid::make_vector(std::string_view word, float* row) const {
  const auto still = keep_still();
  const std::lock_guard lock(mutex_);
  if (options_.bag.by_moves) {
    std::fill_n(row, options_.dim, 0.0f);
    const float unknown = bag_.add_vector(word, row);
    add_scaled(rows_.row(kMean), unknown, dim(), row);
    return narrowed()({row, static_cast<size_t>(options_.dim)});
  }
  std::copy_n(rows_.row(kMean), options_.dim, row);
  bag_.add_vector(word, row);
}

// What the row means: without the mean, and lengthened halfway, by its logarithm, to the length of well-known words'
// vectors where it is shorter. A row that was hardly trained is little more than the mean. Returns how long it was
// without the mean; 0, and the row is of no use, where that is not finite.
float Hybrid::take_meaning(float* row) const {
  add_scaled(rows_.row(kMean), -1, dim(), row);
  const float length = length_of(row, dim());
  if (!(length > 0) || !std::isfinite(length)) return 0;
  const float factor = std::sqrt(std::max(1.0f, static_cast<float>(length_) / length));
  for (int32_t d = 0; d < dim(); ++d) row[d] *= factor;
  return length;
}

void Hybrid::learn(const Chunk& chunk, Parameters& parameters) {
  for (const Slot slot : chunk.slots)
    if (met(slot) < kMetMax) met_[static_cast<size_t>(slot)].fetch_add(1, std::memory_order_relaxed);
  met_here_.fetch_add(static_cast<int64_t>(chunk.slots.size()), std::memory_order_relaxed);
  if (!distils_) return;
  const double share = kWorkPerToken * static_cast<double>(chunk.slots.size());
  work_.store(std::min(work_.load(std::memory_order_relaxed) + share, kWorkMax), std::memory_order_relaxed);
  const std::unique_lock lock(teaching_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  double left = work_.exchange(0, std::memory_order_relaxed);
  while (left > 0) left -= distil_next(parameters, true);
  work_.store(work_.load(std::memory_order_relaxed) + left, std::memory_order_relaxed);
}

void Hybrid::copy_met(std::span<float> met) const {
  for (size_t slot = 0; slot < met.size(); ++slot)
    met[slot] = static_cast<float>(met_[slot].load(std::memory_order_relaxed));
}

void Hybrid::add_met(std::span<const float> more) {
  for (size_t slot = 0; slot < more.size(); ++slot)
    if (std::abs(more[slot]) >= 0.5f)
      met_[slot].fetch_add(static_cast<uint32_t>(std::lround(more[slot])), std::memory_order_relaxed);
}

void Hybrid::add_met(Slot slot, int64_t times) {
  const int64_t room = std::max<int64_t>(kMetMax - met(slot), 0);
  met_[static_cast<size_t>(slot)].fetch_add(static_cast<uint32_t>(std::min(times, room)), std::memory_order_relaxed);
  const double work = others_work_.load(std::memory_order_relaxed) + kWorkPerToken * static_cast<double>(times);
  others_work_.store(std::min(work, kWorkMax), std::memory_order_relaxed);
}

void Hybrid::distil_for_others(Parameters& parameters) {
  if (!distils_ || others_work_.load(std::memory_order_relaxed) <= 0) return;
  const std::unique_lock lock(teaching_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  double left = std::min(others_work_.load(std::memory_order_relaxed), kWorkForOthers);
  others_work_.fetch_sub(left, std::memory_order_relaxed);
  while (left > 0) left -= distil_next(parameters, true);
}

Status Hybrid::only_count() {
  STREAMVEC_ASSIGN_OR_RETURN(NgramBag empty, NgramBag::make(options_.bag, options_.dim, options_.words_max));
  const std::lock_guard lock(teaching_);
  const std::lock_guard state_lock(mutex_);
  distils_ = false;
  bag_ = std::move(empty);
  std::fill_n(rows_.row(kMean), dim(), 0.0f);
  begin_pass();
  passes_ = 0;
  length_ = 0;
  return {};
}

// Words that share n-grams come one after the other: their rows are in the cache then, and a pass comes nearer to the
// solution than one that leaps about.
void Hybrid::finish(Parameters& parameters) {
  if (options_.bag.by_moves) return finish_sharing(parameters);
  if (!distils_) return;
  const std::lock_guard lock(teaching_);
  int64_t left = 0;
  {
    const std::lock_guard state_lock(mutex_);
    left = words_ * std::max(kLastPasses, parameters.card != nullptr ? kPassesOfCard - passes_ : 0);
    walk_ = SlotWalk(bag_.slots_by_ngrams());
    begin_pass();
  }
  for (; left > 0; --left) distil_next(parameters, false);
  const std::lock_guard state_lock(mutex_);
  walk_ = SlotWalk();
}

// One step of the walk, which blends what the spelling says into the row as well or not. Returns what it cost, in rows
// of n-grams. The row is copied without the lock, because whoever tells a new word has locked its row already (in
// builds with locked rows).
double Hybrid::distil_next(Parameters& parameters, bool blends) {
  Slot slot = 0;
  int64_t told = 0;
  bool begins = false;
  {
    const std::lock_guard lock(mutex_);
    if (place_ >= words_) end_pass();
    if (words_ == 0) return kWorkMax;
    begins = place_ == 0;
    if (walk_.slots() != words_) walk_ = SlotWalk(words_);
    slot = walk_.at(place_++);
    told = told_;
    // What the next steps will touch lies anywhere.
    const Slot next[] = {walk_.at(place_), walk_.at(place_ + 1), walk_.at(place_ + 2)};
    expect_row(parameters, next[0]);
    if (passes_ > 0) bag_.expect(next);
    blends = blends && passes_ >= 2 && parameters.card == nullptr;  // rows of a card are only looked at
  }
  if (begins) (void)parameters.fetch_rows();  // of a card, whose error the next step tells
  if (met(slot) == 0 && !blends) return 1;
  float* target = rows_.row(kTarget);
  copy_row(parameters, slot, target);
  double cost = 0;
  {
    const std::lock_guard lock(mutex_);
    if (told != told_) return 1;  // the slot may have changed hands
    cost = fit(slot, target);
  }
  if (blends && met(slot) < kBlendedMet) blend_into_row(parameters, slot, told);
  return cost;
}

// Lets the slot's word say what it means by its row.
double Hybrid::fit(Slot slot, float* target) {
  const int64_t met = this->met(slot);
  if (met == 0 || !std::isfinite(mean_square(target, dim()))) return 1;
  const float weight = share_of(met, kKnown);
  add_scaled(target, weight, dim(), rows_.row(kSum));
  sum_weight_ += weight;
  if (passes_ == 0) return 2;  // the mean comes first
  const float length = take_meaning(target);
  if (length == 0) return 2;
  const double well = std::pow(share_of(met, kWell), 2);
  sum_length_ += well * length;
  sum_length_weight_ += well;
  bag_.fit(slot, target, weight);
  return static_cast<double>(bag_.cost(slot)) + 2;
}

// Whoever tells a new word locks its row, then this: so the row comes first here, too. In builds without locks a word
// that comes just now may get a part of what the spelling before it said, as noise.
void Hybrid::blend_into_row(Parameters& parameters, Slot slot, int64_t told) {
  float* made = rows_.row(kMade);
  const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), {});
  const std::lock_guard lock(mutex_);
  if (told != told_) return;
  std::copy_n(rows_.row(kMean), options_.dim, made);
  bag_.add_vector(slot, made);
  const float share = kBlended * (1 - share_of(met(slot), kOwn)) / static_cast<float>(distilling_nodes_);
  float* row = parameters.input.rows.row(slot);
  for (int32_t d = 0; d < dim(); ++d) row[d] += share * (made[d] - row[d]);
  parameters.note_changed(std::span(&slot, 1), {});
}

// Of what was read: the means, those now and those that the sums will give, are of vectors that could be.
bool Hybrid::means_can_be() const {
  const auto far_below = [&](int row, double bound) {
    return std::sqrt(static_cast<double>(mean_square(rows_.row(row), dim()))) <= bound;
  };
  constexpr float kLengthMost = 1.01f;  // 1, or 0 where there is no direction
  for (int row = kWide; row < kWideEnd; ++row)
    if (!(length_of(rows_.row(row), dim()) <= kLengthMost)) return false;
  return length_ <= kFar && sum_length_ <= kFar * sum_length_weight_ && far_below(kMean, kFar) &&
         far_below(kSum, kFar * (by_moves() ? 1 : sum_weight_)) && (sum_weight_ == 0 || sum_weight_ >= kWeightLeast);
}

void Hybrid::begin_pass() {
  place_ = 0;
  std::fill_n(rows_.row(kSum), dim(), 0.0f);
  sum_weight_ = sum_length_ = sum_length_weight_ = 0;
}

void Hybrid::end_pass() {
  if (sum_weight_ > 0) {
    std::fill_n(rows_.row(kMean), dim(), 0.0f);
    add_scaled(rows_.row(kSum), static_cast<float>(1 / sum_weight_), dim(), rows_.row(kMean));
    if (sum_length_weight_ > 0) length_ = sum_length_ / sum_length_weight_;
    ++passes_;
    told_before_ = std::exchange(told_begun_, told_);
  }
  begin_pass();
}

Result<Matrix> Hybrid::served_rows(Parameters& parameters, int64_t rows) const {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix served, Matrix::make(rows, parameters.dim()));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix made, Matrix::make(1, parameters.dim()));
  const Narrowing narrow = narrowing();
  for (Slot slot = 0; slot < rows; ++slot) {
    copy_row(parameters, slot, served.row(slot));
    if (options_.bag.by_moves) {
      narrow(served.view().row_span(slot));
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (passes_ == 0) continue;
    bag_.expect(std::array{slot + 1, slot + 2, slot + 3});
    blend(slot, made.row(0), served.row(slot));
  }
  return served;
}

void Hybrid::blend(Slot slot, float* made, float* row) const {
  if (take_meaning(row) == 0) std::fill_n(row, options_.dim, 0.0f);
  std::fill_n(made, options_.dim, 0.0f);
  bag_.add_vector(slot, made);
  const float own = share_of(met(slot), kOwn);
  for (int32_t d = 0; d < dim(); ++d) row[d] = own * row[d] + (1 - own) * made[d] + rows_.row(kMean)[d];
}

// Magic, version, dim, bag's settings, fold_case, by_moves; the walk; counts by slot, of moves also occurrences since
// they were shared; mean and sum, of moves also where rows spread most; buckets by row.
Hybrid::Saved Hybrid::save() const {
  std::unique_lock still(teaching_);
  const std::lock_guard lock(mutex_);
  const bool all_are_so = !options_.bag.by_moves || settled_;
  return {std::move(still), encode(), bag_.rows().view(), bag_.duals().view(),
          all_are_so ? MatrixView<const float>() : composed_.view()};
}

Result<std::unique_ptr<Hybrid>> Hybrid::copy_spellings() const {
  std::string state;
  Matrix rows;
  {
    const auto still = keep_still();
    const std::lock_guard lock(mutex_);
    state = encode();
    STREAMVEC_ASSIGN_OR_RETURN(rows, bag_.rows().copy());
  }
  return restore(state, "the generator", options_.words_max, rows.view(), {});
}

std::string Hybrid::encode() const {
  StateWriter writer;
  writer.put_all(std::span<const char>(kHybridMagic));
  writer.put(kVersion);
  writer.put(options_.dim);
  writer.put(options_.bag.minn);
  writer.put(options_.bag.maxn);
  writer.put(options_.bag.bucket_bits);
  writer.put(options_.bag.length_power);
  writer.put(options_.bag.shrinkage);
  writer.put(static_cast<uint8_t>(options_.fold_case));
  writer.put(static_cast<uint8_t>(options_.bag.by_moves));
  writer.put(options_.bag.length_step);
  writer.put(options_.bag.short_minn);
  writer.put(place_);
  writer.put(passes_);
  for (const double value : {sum_weight_, sum_length_, sum_length_weight_, length_}) writer.put(value);
  writer.put(work_.load(std::memory_order_relaxed));
  writer.put(words_);
  for (Slot slot = 0; slot < words_; ++slot) writer.put(static_cast<uint32_t>(met(slot)));
  for (Slot slot = 0; options_.bag.by_moves && slot < words_; ++slot)
    writer.put(since_[static_cast<size_t>(slot)].load(std::memory_order_relaxed) & ~kClaimed);
  for (const int row : {kMean, kSum}) writer.put_all(rows_.view().row_span(row));
  for (int row = kWide; options_.bag.by_moves && row < kWideEnd; ++row) writer.put_all(rows_.view().row_span(row));
  writer.put(static_cast<int64_t>(bag_.buckets().size()));
  writer.put_all(bag_.buckets());
  return writer.take();
}

Result<std::unique_ptr<Hybrid>> Hybrid::restore(std::string_view bytes, const std::string& path, int64_t words_max,
                                                MatrixView<const float> rows, MatrixView<const float> duals) {
  StateReader reader(bytes);
  char magic[8] = {};
  reader.get_all(std::span<char>(magic));
  if (std::string_view(magic, sizeof magic) != kHybridMagic) return damaged(path, "no svhybrid");
  const auto version = reader.get<uint32_t>();
  if (version < 1 || version > kVersion) return damaged(path, "a version that is not known");
  Options options;
  options.words_max = words_max;
  options.dim = reader.get<int64_t>();
  options.bag.minn = reader.get<int32_t>();
  options.bag.maxn = reader.get<int32_t>();
  options.bag.bucket_bits = reader.get<int32_t>();
  options.bag.length_power = reader.get<float>();
  options.bag.shrinkage = reader.get<float>();
  const auto fold_case = reader.get<uint8_t>();
  options.fold_case = fold_case == 1;
  uint8_t by_moves = 0;
  if (version > 1) {
    by_moves = reader.get<uint8_t>();
    options.bag.by_moves = by_moves == 1;
    options.bag.length_step = reader.get<int32_t>();
    options.bag.short_minn = reader.get<int32_t>();
  }
  if (!reader.ok() || !sound(options) || fold_case > 1 || by_moves > 1) return damaged(path, "settings that cannot be");
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Hybrid> made, make(options));
  made->place_ = reader.get<int64_t>();
  made->passes_ = reader.get<int64_t>();
  bool can_be = made->place_ >= 0 && made->passes_ >= 0;
  for (double* value : {&made->sum_weight_, &made->sum_length_, &made->sum_length_weight_, &made->length_}) {
    *value = reader.get<double>();
    can_be = can_be && *value >= 0 && std::isfinite(*value);
  }
  made->work_ = reader.get<double>();
  if (!can_be || !(std::abs(made->work_) <= kWorkMax)) return damaged(path, "sums that cannot be");
  const int64_t words = reader.get_count(sizeof(uint32_t));
  if (words > words_max) return damaged(path, "more words than there are");
  for (int64_t slot = 0; slot < words; ++slot) {
    made->met_[static_cast<size_t>(slot)] = reader.get<uint32_t>();
    made->trained_ += made->met(static_cast<Slot>(slot));
  }
  for (int64_t slot = 0; options.bag.by_moves && slot < words; ++slot)
    made->since_[static_cast<size_t>(slot)] = reader.get<uint32_t>() & ~kClaimed;
  made->words_ = words;
  for (const int row : {kMean, kSum}) reader.get_all(made->rows_.view().row_span(row));
  for (int row = kWide; options.bag.by_moves && version > 2 && row < kWideEnd; ++row)
    reader.get_all(made->rows_.view().row_span(row));
  if (!made->means_can_be()) return damaged(path, "means that cannot be");
  std::vector<uint32_t> buckets(static_cast<size_t>(reader.get_count(sizeof(uint32_t))));
  reader.get_all(std::span<uint32_t>(buckets));
  if (!reader.ok() || !reader.at_end()) return damaged(path, "cut short, or something follows");
  if (Status adopted = made->bag_.adopt(buckets, rows, duals); !adopted.ok())
    return damaged(path, adopted.message().c_str());
  return made;
}

}  // namespace streamvec
