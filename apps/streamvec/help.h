// Help texts, made from the table of options.h. Every text ends with a line end.
#pragma once

#include <string>

#include "apps/streamvec/options.h"

namespace streamvec::cli {

std::string greeting();  // what bare `streamvec` shows: two examples and where to read on
std::string overview();  // all commands, a line each
std::string help_of(const Command& command);

}  // namespace streamvec::cli
