// Skip-gram over words made of parts (Bojanowski et al. 2017): a word's vector is the mean of its own row and the rows
// of its character n-grams. As in fastText every row takes the whole step of the mean it is part of, so that the mean
// itself moves by that step.
//
// A word has some 15 rows, and moving them is most of the work. So a few neighbouring blocks form a group: each of its
// words is composed once, trained in place by all blocks of the group, and what it has moved is then added to its rows
// once. Rows of the next group are fetched meanwhile.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/skip_gram_weights.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

// Blocks of a group.
constexpr size_t kGroupBlocks = 2;

// Some blocks and the distinct words in their columns.
struct Group {
  std::vector<WindowPlan> plans;
  size_t count = 0;                           // plans in use
  std::vector<Slot> words;                    // rising
  std::vector<std::vector<int32_t>> columns;  // of each plan: which of `words` a column is
  std::vector<uint32_t> numbers;              // of the rows of all words, each word's own first
  std::vector<float*> rows;                   // likewise
  std::vector<uint32_t> row_ends;             // of each word, in `rows`
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
    plan(group_);
    while (group_.count > 0) {
      plan(next_);
      train(lr, stats);
      std::swap(group_, next_);
    }
    return stats;
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  void plan(Group& group) {
    // The state of other optimisers needs slopes taken at the rows as they are: one block at a time.
    const size_t blocks = in_place_ ? kGroupBlocks : 1;
    group.plans.resize(blocks);
    group.columns.resize(blocks);
    group.count = 0;
    group.words.clear();
    while (group.count < blocks && planner_.next(group.plans[group.count])) {
      const std::vector<Slot>& columns = group.plans[group.count++].columns;
      group.words.insert(group.words.end(), columns.begin(), columns.end());
    }
    std::sort(group.words.begin(), group.words.end());
    group.words.erase(std::unique(group.words.begin(), group.words.end()), group.words.end());
    for (size_t i = 0; i < group.count; ++i) index_columns(group, i);
    find_rows(group);
  }

  static void index_columns(Group& group, size_t plan) {
    group.columns[plan].clear();
    for (const Slot slot : group.plans[plan].columns) {
      const auto found = std::lower_bound(group.words.begin(), group.words.end(), slot);
      group.columns[plan].push_back(static_cast<int32_t>(found - group.words.begin()));
    }
  }

  void find_rows(Group& group) {
    group.numbers.clear();
    group.rows.clear();
    group.row_ends.clear();
    for (const Slot slot : group.words) {
      group.numbers.push_back(static_cast<uint32_t>(slot));
      group.rows.push_back(parameters_.input.rows.row(slot));
      for (const uint32_t row : parameters_.subwords->rows_of(slot)) {
        group.numbers.push_back(row);
        group.rows.push_back(parameters_.subwords->table.rows.row(row));
      }
      group.row_ends.push_back(static_cast<uint32_t>(group.rows.size()));
    }
  }

  std::span<float* const> rows_of(size_t word) const {
    const uint32_t begin = word == 0 ? 0 : group_.row_ends[word - 1];
    return std::span(group_.rows).subspan(begin, group_.row_ends[word] - begin);
  }

  void train(float lr, StepStats& stats) {
    name_locks();
    {
      const RowLocks::Guard guard(parameters_.locks, locked_, {});
      compose();
    }
    const int64_t refused = stats.refused;
    for (size_t i = 0; i < group_.count; ++i) run(i, lr, stats);
    const RowLocks::Guard guard(parameters_.locks, locked_, {});
    share_out(lr, stats.refused > refused);
  }

  // Rows of words and of n-grams share their locks.
  void name_locks() {
    if (RowLocks::kLocking) locked_.assign(group_.numbers.begin(), group_.numbers.end());
  }

  void compose() {
    const size_t words = group_.words.size(), size = words * stride_;
    float* memory = memory_.reserve(2 * size);
    means_ = memory;
    changes_ = memory + size;
    for (size_t i = 0; i < words; ++i) {
      const std::span<float* const> rows = rows_of(i);
      mean_of_rows(rows.data(), static_cast<int32_t>(rows.size()), dim_, means_ + i * stride_);
    }
    if (in_place_)
      std::memcpy(changes_, means_, size * sizeof(float));  // what they were
    else
      std::memset(changes_, 0, size * sizeof(float));
  }

  void run(size_t index, float lr, StepStats& stats) {
    const WindowPlan& plan = group_.plans[index];
    weights_.fill(plan, block_);
    expect(index);
    x_.clear();
    dx_.clear();
    for (const int32_t word : group_.columns[index]) {
      x_.push_back(means_ + static_cast<size_t>(word) * stride_);
      dx_.push_back((in_place_ ? means_ : changes_) + static_cast<size_t>(word) * stride_);
    }
    const RowLocks::Guard guard(parameters_.locks, {}, block_.outputs());
    const PairBlockResult result = in_place_ ? block_.run_sgd(x_, dx_.data(), lr) : block_.run(x_, dx_.data(), lr);
    if (!result.finite) {
      ++stats.refused;
      return;
    }
    stats.loss += result.loss;
    stats.slope += result.slope;
    stats.pairs += plan.pairs;
  }

  // The next block's outputs, and this block's share of the next group's rows.
  void expect(size_t index) {
    const bool last = index + 1 == group_.count;
    if (last && next_.count == 0) return;
    const WindowPlan& plan = last ? next_.plans[0] : group_.plans[index + 1];
    block_.expect({}, plan.negatives);
    block_.expect({}, plan.columns);
    const size_t begin = next_.rows.size() * index / group_.count, end = next_.rows.size() * (index + 1) / group_.count;
    block_.expect_rows(std::span(next_.rows).subspan(begin, end - begin));
  }

  // Adds to each row what the words it is part of have moved. `refused`: there may be a mean that is not finite.
  void share_out(float lr, bool refused) {
    for (size_t i = 0; i < group_.words.size(); ++i) {
      float* change = changes_ + i * stride_;
      if (in_place_) subtract_from(means_ + i * stride_, dim_, change);
      if (refused && !std::isfinite(mean_square(change, dim_))) continue;
      const std::span<float* const> rows = rows_of(i);
      if (in_place_)
        add_to_rows(change, dim_, rows.data(), static_cast<int32_t>(rows.size()));
      else
        step_rows(i, change, lr);
    }
  }

  void step_rows(size_t word, const float* slope, float lr) {
    const size_t begin = word == 0 ? 0 : group_.row_ends[word - 1], end = group_.row_ends[word];
    parameters_.input.optimizer->step(group_.numbers[begin], slope, lr, group_.rows[begin]);
    for (size_t i = begin + 1; i < end; ++i)
      parameters_.subwords->table.optimizer->step(group_.numbers[i], slope, lr, group_.rows[i]);
  }

  Parameters& parameters_;
  const int32_t dim_;
  const size_t stride_;
  const bool in_place_;  // plain SGD: means take their steps themselves
  WindowPlanner planner_;
  SkipGramWeights weights_;
  BlockStep block_;
  Group group_, next_;
  AlignedBuffer<float> memory_;
  float* means_ = nullptr;
  float* changes_ = nullptr;  // in place: what the means were, then how far they moved; else their slopes
  std::vector<const float*> x_;
  std::vector<float*> dx_;
  std::vector<Slot> locked_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_subword_worker(const WindowOptions& windows, Parameters& parameters,
                                                 std::unique_ptr<PairKernel> kernel) {
  STREAMVEC_CHECK(parameters.subwords.has_value());
  return std::make_unique<SubwordWorker>(windows, parameters, std::move(kernel));
}

}  // namespace streamvec
