// What a shell and a manual say of the program, made from the table of options.h as its help is.
#pragma once

#include <string>
#include <string_view>

namespace streamvec::cli {

// streamvec(1), in the language of man(7).
std::string man_page(std::string_view version);
// For bash: commands, their options, the words that an option may be; files elsewhere. To be sourced.
std::string bash_completion();

}  // namespace streamvec::cli
