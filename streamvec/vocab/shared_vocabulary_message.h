// What nodes tell each other of a vocabulary that they share: what a node has counted, and who has got a slot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/character_list.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Of a node to the one that leads: what its text had since its last report.
struct VocabularyReport {
  int64_t number = 0;  // of the node's reports, from 1 on
  uint64_t stamp = 0;  // of its vocabulary now: what `slots` mean
  double t = 0;        // of the newest text
  int64_t tokens = 0, outside = 0;
  std::vector<std::pair<Slot, int64_t>> slots;         // occurrences by slot, rising
  std::vector<std::pair<std::string, int64_t>> words;  // of words outside
  // Likewise by slot: as often as words were trained on since, for models that go by that; none for the others.
  std::vector<std::pair<Slot, int64_t>> met;

  bool empty() const { return tokens == 0 && slots.empty() && words.empty() && met.empty(); }
};

// From the one that leads to all: slots that have other words now, and now and then how frequent all words are.
struct VocabularyChanges {
  struct Change {
    Slot slot = 0;
    uint64_t born = 0;
    double count = 0;  // of the word, decayed, an occurrence now counting 1
    std::string word;
  };
  uint64_t after = 0, stamp = 0;  // the shared vocabulary's, before and after; words born at 0 are those before all
  int64_t tokens = 0;             // counted by all nodes since the stream began
  double now = 0;                 // the latest time
  std::vector<Change> changes;    // by rising slot: of slots that have changed hands several times the last
  std::vector<float> counts;      // by slot, decayed; none: not told this time
  std::vector<MetCharacter> characters = {};  // born after `after`, in their order; of vocabularies that keep them
};

std::string encode(const VocabularyReport& report);
std::string encode(const VocabularyChanges& changes);
// kInvalidArgument for bytes that encode() does not write. Take no memory for lengths that the bytes do not back.
Result<VocabularyReport> decode_vocabulary_report(std::string_view bytes);
Result<VocabularyChanges> decode_vocabulary_changes(std::string_view bytes);

}  // namespace streamvec
