// streamvec serve: answers questions about a model over HTTP, and follows it while another process trains it.
#include <chrono>
#include <iostream>
#include <thread>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/service.h"
#include "apps/streamvec/signals.h"
#include "streamvec/serve/directory_follower.h"

namespace streamvec::cli {

Status misuse_of_serve(const Arguments& arguments) {
  return misuse_of_service(arguments);
}

Result<int> run_serve(const Arguments& arguments) {
  const std::string& directory = arguments.words[0];
  const std::atomic<bool>& stop = stop_on_signals("\nstopping\n");
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service, start_service(arguments, directory, "serve"));
  DirectoryFollower::Options following;
  following.directory = directory;
  following.on_snapshot = [&](std::shared_ptr<const Snapshot> snapshot) { service->show(std::move(snapshot)); };
  following.on_trouble = [&](const std::string& text) { service->show_trouble(text); };
  following.on_note = [](const std::string& text) { std::cerr << "note: " << text << std::endl; };
  STREAMVEC_ASSIGN_OR_RETURN(const auto follower, DirectoryFollower::start(std::move(following)));
  service->await_served();
  STREAMVEC_RETURN_IF_ERROR(
      arguments.flag("json")
          ? print_json({{"url", service->url()}, {"grpc", service->grpc_address()}, {"directory", directory}})
          : print("serving " + directory + " at " + service->url() + with_grpc(*service) + "\n"));
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  service->stop();
  return 0;
}

}  // namespace streamvec::cli
