#include "streamvec/transport/nccl/nccl_library.h"

#include <dlfcn.h>

namespace streamvec {
namespace {

template <typename Function>
void find_function(void* library, const char* name, Function& function, std::string& error) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr && error.empty()) error = std::string("it has no ") + name;
}

NcclLibrary load_nccl() {
  NcclLibrary loaded;
  const std::string name = "libnccl.so." + std::to_string(NCCL_MAJOR);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) loaded.error = ::dlerror();  // it may be there, and not fit
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"})
    if (library == nullptr) library = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return loaded;
  loaded.error.clear();
  find_function(library, "ncclGetUniqueId", loaded.get_unique_id, loaded.error);
  find_function(library, "ncclCommInitRankConfig", loaded.init_rank, loaded.error);
  find_function(library, "ncclCommGetAsyncError", loaded.get_async_error, loaded.error);
  find_function(library, "ncclCommAbort", loaded.abort, loaded.error);
  find_function(library, "ncclCommFinalize", loaded.finalize, loaded.error);
  find_function(library, "ncclCommDestroy", loaded.destroy, loaded.error);
  find_function(library, "ncclAllReduce", loaded.all_reduce, loaded.error);
  find_function(library, "ncclAllGather", loaded.all_gather, loaded.error);
  find_function(library, "ncclBroadcast", loaded.broadcast, loaded.error);
  find_function(library, "ncclGetErrorString", loaded.error_string, loaded.error);
  return loaded;
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary loaded = load_nccl();
  return loaded;
}

}  // namespace streamvec
