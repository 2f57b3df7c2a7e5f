#include "streamvec/transport/nccl/nccl_library.h"

#include "streamvec/core/shared_library.h"

namespace streamvec {
namespace {

NcclLibrary load_nccl() {
  NcclLibrary loaded;
  SharedLibrary library("libnccl.so." + std::to_string(NCCL_MAJOR), {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"});
  library.find("ncclGetUniqueId", loaded.get_unique_id);
  library.find("ncclCommInitRankConfig", loaded.init_rank);
  library.find("ncclCommGetAsyncError", loaded.get_async_error);
  library.find("ncclCommAbort", loaded.abort);
  library.find("ncclCommFinalize", loaded.finalize);
  library.find("ncclCommDestroy", loaded.destroy);
  library.find("ncclAllReduce", loaded.all_reduce);
  library.find("ncclAllGather", loaded.all_gather);
  library.find("ncclBroadcast", loaded.broadcast);
  library.find("ncclGetErrorString", loaded.error_string);
  loaded.error = library.error();
  return loaded;
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary loaded = load_nccl();
  return loaded;
}

}  // namespace streamvec
