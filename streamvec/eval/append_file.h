// Files that only grow, a record at a time.
#pragma once

#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Opens or makes a file whose writes go to its end.
Result<FileHandle> open_for_append(const std::string& path);

// Writes all of `bytes`, in one system call where the system takes them at once, so that readers of the growing file
// see whole records. Not synced.
Status append_all(const FileHandle& file, std::string_view bytes, const std::string& path);

}  // namespace streamvec
