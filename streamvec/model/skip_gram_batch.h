// Skip-gram with negative sampling as a fixed function of its rows, for methods that need the same function again and
// again (L-BFGS): text is kept as slots, and what is drawn for a portion of it (subsampling, windows, negatives) is
// drawn from the portion's own seed, so that it is the same every time and everywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/model/window_plan.h"
#include "streamvec/optim/portioned_objective.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {

// Rows: 2 * slot in the input table, 2 * slot + 1 in the output table. The value is the loss summed over pairs, as
// reported elsewhere, and the weight their number. Thread-safe once all text is added.
class SkipGramBatch final : public PortionedObjective {
 public:
  struct Options {
    int32_t window = 5, negatives = 10;
    // Negatives drawn for a portion, which all its pairs meet; 0: so many that the portions together draw each word
    // some 8 times on average, 256 to 2,048. Fewer: rows are fitted to pairs that nothing weighs against.
    int32_t pool = 0;
    int64_t portion_words = 20'000;  // about; less: spreads more evenly, and more rows travel for each word
    uint64_t seed = 1;
  };
  // REQUIRES: portion_words > 0, pool >= 0.
  SkipGramBatch(const Options& options, std::shared_ptr<const SamplingTables> tables)
      : options_(options), tables_(std::move(tables)) {}

  // Text in order; where a sentence ends a portion may end. Takes about 4 bytes a word.
  void add(const Chunk& chunk);
  int64_t words() const { return words_; }
  int32_t pool() const;          // negatives of a portion, now
  uint64_t fingerprint() const;  // of text and options

  int64_t portions() const override { return static_cast<int64_t>(text_.size()); }
  std::unique_ptr<PortionWorker> make_worker() const override;

 private:
  class Worker;
  const Options options_;
  const std::shared_ptr<const SamplingTables> tables_;
  std::vector<Chunk> text_;  // by portion
  int64_t words_ = 0;
};

}  // namespace streamvec
