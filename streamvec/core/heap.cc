#include "streamvec/core/heap.h"

#include <cstdlib>  // tells whether it is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace streamvec {

void return_large_blocks() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

void keep_large_blocks() {
#ifdef __GLIBC__
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

void return_free_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace streamvec
