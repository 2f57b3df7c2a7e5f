// Text as slots: what replay keeps and models train on.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Words outside the vocabulary are left out.
struct Chunk {
  std::vector<Slot> slots;
  std::vector<int32_t> sentence_ends;  // rising indexes into slots; windows do not cross them

  void clear() {
    slots.clear();
    sentence_ends.clear();
  }
};

}  // namespace streamvec
