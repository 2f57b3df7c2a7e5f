// From the names on the command line to one Source. Later kinds (feeds, brokers) join the table in open.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// A name is a path (file, directory, pipe), "-" for standard input, or a URL whose scheme is known ("planted:?seed=1");
// a path that looks like a URL is written "./planted:x". Paths that follow each other are one source. Everything is
// opened before anything is read, so that a wrong name fails at once: kNotFound, kPermissionDenied, kInvalidArgument
// for no names at all, an unknown scheme (the message lists what is known), or standard input named twice.
Result<std::vector<std::unique_ptr<Source>>> open_each(const std::vector<std::string>& names);
// One source that reads them in this order. REQUIRES: at least one.
std::unique_ptr<Source> chained(std::vector<std::unique_ptr<Source>> sources);
// Both.
Result<std::unique_ptr<Source>> open_sources(const std::vector<std::string>& names);

}  // namespace streamvec
