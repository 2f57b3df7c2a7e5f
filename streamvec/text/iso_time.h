// Dates as web pages write them for machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace streamvec {

// Seconds since 1970 of an ISO 8601 date in any of its usual spellings: 2024-05-01, 2024/5/1, 20240501, with or without
// a time (T or a space, seconds and their fraction optional, am/pm not), with or without Z, +09:00, +0900, +09 or
// " UTC"; without one, UTC is meant. White space around it, and anything that follows, is passed over. Nothing for
// other text, dates that do not exist, and years before 1900 or past 2200.
std::optional<int64_t> parse_iso_time(std::string_view text);

}  // namespace streamvec
