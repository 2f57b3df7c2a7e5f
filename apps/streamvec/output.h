// Results on standard output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "streamvec/core/status.h"

namespace streamvec::cli {

using Json = nlohmann::ordered_json;

// Writes and flushes; an error when not everything arrived (disk full, reader gone).
Status print(const std::string& text);
// On one line. Bad UTF-8 in words becomes U+FFFD, NaN and infinities become null.
Status print_json(const Json& value);
// `value` with about 6 significant digits, so that a float prints as people write it.
double rounded(double value);

}  // namespace streamvec::cli
