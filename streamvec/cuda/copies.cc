#include "streamvec/cuda/copies.h"

#include <atomic>

namespace streamvec::cuda {
namespace {

struct Counted {
  std::atomic<int64_t> bytes = 0, count = 0;
};
Counted counted_copies[2];  // from the card, to the card

}  // namespace

Copies copies_so_far() {
  const Counted &from = counted_copies[0], &to = counted_copies[1];
  return {to.bytes.load(), from.bytes.load(), to.count.load(), from.count.load()};
}

void count_copy(bool to_card, int64_t bytes) {
  Counted& counted = counted_copies[to_card ? 1 : 0];
  counted.bytes.fetch_add(bytes, std::memory_order_relaxed);
  counted.count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace streamvec::cuda
