// The query service as `serve`, `train` and `demo` have it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "apps/streamvec/options.h"
#include "streamvec/serve/service.h"
#include "streamvec/train/trainer.h"

namespace streamvec::cli {

// What of those options does not fit together; of a training run's, what needs --listen and has none.
Status misuse_of_service(const Arguments& arguments);
Status misuse_of_service_if_wanted(const Arguments& arguments);
// With the options of --listen and its kin. kInvalidArgument and others as Service::start() and read_tokens().
Result<std::unique_ptr<Service>> start_service(const Arguments& arguments, const std::string& directory,
                                               const std::string& kind);
// ", gRPC at 127.0.0.1:9090", or nothing.
std::string with_grpc(const Service& service);
// The service of a training run: nullptr without --listen. Says on standard error where it is.
Result<std::unique_ptr<Service>> service_if_wanted(const Arguments& arguments, const std::string& directory);
// Training is over: tells the readers how it ended and why, goes on answering until Ctrl-C with --keep, and ends.
// `service` may be nullptr.
void leave_service(const Arguments& arguments, Service* service, const Result<TrainProgress>& trained,
                   const std::atomic<bool>& stop);
// Adds to `hooks` what shows a training run on the service, which must outlive it.
void show_on(Service& service, TrainHooks& hooks);

}  // namespace streamvec::cli
