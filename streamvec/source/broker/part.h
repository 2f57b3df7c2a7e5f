// What a reader has of a stream that several share: part=K/N, every Nth from the Kth on, counted from 0, for good; or
// shared=1, splits that those who take part divide among them (source/splits.h).
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/location.h"

namespace streamvec {

struct Part {
  uint64_t index = 0, count = 1;

  bool has(uint64_t number) const { return number % count == index; }

  // What the setting says; without it all. kInvalidArgument for what is none.
  static Result<Part> of(const Location& location) {
    const std::string text = location.text("part", "0/1");
    Part part;
    const char* end = text.data() + text.size();
    const auto [slash, failure] = std::from_chars(text.data(), end, part.index);
    const bool divided = failure == std::errc() && slash != end && *slash == '/';
    if (!divided || std::from_chars(slash + 1, end, part.count).ptr != end || part.index >= part.count)
      return error(Code::kInvalidArgument, location.name, ": part=", text,
                   " is no part; the first of two readers is part=0/2");
    return part;
  }
};

// Whether the setting says so. kInvalidArgument where it also has a part for good.
inline Result<bool> is_shared(const Location& location) {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t shared, location.integer("shared", 0, 0, 1));
  if (shared == 1 && !location.text("part").empty())
    return error(Code::kInvalidArgument, location.name,
                 ": shared=1 divides the stream among those that read it, and part=", location.text("part"),
                 " is a part for good; leave out one of them");
  return shared == 1;
}

}  // namespace streamvec
