// The hybrid model's worker: skip-gram on the tables, and the generator's teaching (hybrid.h). Taught by moves, some
// text at a time: before it rows take up what others have moved, after it they share their own moves. Taught by rows,
// a share of distilling after each chunk, which gives rare words' rows something back.
#include <algorithm>

#include "streamvec/model/hybrid.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

// Words trained on at a time, by all threads: what they move by meanwhile others do not know, and n-grams that many of
// them have then move too far.
constexpr size_t kWordsAtATime = 2'000, kWordsLeast = 250;

// Each word once, with how often the text has it.
class Visits {
 public:
  void count(std::span<const Slot> slots) {
    size_t size = 64;
    while (size < 2 * slots.size()) size *= 2;
    places_.assign(size, kNone);
    words_.clear();
    for (const Slot slot : slots) {
      int32_t& place = entry_of(slot);
      if (place == kNone) {
        place = static_cast<int32_t>(words_.size());
        words_.push_back({slot, 0});
      }
      ++words_[static_cast<size_t>(place)].times;
    }
  }
  std::span<const VisitedWord> words() const { return words_; }

 private:
  static constexpr int32_t kNone = -1;
  int32_t& entry_of(Slot slot) {
    const size_t mask = places_.size() - 1;
    size_t at = (static_cast<uint32_t>(slot) * 2'654'435'769u >> 8) & mask;
    while (places_[at] != kNone && words_[static_cast<size_t>(places_[at])].slot != slot) at = (at + 1) & mask;
    return places_[at];
  }
  std::vector<int32_t> places_;  // in words_, by hash
  std::vector<VisitedWord> words_;
};

class HybridWorker final : public ModelWorker {
 public:
  HybridWorker(std::unique_ptr<ModelWorker> tables, Parameters& parameters)
      : tables_(std::move(tables)),
        parameters_(parameters),
        words_at_a_time_(
            std::max(kWordsAtATime / static_cast<size_t>(std::max(parameters.options.threads, 1)), kWordsLeast)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    if (parameters_.hybrid->by_moves()) return step_by_moves(chunk, tables, lr, random);
    const StepStats stats = tables_->step(chunk, tables, lr, random);
    parameters_.hybrid->learn(chunk, parameters_);
    return stats;
  }

  StepStats step_noted(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                       const ChunkNote& note) override {
    if (parameters_.hybrid->by_moves()) return ModelWorker::step_noted(chunk, tables, lr, random, note);
    const StepStats stats = tables_->step_noted(chunk, tables, lr, random, note);
    parameters_.hybrid->learn(chunk, parameters_);
    return stats;
  }

  std::vector<ChunkStats> told() override {
    return parameters_.hybrid->by_moves() ? ModelWorker::told() : tables_->told();
  }

  bool failed() const override { return tables_->failed(); }
  Result<StepStats> settle() override { return tables_->settle(); }

  std::string kernel_name() const override { return tables_->kernel_name(); }

 private:
  StepStats step_by_moves(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) {
    StepStats all;
    size_t end_of_sentence = 0;  // in sentence_ends
    for (size_t begin = 0; begin < chunk.slots.size();) {
      const size_t end = std::min(begin + words_at_a_time_, chunk.slots.size());
      part_.clear();
      part_.slots.assign(chunk.slots.begin() + static_cast<int64_t>(begin),
                         chunk.slots.begin() + static_cast<int64_t>(end));
      const auto ends_here = [&] {
        return end_of_sentence < chunk.sentence_ends.size() &&
               static_cast<size_t>(chunk.sentence_ends[end_of_sentence]) <= end;
      };
      for (; ends_here(); ++end_of_sentence)
        part_.sentence_ends.push_back(chunk.sentence_ends[end_of_sentence] - static_cast<int32_t>(begin));
      if (part_.sentence_ends.empty() || static_cast<size_t>(part_.sentence_ends.back()) < end - begin)
        part_.sentence_ends.push_back(static_cast<int32_t>(end - begin));
      add(step_part(tables, lr, random), all);
      begin = end;
    }
    return all;
  }

  StepStats step_part(const SamplingTables& tables, float lr, Random& random) {
    visits_.count(part_.slots);
    parameters_.hybrid->take_up(visits_.words(), parameters_, scratch_);
    const StepStats stats = tables_->step(part_, tables, lr, random);
    parameters_.hybrid->share_moves(visits_.words(), parameters_, scratch_);
    return stats;
  }

  static void add(const StepStats& stats, StepStats& all) {
    all.pairs += stats.pairs;
    all.loss += stats.loss;
    all.slope += stats.slope;
    all.refused += stats.refused;
  }

  std::unique_ptr<ModelWorker> tables_;
  Parameters& parameters_;
  const size_t words_at_a_time_;
  Chunk part_;
  Visits visits_;
  Hybrid::Scratch scratch_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_hybrid_worker(Parameters& parameters, std::unique_ptr<ModelWorker> tables) {
  if (parameters.hybrid == nullptr) return tables;
  return std::make_unique<HybridWorker>(std::move(tables), parameters);
}

}  // namespace streamvec
