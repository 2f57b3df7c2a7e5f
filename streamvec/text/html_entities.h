// Character references of HTML: &amp; &#8217; &#x2019; and what they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace streamvec {

// What stands at the start of `text`, which starts with "&": `code_point` and how many bytes it took. length 0: no
// reference, the "&" is itself. The names are those of HTML 4, which pages use, and a few that came later; of these the
// Latin-1 ones may lack their semicolon ("&amp", "&copy"), as may numbers. Numbers that are no character (NUL,
// surrogates, past U+10FFFF) give U+FFFD, 128 to 159 what Windows-1252 has there.
struct CharacterReference {
  char32_t code_point = 0;
  size_t length = 0;
};
CharacterReference read_reference(std::string_view text);

// Appends `text` with its references decoded; nothing else is changed. For attribute values and titles.
void append_decoded(std::string_view text, std::string& out);

}  // namespace streamvec
