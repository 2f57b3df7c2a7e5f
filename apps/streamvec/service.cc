#include "apps/streamvec/service.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace streamvec::cli {
namespace {

Status add_tokens(const Arguments& arguments, Access::Options& access) {
  if (const char* token = std::getenv("STREAMVEC_TOKEN"); token != nullptr && *token != '\0') {
    auto made = make_token(token);
    if (!made.ok()) return error(Code::kInvalidArgument, "STREAMVEC_TOKEN: ", made.status().message());
    access.tokens.push_back(std::move(*made));
  }
  if (!arguments.given("token-file")) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<Token> tokens, read_tokens(arguments.text("token-file")));
  access.tokens.insert(access.tokens.end(), tokens.begin(), tokens.end());
  return {};
}

}  // namespace

Status misuse_of_service(const Arguments& arguments) {
  for (const std::string& origin : arguments.list("allow-origin")) STREAMVEC_RETURN_IF_ERROR(check_origin(origin));
  const bool has_certificate = arguments.given("tls-certificate"), has_key = arguments.given("tls-key");
  if (has_certificate != has_key || (arguments.given("tls-client-ca") && !has_key))
    return error(Code::kInvalidArgument, "TLS needs both --tls-certificate and --tls-key; give ",
                 has_certificate ? "the key"
                 : has_key       ? "the certificate"
                                 : "them",
                 ", too");
  return {};
}

Status misuse_of_service_if_wanted(const Arguments& arguments) {
  const char* alone = arguments.flag("keep") ? "--keep" : arguments.given("listen-grpc") ? "--listen-grpc" : nullptr;
  if (alone != nullptr && !arguments.given("listen"))
    return error(Code::kInvalidArgument, alone, " needs --listen, the address to answer at; try --listen ",
                 "127.0.0.1:8080");
  return misuse_of_service(arguments);
}

Result<std::unique_ptr<Service>> start_service(const Arguments& arguments, const std::string& directory,
                                               const std::string& kind) {
  Service::Options options;
  if (arguments.given("listen")) options.listen = arguments.text("listen");
  options.listen_grpc = arguments.text("listen-grpc");
  options.directory = directory;
  options.kind = kind;
  options.version = STREAMVEC_VERSION;
  options.tls = {arguments.text("tls-certificate"), arguments.text("tls-key"), arguments.text("tls-client-ca")};
  options.access.hosts = arguments.list("allow-host");
  options.access.origins = arguments.list("allow-origin");
  options.threads = static_cast<int32_t>(arguments.integer("serve-threads"));
  options.exact_words_max = arguments.integer("exact-max");
  options.limits.connections_max = arguments.integer("connections-max");
  if (arguments.given("client-connections")) {
    options.limits.client_connections_max = arguments.integer("client-connections");
    options.limits.loopback_limits = true;
  }
  if (arguments.given("client-rate")) {
    options.limits.client_rate_max = arguments.real("client-rate");
    options.limits.loopback_limits = true;
  }
  options.limits.header_s = arguments.real("request-timeout");
  options.limits.body_s = 3 * options.limits.header_s;
  options.limits.body_bytes_max = arguments.integer("body-max");
  options.limits.bodies_bytes_max = std::max(options.limits.bodies_bytes_max, options.limits.body_bytes_max);
  STREAMVEC_RETURN_IF_ERROR(add_tokens(arguments, options.access));
  return Service::start(std::move(options));
}

std::string with_grpc(const Service& service) {
  return service.grpc_address().empty() ? "" : ", gRPC at " + service.grpc_address();
}

Result<std::unique_ptr<Service>> service_if_wanted(const Arguments& arguments, const std::string& directory) {
  if (!arguments.given("listen")) return std::unique_ptr<Service>();
  STREAMVEC_ASSIGN_OR_RETURN(auto service, start_service(arguments, directory, "train"));
  std::cerr << "serving at " << service->url() << with_grpc(*service) << std::endl;
  return service;
}

void leave_service(const Arguments& arguments, Service* service, const Result<TrainProgress>& trained,
                   const std::atomic<bool>& stop) {
  if (service == nullptr) return;
  const Status& status = trained.status();
  if (trained.ok()) service->show_total(*trained);
  service->show_end(status.ok() ? stop ? "stopped" : "finished" : status.message());
  service->await_served();
  const bool keep = arguments.flag("keep") && status.ok() && !stop;
  if (keep) std::cerr << "training is over; still serving at " << service->url() << " until Ctrl-C" << std::endl;
  while (keep && !stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  service->stop();
}

void show_on(Service& service, TrainHooks& hooks) {
  hooks.snapshot = [&service](std::shared_ptr<const Snapshot> snapshot) { service.show(std::move(snapshot)); };
  hooks.metrics = [&service](const StreamMetrics& metrics) { service.show(metrics); };
  hooks.progress = [&service, before = std::move(hooks.progress)](const TrainProgress& progress) {
    service.show(progress);
    if (before) before(progress);
  };
  // Threads made from here on, those that train, give way to those that answer: a question takes milliseconds.
  constexpr int kGiveWay = 5;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kGiveWay);
}

}  // namespace streamvec::cli
