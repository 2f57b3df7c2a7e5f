// Several GPUs as a group, through NVIDIA's NCCL: every rank has a card of its own. Ranks may be threads of one process
// or processes that NCCL can connect. The library is loaded when it is first asked for.
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/transport/collective.h"

namespace streamvec {

// Cards of this process. The errors of cuda::find_device().
Result<int> count_cards();

// Names a group that is to be; one rank asks for it, and the others are told. kUnavailable without NCCL.
Result<std::string> make_nccl_group();

// A rank of the group; waits until all have come. Values of all_reduce_mean() may lie in the card's memory, too, and
// then never leave it. Ranks that do not come, or stop coming, are noticed at the deadline: the group is given up then,
// as after any error. kInvalidArgument for a group that cannot be, or two ranks on one card.
// REQUIRES: 0 <= rank < ranks; no two ranks of a thread wait for each other; what writes values on the card is done.
Result<std::unique_ptr<Collective>> join_nccl_group(const std::string& group, int rank, int ranks, int card,
                                                    Deadline deadline);

}  // namespace streamvec
