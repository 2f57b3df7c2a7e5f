// Skip-gram over words made of parts (Bojanowski et al. 2017): a word's vector is the mean of its own row and the rows
// of its character n-grams. As in fastText every row takes the whole step of the mean it is part of, so that the mean
// itself moves by that step.
//
// A word has some 15 rows, and moving them is most of the work. So a word is composed when a block comes that has it,
// trained in place as long as each next block has it, too (neighbouring blocks share the words at their edges), and
// what it has moved is then added to its rows once. Rows of the next block are fetched meanwhile. A word without
// n-grams is trained in its own row, as skip-gram does.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "streamvec/kernel/row_buffer.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/skip_gram_weights.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

// Blocks for which a word stays composed at most: what it has moved is new to other words only then.
constexpr int32_t kBlocksMax = 4;

// Where the words of a block are among all that are composed. Small enough for the nearest cache.
class WordPlaces {
 public:
  void begin(size_t words_max) {
    size_t size = 64;
    while (size < 2 * words_max) size *= 2;
    entries_.assign(size, {-1, 0});
  }
  // The word's place, which is to be written where it is -1: the word was not there.
  int32_t& operator[](Slot slot) {
    Entry& entry = entries_[at(slot)];
    if (entry.slot < 0) entry = {slot, -1};
    return entry.place;
  }
  // Likewise, -1 for a word that is not there.
  int32_t find(Slot slot) const {
    if (entries_.empty()) return -1;
    const Entry& entry = entries_[at(slot)];
    return entry.slot < 0 ? -1 : entry.place;
  }

 private:
  struct Entry {
    Slot slot;
    int32_t place;
  };
  size_t at(Slot slot) const {
    const size_t mask = entries_.size() - 1;
    size_t at = (static_cast<uint32_t>(slot) * 2'654'435'769u >> 8) & mask;
    while (entries_[at].slot != slot && entries_[at].slot >= 0) at = (at + 1) & mask;
    return at;
  }
  std::vector<Entry> entries_;
};

// A word in training.
struct ComposedWord {
  Slot slot = 0;
  std::vector<uint32_t> numbers;  // of its rows, its own first
  std::vector<float*> rows;       // likewise
  int32_t blocks = 0;             // that it was planned for
  bool is_composed = false;
  float* trained = nullptr;  // where it is trained: its own row where that is all it has
  float* change = nullptr;   // in place: what the mean was, then how far it moved; else its slope
  AlignedBuffer<float> memory;
};

struct ComposedBlock {
  WindowPlan plan;
  bool there = false;
  WordPlaces places;
  std::vector<int32_t> columns;  // of each column: which word it is
  std::vector<int32_t> words;    // each once
  std::vector<float*> entering;  // rows of those that have yet to be composed
};

class SubwordWorker final : public ModelWorker {
 public:
  SubwordWorker(const WindowOptions& windows, Parameters& parameters, std::unique_ptr<PairKernel> kernel)
      : parameters_(parameters),
        dim_(static_cast<int32_t>(parameters.dim())),
        stride_(static_cast<size_t>(parameters.input.rows.stride())),
        in_place_(parameters.options.optimizer == OptimizerKind::kSgd),
        planner_(windows),
        weights_(windows),
        block_(parameters, std::move(kernel)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    now_.there = false;
    plan();
    std::swap(now_, next_);
    while (now_.there) {
      plan();
      compose();
      run(lr, stats);
      share_out(lr, stats.refused > 0);
      std::swap(now_, next_);
    }
    return stats;
  }

  Result<StepStats> settle() override {
    block_.settle();
    return StepStats();
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  ComposedWord& word(int32_t place) { return words_[static_cast<size_t>(place)]; }

  // Plans next_: words that now_ has stay as they are, others get a place and their rows.
  void plan() {
    next_.columns.clear();
    next_.words.clear();
    next_.entering.clear();
    next_.there = planner_.next(next_.plan);
    if (!next_.there) return;
    next_.places.begin(next_.plan.columns.size());
    for (const Slot slot : next_.plan.columns) parameters_.subwords->expect(slot);
    for (const Slot slot : next_.plan.columns) {
      int32_t& place = next_.places[slot];
      if (place < 0) {
        place = place_of(slot);
        next_.words.push_back(place);
      }
      next_.columns.push_back(place);
    }
  }

  int32_t place_of(Slot slot) {
    // The state of other optimisers needs slopes taken at the rows as they are: one block at a time.
    const int32_t known = in_place_ && now_.there ? now_.places.find(slot) : -1;
    if (known >= 0 && word(known).blocks < kBlocksMax) {
      ++word(known).blocks;
      return known;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(words_.size()));
      words_.emplace_back();
    }
    const int32_t place = free_.back();
    free_.pop_back();
    find_rows(slot, word(place));
    next_.entering.insert(next_.entering.end(), word(place).rows.begin(), word(place).rows.end());
    return place;
  }

