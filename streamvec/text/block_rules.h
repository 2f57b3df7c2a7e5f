// What a single block of text is by itself, whatever stands around it.
#pragma once

#include <string_view>

#include "streamvec/text/html_text.h"

namespace streamvec {

// Mostly links.
inline bool is_link_heavy(const TextMeasure& measure) {
  return measure.link_length * 2 > measure.length;
}

// Long enough and with few enough links to be running text.
inline bool is_prose(const TextMeasure& measure) {
  if (measure.link_length * 3 > measure.length) return false;
  return measure.length >= 80 || (measure.length >= 25 && measure.stops + measure.commas > 0);
}

// A time, a date in digits, a counter: at most ten bytes of digits and marks.
bool is_bare_number(std::string_view text);

// A line that sites put around articles ("Read more", "Share this", "© 2024 ..."): short, and starting with one of the
// phrases known for it in a dozen languages.
bool is_stock_phrase(std::string_view text, const TextMeasure& measure);

}  // namespace streamvec
