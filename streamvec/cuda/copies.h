// What goes between the host's memory and the card's, counted in the one place that copies (memory.cuh). Thread-safe.
#pragma once

#include <cstdint>

namespace streamvec::cuda {

// Since the program began.
struct Copies {
  int64_t to_card = 0, from_card = 0;              // bytes
  int64_t to_card_count = 0, from_card_count = 0;  // calls
};
Copies copies_so_far();

// For memory.cuh.
void count_copy(bool to_card, int64_t bytes);

}  // namespace streamvec::cuda