  void find_rows(Slot slot, ComposedWord& word) {
    word.slot = slot;
    word.blocks = 1;
    word.is_composed = false;
    word.numbers.assign(1, static_cast<uint32_t>(slot));
    word.rows.assign(1, parameters_.input.rows.row(slot));
    for (const uint32_t row : parameters_.subwords->rows_of(slot)) {
      word.numbers.push_back(row);
      word.rows.push_back(parameters_.subwords->table.rows.row(row));
    }
  }

  // Rows of words and of n-grams share their locks.
  std::span<const Slot> locks_of(const ComposedWord& word) {
    if (RowLocks::kLocking) locked_.assign(word.numbers.begin(), word.numbers.end());
    return locked_;
  }

  bool trains_alone(const ComposedWord& word) const { return in_place_ && word.rows.size() == 1; }

  void compose() {
    for (const int32_t place : now_.words)
      if (!word(place).is_composed) compose(word(place));
  }

  void compose(ComposedWord& word) {
    word.is_composed = true;
    word.trained = word.rows[0];
    if (trains_alone(word)) return;
    word.trained = word.memory.reserve(2 * stride_);
    word.change = word.trained + stride_;
    const RowLocks::Guard guard(parameters_.locks, locks_of(word), {});
    mean_of_rows(word.rows.data(), static_cast<int32_t>(word.rows.size()), dim_, word.trained);
    if (in_place_)
      std::memcpy(word.change, word.trained, stride_ * sizeof(float));  // what it was
    else
      std::memset(word.change, 0, stride_ * sizeof(float));
  }

  void run(float lr, StepStats& stats) {
    weights_.fill(now_.plan, block_);
    if (next_.there) {
      block_.expect({}, next_.plan.negatives);
      block_.expect({}, next_.plan.columns);
      block_.expect_rows(next_.entering);
    }
    x_.clear();
    dx_.clear();
    locked_.clear();
    for (const int32_t place : now_.columns) {
      const ComposedWord& word = this->word(place);
      x_.push_back(word.trained);
      dx_.push_back(in_place_ ? word.trained : word.change);
      if (RowLocks::kLocking && trains_alone(word)) locked_.push_back(word.slot);
    }
    const RowLocks::Guard guard(parameters_.locks, locked_, block_.outputs());
    const PairBlockResult result = in_place_ ? block_.run_sgd(x_, dx_.data(), lr) : block_.run(x_, dx_.data(), lr);
    count_block(result, now_.plan.pairs, stats);
  }

  // Adds to its rows what each word has moved that does not stay for next_. `refused`: there may be a mean that is not
  // finite.
  void share_out(float lr, bool refused) {
    for (const int32_t place : now_.words) {
      ComposedWord& word = this->word(place);
      if (next_.there && next_.places.find(word.slot) == place) continue;
      free_.push_back(place);
      if (trains_alone(word)) continue;
      if (in_place_) subtract_from(word.trained, dim_, word.change);
      if (refused && !std::isfinite(mean_square(word.change, dim_))) continue;
      const RowLocks::Guard guard(parameters_.locks, locks_of(word), {});
      if (in_place_)
        add_to_rows(word.change, dim_, word.rows.data(), static_cast<int32_t>(word.rows.size()));
      else
        step_rows(word, lr);
    }
  }

  void step_rows(const ComposedWord& word, float lr) {
    parameters_.input.optimizer->step(word.numbers[0], word.change, lr, word.rows[0]);
    for (size_t i = 1; i < word.rows.size(); ++i)
      parameters_.subwords->table.optimizer->step(word.numbers[i], word.change, lr, word.rows[i]);
  }

  Parameters& parameters_;
  const int32_t dim_;
  const size_t stride_;
  const bool in_place_;  // plain SGD: means take their steps themselves
  WindowPlanner planner_;
  SkipGramWeights weights_;
  BlockStep block_;
  ComposedBlock now_, next_;
  std::vector<ComposedWord> words_;
  std::vector<int32_t> free_;  // places in words_
  std::vector<const float*> x_;
  std::vector<float*> dx_;
  std::vector<Slot> locked_;  // of builds that lock rows
};

}  // namespace

std::unique_ptr<ModelWorker> make_subword_worker(const WindowOptions& windows, Parameters& parameters,
                                                 std::unique_ptr<PairKernel> kernel) {
  STREAMVEC_CHECK(parameters.subwords.has_value());
  return std::make_unique<SubwordWorker>(windows, parameters, std::move(kernel));
}

}  // namespace streamvec
