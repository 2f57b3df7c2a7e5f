// How often words were trained on by all nodes that share a stream, which is all that the hybrid model's generator
// needs to know beside the rows (model/hybrid.h). The node that leads has the sum: the others tell it what they train
// on with their counts of words. They have what it has told last, and their own since then, so that one of them can
// take its place. Used by the talking thread, under the vocabulary's lock; threads that train count in the model
// meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/model/hybrid.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

class MetCounts {
 public:
  // Borrowed; nullptr of a model that goes without, for which nothing is ever due or told.
  explicit MetCounts(Hybrid* hybrid);

  void begin(Slot slot);  // with another word

  // Of one that does not lead: something was trained on, and nothing was told for a while; what was, since it was last
  // told, by rising slot.
  bool is_due(double now_s) const;
  std::vector<std::pair<Slot, int64_t>> take(double now_s, int64_t words);
  // Likewise, by slot: the leader knows of so many, and of so many more this node has told it that are not in these.
  // What is beyond the shorter one is left out.
  void told(std::span<const uint32_t> all, std::span<const int64_t> on_their_way);

  // Of the leader: what another has trained on, in slots that have kept their words; and what is to be told, when these
  // changes of hands are told with it.
  void add(const VocabularyReport& report, const StreamVocabulary& words);
  std::vector<uint32_t> all(int64_t words, const VocabularyChanges& changes) const;

 private:
  Hybrid* const hybrid_;
  std::vector<int64_t> known_;  // by slot: told, either way
  int64_t told_here_ = 0;       // of Hybrid::met_here()
  double told_s_ = 0;
};

}  // namespace streamvec
