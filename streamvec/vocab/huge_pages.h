// Memory for tables that are read all over the place: on large pages, so that a look-up does not wait for its page too.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace streamvec {

// An allocator for std::vector: blocks of 2 MB and more are aligned and advised as huge pages, smaller ones are plain.
template <typename T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr size_t kHugePageBytes = size_t{1} << 21;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePageBytes) return static_cast<T*>(::operator new (bytes, std::align_val_t{64}));
    const auto alignment = std::align_val_t{kHugePageBytes};
    void* memory = ::operator new(bytes, alignment);
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // advice: what the kernel does not grant is only slower
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    const bool huge = count * sizeof(T) >= kHugePageBytes;
    ::operator delete (memory, std::align_val_t{huge ? kHugePageBytes : 64});
  }
  template <typename U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }
};

}  // namespace streamvec
