// A stream that several readers share (shared=1): it is cut into splits, each split has one reader at a time, and
// whoever gets one goes on where the last one stood.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Which splits are one reader's. All who have the same list of readers agree on it without a word.
struct Splits {
  uint64_t self = 0;
  std::vector<uint64_t> readers;  // all of them, `self` too; none: the only reader, which has every split

  bool has(uint64_t split) const { return readers.empty() || reader_of(split, readers) == self; }

  // Rendezvous hashing (Thaler, Ravishankar 1998): when a reader comes or goes, only its own splits move.
  // REQUIRES: readers is not empty.
  static uint64_t reader_of(uint64_t split, const std::vector<uint64_t>& readers) {
    uint64_t best = readers.front(), most = 0;
    for (const uint64_t reader : readers)
      if (const uint64_t weight = mix(split, reader); weight >= most) most = weight, best = reader;
    return best;
  }
};

// The cursor of a shared source, of whichever kind: how far each split is read, in a number that rises. Splits of other
// readers stand in it where they stood when this one began.
struct SharedCursor {
  std::vector<int64_t> splits;
  int64_t bytes = 0;  // Source::bytes_read()

  std::string text() const;
  // kInvalidArgument for what is none.
  static Result<SharedCursor> parse(const std::string& text);
  // Takes over what another reader knows to be further, split by split; there may be more of them by now.
  void merge(const SharedCursor& other);
};

}  // namespace streamvec
