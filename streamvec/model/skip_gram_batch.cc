#include "streamvec/model/skip_gram_batch.h"

#include <algorithm>

#include "streamvec/core/random.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/skip_gram_loss.h"

namespace streamvec {

void SkipGramBatch::add(const Chunk& chunk) {
  int32_t begin = 0;
  for (const int32_t end : chunk.sentence_ends) {
    if (text_.empty() || static_cast<int64_t>(text_.back().slots.size()) >= options_.portion_words)
      text_.emplace_back();
    Chunk& last = text_.back();
    last.slots.insert(last.slots.end(), chunk.slots.begin() + begin, chunk.slots.begin() + end);
    last.sentence_ends.push_back(static_cast<int32_t>(last.slots.size()));
    words_ += end - begin;
    begin = end;
  }
}

int32_t SkipGramBatch::pool() const {
  constexpr int64_t kDrawsOfWord = 8, kPoolMin = 256, kPoolMax = 2'048;
  if (options_.pool > 0) return options_.pool;
  const auto words = static_cast<int64_t>(tables_->negatives.ends().size());
  return static_cast<int32_t>(std::clamp(kDrawsOfWord * words / std::max<int64_t>(portions(), 1), kPoolMin, kPoolMax));
}

uint64_t SkipGramBatch::fingerprint() const {
  uint64_t hash = mix(options_.seed, static_cast<uint64_t>(options_.window), options_.negatives, options_.pool,
                      options_.portion_words);
  for (const Chunk& chunk : text_) {
    for (const Slot slot : chunk.slots) hash = mix(hash ^ static_cast<uint64_t>(slot));
    hash = mix(hash, chunk.sentence_ends.size());
  }
  return hash;
}

class SkipGramBatch::Worker final : public PortionWorker {
 public:
  explicit Worker(const SkipGramBatch& batch)
      : batch_(batch),
        planner_(settled({.window = batch.options_.window,
                          .negatives = batch.options_.negatives,
                          .centres = 0,
                          .negatives_shared = 1})) {}

  void begin(int64_t portion, std::vector<uint32_t>& rows) override {
    Random random(mix(batch_.options_.seed, kPortionDraws, static_cast<uint64_t>(portion)));
    draw_pairs(batch_.text_[static_cast<size_t>(portion)], random);
    draw_pool(portion, random);
    name_rows(rows);
  }

  PortionValue add_gradient(MatrixView<const float> values, MatrixView<float> gradient) override {
    const MatrixView<const float> inputs{values.data, inputs_, values.cols, values.stride};
    const MatrixView<const float> outputs{values.row(inputs_), values.rows - inputs_, values.cols, values.stride};
    const MatrixView<float> slopes = slopes_.reserve_zeroed(values.rows, values.cols);
    const MatrixView<float> input_slopes{slopes.data, inputs_, slopes.cols, slopes.stride};
    const MatrixView<float> output_slopes{slopes.row(inputs_), values.rows - inputs_, slopes.cols, slopes.stride};
    if (pairs_.empty()) return {};
    PortionValue value;
    value.value = loss_.climb_pairs(pairs_, true, inputs, outputs, input_slopes, output_slopes);
    value.value += loss_.climb_pool(pairs_, pool_, inputs, outputs, input_slopes, output_slopes);
    value.weight = static_cast<double>(pairs_.size());
    for (int64_t i = 0; i < values.rows; ++i)  // slopes are those of -loss
      add_scaled(slopes.row(i), -1, static_cast<int32_t>(values.cols), gradient.row(i));
    return value;
  }

 private:
  // Where among some rows a slot's row of one table is; a slot that is new adds its row.
  class PlacesOfSlots {
   public:
    void begin(const std::vector<uint32_t>& rows, uint32_t table) {
      first_ = rows.size();
      table_ = table;
    }
    int32_t of(Slot slot, std::vector<uint32_t>& rows) {
      const auto at = static_cast<size_t>(slot);
      if (at >= places_.size()) places_.resize(at + 1, -1);
      if (places_[at] < 0) {
        places_[at] = static_cast<int32_t>(rows.size() - first_);
        rows.push_back(2 * static_cast<uint32_t>(slot) + table_);
        named_.push_back(slot);
      }
      return places_[at];
    }
    void end() {
      for (const Slot slot : named_) places_[static_cast<size_t>(slot)] = -1;
      named_.clear();
    }

   private:
    size_t first_ = 0;
    uint32_t table_ = 0;
    std::vector<int32_t> places_;  // by slot; -1 none
    std::vector<Slot> named_;
  };

  static constexpr double kAlmostOne = 1 - 0x1p-53;
  static constexpr uint64_t kPortionDraws = 0x62a7c4;  // apart from the draws of first rows and pieces of text

  // Pairs of slots, of which name_rows() makes places.
  void draw_pairs(const Chunk& text, Random& random) {
    pairs_.clear();
    planner_.begin(text, *batch_.tables_, random);
    for (WindowPlan& plan = plan_; planner_.next(plan);)
      for (const WindowPlan::Window& window : plan.windows)
        for (int32_t column = window.begin; column < window.end; ++column)
          if (column != window.centre)
            pairs_.push_back(
                {plan.columns[static_cast<size_t>(column)], plan.columns[static_cast<size_t>(window.centre)]});
  }

  // All portions together draw as one: each takes another part of every stratum, so that no word that is frequent
  // enough to be drawn once is missing in all of them.
  void draw_pool(int64_t portion, Random& random) {
    const int32_t size = batch_.pool();
    drawn_.clear();
    for (int32_t k = 0; k < size; ++k) {
      const double part = (static_cast<double>(portion) + random.uniform()) / static_cast<double>(batch_.portions());
      const double at = std::min((k + part) / size, kAlmostOne);
      drawn_.push_back(batch_.tables_->negatives.invert(static_cast<uint64_t>(at * 0x1p64)));
    }
    pool_.outputs.clear();
    pool_.weights.clear();
    const float weight = static_cast<float>(batch_.options_.negatives) / static_cast<float>(size);
    for (const Slot slot : drawn_) {  // in rising order
      if (pool_.outputs.empty() || pool_.outputs.back() != slot) {
        pool_.outputs.push_back(slot);
        pool_.weights.push_back(0);
      }
      pool_.weights.back() += weight;
    }
  }

  // Inputs come first, then outputs, both in the order in which pairs and pool name them.
  void name_rows(std::vector<uint32_t>& rows) {
    rows.clear();
    input_places_.begin(rows, 0);
    for (VectorPair& pair : pairs_) pair.centre = input_places_.of(pair.centre, rows);
    input_places_.end();
    inputs_ = static_cast<int64_t>(rows.size());
    output_places_.begin(rows, 1);
    for (VectorPair& pair : pairs_) pair.output = output_places_.of(pair.output, rows);
    for (int32_t& output : pool_.outputs) output = output_places_.of(output, rows);
    output_places_.end();
  }

  const SkipGramBatch& batch_;
  WindowPlanner planner_;
  WindowPlan plan_;
  SkipGramLoss loss_;
  std::vector<VectorPair> pairs_;
  NegativePool pool_;
  std::vector<Slot> drawn_;
  PlacesOfSlots input_places_, output_places_;
  int64_t inputs_ = 0;
  RowBuffer slopes_;
};

std::unique_ptr<PortionWorker> SkipGramBatch::make_worker() const {
  return std::make_unique<Worker>(*this);
}

}  // namespace streamvec
