// Work on many rows in parts, with the help of a crew where there is one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "streamvec/core/crew.h"

namespace streamvec {

// Into how many parts work on so many rows is worth dividing: waking a thread costs as much as some 50 rows. More than
// there are threads, so that none waits long for one that came late.
inline int64_t parts_of(const Crew* crew, size_t rows) {
  constexpr int64_t kRowsMin = 512;  // of a part
  if (crew == nullptr) return 1;
  return std::clamp<int64_t>(static_cast<int64_t>(rows) / kRowsMin, 1, 2 * (crew->helpers() + 1));
}

template <typename Work>
void share_work(Crew* crew, int64_t parts, Work&& work) {
  if (crew != nullptr) return crew->share(parts, work);
  for (int64_t i = 0; i < parts; ++i) work(i);
}

}  // namespace streamvec
