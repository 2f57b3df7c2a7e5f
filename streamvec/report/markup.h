// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace streamvec {

// `text` as content or as the value of a quoted attribute: markup in it is shown, not obeyed. Control characters that
// XML does not allow become U+FFFD, as does what is no UTF-8.
std::string escaped(std::string_view text);

// `value` with about `digits` significant digits, without an exponent where people would not write one; thousands are
// parted by commas. A dash for what is not finite.
std::string number_text(double value, int digits = 3);

}  // namespace streamvec
