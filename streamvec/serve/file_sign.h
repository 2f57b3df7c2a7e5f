// What tells a file from another that takes its place under the same path.
#pragma once

#include <string>

namespace streamvec {

// Differs once `path` is another file or has been written to; "" when there is none.
std::string sign_of_file(const std::string& path);

}  // namespace streamvec
