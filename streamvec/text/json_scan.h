// Single strings out of JSON that may be broken, without reading all of it as JSON.
#pragma once

#include <string>
#include <string_view>

namespace streamvec {

// The string of the first member named `name` that has one, as written, escapes not decoded; "" when there is none.
// Names inside strings do not count as long as the quotes pair up. Linear in the text.
std::string_view json_string(std::string_view json, std::string_view name);

// The text of such a string: escapes decoded, tags in it dropped, white space collapsed, a paragraph a line.
std::string json_text(std::string_view raw);

}  // namespace streamvec
