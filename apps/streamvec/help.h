// Help texts, made from the table of options.h. Texts of several lines end with a line end.
#pragma once

#include <string>

#include "apps/streamvec/options.h"

namespace streamvec::cli {

std::string greeting();  // what bare `streamvec` shows: two examples and where to read on
std::string overview();  // all commands, a line each
std::string help_of(const Command& command);
// What is said of an option: its meaning, whether it may be repeated, its default. One line, without an end.
std::string explained(const Option& option);

}  // namespace streamvec::cli
