// Skip-gram for tables of which a node has only a share: text is trained on in sections of some blocks, on copies of
// the rows that a section needs, and what has changed goes back. Rows of the next section are asked for before this one
// is trained on, so that they travel meanwhile. One worker alone takes the very steps of make_model_worker's, but for
// rounding: what it has sent while rows were on their way is added to them here.
#pragma once

#include <functional>
#include <memory>

#include "streamvec/model/model.h"
#include "streamvec/model/remote_rows.h"

namespace streamvec {

struct ShardedOptions {
  ModelOptions model;  // sgns, with SGD
  int64_t dim = 0;
  int32_t blocks = 48;  // of a section, some thousand words; fewer: fresher rows, and more of them travel for each word
  // What is sent of a row's change where several workers train at once (sync/combiner.h, kDamped): by its key, the
  // words trained times their rate, and the mean square length of the rows that it meets. None: all of it.
  std::function<float(uint32_t row, double trained, double square)> share;
};

// `rows` are borrowed. An error of theirs makes every further step do nothing; settle() tells it.
Result<std::unique_ptr<ModelWorker>> make_sharded_sgns_worker(const ShardedOptions& options, RemoteRows& rows);

}  // namespace streamvec
