// Neighbours as JSON and as lines for people.
#pragma once

#include <string>
#include <vector>

#include "apps/streamvec/output.h"
#include "streamvec/eval/neighbours.h"

namespace streamvec::cli {

Json json_of(const std::vector<Neighbour>& neighbours, const Vocabulary& vocabulary);  // [{"word", "cosine"}]
std::string lines_of(const std::vector<Neighbour>& neighbours, const Vocabulary& vocabulary);

}  // namespace streamvec::cli
