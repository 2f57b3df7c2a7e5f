// The network that the settings of a cluster name: gRPC, MPI, or threads of this process.
#pragma once

#include <memory>

#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// This node's end of it, which knows all others. kUnimplemented in a build that lacks what they name.
Result<std::unique_ptr<Transport>> open_transport(const ClusterSettings& settings);

}  // namespace streamvec
