// What replay keeps: a stretch of text as slots, and where it came from.
#pragma once

#include <cstdint>

#include "streamvec/vocab/chunk.h"

namespace streamvec {

struct ReplayItem {
  Chunk chunk;          // about 256 tokens, of one record where records have names
  uint64_t stamp = 0;   // the vocabulary's when the words were mapped: a token holds while born(slot) <= stamp
  uint64_t record = 0;  // hash of the record's id at its source, for deletes; 0: it has no name
  int32_t source = -1;  // the caller's number of the source
  int64_t time_s = 0;   // when the document was written, seconds since 1970; 0 unknown
  double t = 0;         // on the clock that half-lives are measured by: fading; finite

  // Without words it is no text: on its way to the replay of others it tells that its record was withdrawn.
  bool withdraws() const { return chunk.slots.empty(); }

  // Of memory, about, when the vectors have no slack.
  int64_t bytes() const {
    constexpr int64_t kOverhead = 48;  // the counts of shared ownership, the heap's own
    return static_cast<int64_t>(sizeof(ReplayItem) + chunk.slots.size() * sizeof(Slot) +
                                chunk.sentence_ends.size() * sizeof(int32_t)) +
           kOverhead;
  }
};

}  // namespace streamvec
