#include "streamvec/train/cluster_network.h"

#include "streamvec/train/cluster_settings.h"
#include "streamvec/transport/inproc.h"

#ifdef STREAMVEC_GRPC
#include "streamvec/transport/grpc/grpc_transport.h"
#endif
#ifdef STREAMVEC_MPI
#include "streamvec/transport/mpi/mpi_transport.h"
#endif

namespace streamvec {
namespace {

#ifdef STREAMVEC_GRPC
Result<std::unique_ptr<Transport>> listen(const ClusterSettings& settings) {
  GrpcTransport::Options options;
  options.self = node_of(settings, settings.rank);
  options.address = settings.nodes[static_cast<size_t>(settings.rank)];
  options.tls = {settings.ca, settings.certificate, settings.key, {}};
  options.token = settings.token;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<GrpcTransport> transport, GrpcTransport::listen(options));
  return std::unique_ptr<Transport>(std::move(transport));
}
#else
Result<std::unique_ptr<Transport>> listen(const ClusterSettings&) {
  return error(Code::kUnimplemented,
               "this build of streamvec has no gRPC, which --nodes needs; install libgrpc++-dev and build again");
}
#endif

#ifdef STREAMVEC_MPI
constexpr double kFarewellSeconds = 24 * 3600;  // of ranks that answer: the first saves the model, or all still train

Result<std::unique_ptr<Transport>> join_ranks(const ClusterSettings& settings) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<MpiTransport> mpi,
                             MpiTransport::start({.farewell_s = kFarewellSeconds, .silent_s = settings.dead_after_s}));
  if (mpi->ranks() != static_cast<int>(settings.nodes.size()) || mpi->self() != node_of(settings, settings.rank))
    return error(Code::kFailedPrecondition, "the environment says that this is rank ", settings.rank, " of ",
                 settings.nodes.size(), ", MPI that it is rank ", mpi->self(), " of ", mpi->ranks(),
                 "; start the ranks with this MPI's own mpirun, or with srun --mpi=pmix");
  return std::unique_ptr<Transport>(std::move(mpi));
}
#else
Result<std::unique_ptr<Transport>> join_ranks(const ClusterSettings&) {
  return error(
      Code::kUnimplemented,
      "this build of streamvec has no MPI, by which it was started; install libopenmpi-dev and build again, or "
      "give --nodes");
}
#endif

}  // namespace

Result<std::unique_ptr<Transport>> open_transport(const ClusterSettings& settings) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                             settings.network != nullptr ? settings.network->join(node_of(settings, settings.rank))
                             : settings.mpi              ? join_ranks(settings)
                                                         : listen(settings));
  for (size_t i = 0; i < settings.nodes.size(); ++i)
    if (static_cast<int32_t>(i) != settings.rank)
      transport->add_peer(node_of(settings, static_cast<int32_t>(i)), settings.nodes[i]);
  return transport;
}

}  // namespace streamvec
