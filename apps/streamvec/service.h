// The query service as `serve`, `train` and `demo` have it.
#pragma once

#include <memory>

#include "apps/streamvec/options.h"
#include "streamvec/serve/service.h"
#include "streamvec/train/trainer.h"

namespace streamvec::cli {

// With the options of --listen and its kin. kInvalidArgument and others as Service::start() and read_tokens().
Result<std::unique_ptr<Service>> start_service(const Arguments& arguments, const std::string& directory,
                                               const std::string& kind);
// Adds to `hooks` what shows a training run on the service, which must outlive it.
void show_on(Service& service, TrainHooks& hooks);

}  // namespace streamvec::cli
