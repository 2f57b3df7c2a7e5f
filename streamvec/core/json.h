// JSON from text and to text, compiled once for all: in each source that has nlohmann's own parser and writer they take
// two seconds of compiling. Neither throws.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace streamvec {

// What `text` says; a discarded value, which is of no type (is_object() is false, too), where it is not JSON.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

// On one line, or with `indent` spaces a level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);
// A member that is a whole number. Throws as the library does where it is none. (Its own conversion takes 1e300 for
// one.)
int64_t whole_number(const nlohmann::json& object, const char* name);
// What comes back of `value` when its text is read: for comparing with what was.
nlohmann::json read_back(const nlohmann::json& value);

}  // namespace streamvec
