// Model directories as commands meet them.
#pragma once

#include <string>
#include <vector>

#include "apps/streamvec/options.h"
#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec::cli {

// The newest complete checkpoint of `directory`. Damaged ones that were passed over are noted on standard error.
Result<Snapshot> open_model(const std::string& directory);

// Says on standard error, in one line, which words the model has made from their spelling, and which ones it does not
// know. Nothing when there are none.
void name_unseen(const std::vector<std::string>& unseen);
void name_unknown(const std::vector<std::string>& unknown, const std::string& directory);

}  // namespace streamvec::cli
