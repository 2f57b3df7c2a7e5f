// Memory whose size somebody has chosen, with an option or in a file: it is asked for before it is taken, so that a
// size this machine does not have is an error with both figures and not the end of the program.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// Bytes that the process can still take: what the system has to give without swapping, or what limits of the process
// (ulimit -v) and of its control groups leave where that is less. Others may take of it meanwhile.
int64_t available_memory();
// Bytes of memory that the process has now, as the system counts them; 0 where it does not say.
int64_t resident_memory();

// kResourceExhausted: "no memory for WHAT: N MB are needed, M MB are free; try ADVICE".
Status no_memory(std::string_view what, double bytes, std::string_view advice);
// The same when `bytes` are more than is free.
Status check_memory(std::string_view what, double bytes, std::string_view advice);

// `count` values as T() makes them, or the same error. REQUIRES: count >= 0.
template <typename T>
Result<std::vector<T>> make_values(int64_t count, std::string_view what, std::string_view advice) {
  const double bytes = static_cast<double>(count) * sizeof(T);
  STREAMVEC_RETURN_IF_ERROR(check_memory(what, bytes, advice));
  try {
    return std::vector<T>(static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {  // somebody was faster, or the system counts otherwise
    return no_memory(what, bytes, advice);
  }
}

}  // namespace streamvec
