// A batch of skip-gram pairs and its plan: each distinct word of a side once, in alphabetical order, cut among threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/model/skip_gram_loss.h"
#include "streamvec/model/spelling.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct RbsgBatch {
  enum class Negatives {
    kPool,     // all pairs meet all of them, with the weight of `negatives` draws a pair: a few hundred are enough
    kPerPair,  // pair i meets its own, negatives[i * n] .. negatives[i * n + n - 1]: the plain form, for comparison
  };
  std::vector<Slot> centres, contexts;  // pair i is centres[i], contexts[i]
  std::vector<Slot> negatives;          // repetitions in a pool count as often as they are there
  Negatives form = Negatives::kPool;
  bool told_at_once = false;  // what came of it is waited for, also where it is trained elsewhere

  int64_t pairs() const { return static_cast<int64_t>(centres.size()); }
};

// The order of spellings that puts words with a common beginning side by side: a permutation of 0 .. words.size() - 1.
void order_by_spelling(std::span<const std::span<const CharacterId>> words, std::vector<int32_t>& order);
// Where to cut words in that order into `parts` runs with about equally many distinct beginnings: parts + 1 places.
void cut_evenly(std::span<const std::span<const CharacterId>> ordered, int32_t parts, std::vector<int32_t>& cuts);

// Keeps its memory from batch to batch.
class RbsgPlan {
 public:
  struct Side {
    std::vector<Slot> slots;                          // distinct, in order
    std::vector<std::span<const CharacterId>> words;  // their spellings
    std::vector<int32_t> cuts;                        // parts are words[cuts[t]] .. words[cuts[t + 1] - 1]
    std::vector<Slot> met;                            // as first met
    std::vector<int32_t> rows;                        // by slot: row + 1 of this batch, else 0
  };
  // `weight` is what all negatives of a pool weigh for one pair.
  void build(const RbsgBatch& batch, float weight, std::span<const Spelling> spellings, int32_t parts);

  Side sides[2];                         // of centres; of contexts and negatives
  std::vector<VectorPair> pairs, apart;  // what belongs together; what does not (kPerPair)
  NegativePool pool;                     // (kPool)

 private:
  void collect(std::span<const Slot> slots, Side& side);
  void arrange(std::span<const Spelling> spellings, int32_t parts, Side& side);

  std::vector<std::span<const CharacterId>> met_words_;
  std::vector<int32_t> order_;
};

}  // namespace streamvec
