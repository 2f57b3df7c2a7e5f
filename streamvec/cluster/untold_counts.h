// What a node has counted and the leader has not told it again as part of everybody's counts: with the leader it would
// be lost, so it is kept until then, for another one. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

class UntoldCounts {
 public:
  void reported(VocabularyReport report);
  // The leader has counted the reports up to there. `known`: the last change that was heard of before it said so; what
  // it has said of later ones has these reports in it. What they had in slots, and of words that got theirs before, is
  // kept as sums, unless the counts of all were told now.
  void answered(int64_t number, uint64_t known, bool counts_told, const StreamVocabulary& words);
  void begin(Slot slot);  // with another word

  // By slot, what unanswered reports have of words that are still there: `slots` or `met`.
  std::vector<int64_t> unanswered(std::vector<std::pair<Slot, int64_t>> VocabularyReport::*part,
                                  const StreamVocabulary& words) const;

  // The same as reports to another leader, which has had none of this node. `own`: which is this node, whose own counts
  // have already what was in slots when it was met.
  std::vector<VocabularyReport> all(const StreamVocabulary& words, bool own) const;
  static void leave_out_own(VocabularyReport& report);

 private:
  std::map<int64_t, VocabularyReport> unanswered_;  // by number
  // By slot, of reports that are answered: read in the slot, and before the word had it; trained on.
  std::vector<int64_t> inside_, outside_, met_;
  int64_t answered_ = 0;
};

}  // namespace streamvec
