// A time as feeds, brokers and files write it.
#pragma once

#include <cstdint>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

// Seconds since 1970, UTC, of:
// - RFC 3339 and what ISO 8601 has beside it: "2024-05-01T12:30:00.25+02:00", "2024-05-01 12:30Z", "20240501T123000Z";
// - a date without a time, which is its first second: "2024-05-01", "2024-05", "2024", "20240501"; a month or day 00
//   (not known) is the first;
// - RFC 2822 and 850: "Wed, 01 May 2024 12:30:00 +0200", "1 May 24 12:30 GMT" (a weekday is not looked at);
// - a number since 1970 in seconds, or in ms, us or ns when it is as large as those are: "1714559400", "1714559400123".
// A time without a zone is UTC; fractions are cut off; blanks around it do not matter. kInvalidArgument for anything
// else, and for what is outside of the years 1 to 9999. Four digits are a year, eight a date if they can be one.
Result<int64_t> parse_time(std::string_view text);

// The same for a number: seconds up to 1e11 (the year 5138), then ms, us and ns, each a thousand times more.
Result<int64_t> time_of_number(double value);

}  // namespace streamvec
