// streamvec: finds the command, reads its options, runs it, and turns what came of it into an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/help.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/suggest.h"

namespace streamvec::cli {
namespace {

constexpr int kDone = 0, kFailed = 1, kMisuse = 2;

// A standard descriptor that is closed (`<&-`) would be given to the next file that is opened, and then be read as text
// or written over with progress. open() gives the lowest that is free, so that each comes in its turn.
void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      (void)!::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);  // results have to fail
}
// main would be too late: gRPC opens an eventfd while it is loaded, and this section comes before any library's code.
[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries)() = fill_standard_descriptors;

int complain(const Status& status, int exit_code) {
  std::cerr << "streamvec: " << status.message() << std::endl;
  return exit_code;
}

int show(const std::string& text) {
  const Status status = print(text);
  return status.ok() ? kDone : complain(status, kFailed);
}

Status unknown_command(const std::string& name) {
  return error(Code::kInvalidArgument, "unknown command ", name, "; did you mean ", nearest_name(name, command_names()),
               "? (`streamvec help` lists all)");
}

Result<int> run_version(const Arguments& arguments) {
  const Json json = {{"version", STREAMVEC_VERSION}, {"compiler", __VERSION__}};
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json) : print("streamvec " STREAMVEC_VERSION "\n"));
  return kDone;
}

Status no_misuse(const Arguments&) {
  return {};
}

struct Runner {
  std::string_view name;
  Result<int> (*run)(const Arguments&);
  Status (*misuse_of)(const Arguments&) = no_misuse;
};

const Runner& runner_of(const Command& command) {
  static constexpr Runner kRunners[] = {{"demo", run_demo, misuse_of_demo},
                                        {"train", run_train, misuse_of_train},
                                        {"eval", run_eval},
                                        {"nearest", run_nearest, misuse_of_words},
                                        {"analogy", run_analogy, misuse_of_words},
                                        {"vector", run_vector, misuse_of_words},
                                        {"drift", run_drift, misuse_of_words},
                                        {"export", run_export},
                                        {"import", run_import},
                                        {"source", run_source, misuse_of_source},
                                        {"launch", run_launch, misuse_of_launch},
                                        {"reproduce", run_reproduce, misuse_of_reproduce},
                                        {"simulate", run_simulate, misuse_of_simulate},
                                        {"serve", run_serve, misuse_of_serve},
                                        {"version", run_version}};
  for (const Runner& runner : kRunners)
    if (runner.name == command.name) return runner;
  std::cerr << "command " << command.name << " is in the table but not in main" << std::endl;
  std::abort();
}

int refuse(const Status& status) {
  return complain(status, is_misuse(status) ? kMisuse : kFailed);
}

int help(const std::vector<std::string>& args) {
  if (args.empty()) return show(overview());
  const Command* command = find_command(args[0]);
  return command == nullptr ? complain(unknown_command(args[0]), kMisuse) : show(help_of(*command));
}

bool wants_help(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--") return false;
    if (arg == "--help" || arg == "-h") return true;
  }
  return false;
}

int main_of(std::string name, const std::vector<std::string>& args) {
  if (name == "--help" || name == "-h") return show(overview());
  if (name == "--version") name = "version";
  const Command* command = find_command(name);
  if (command == nullptr) return complain(unknown_command(name), kMisuse);
  if (wants_help(args)) return show(help_of(*command));
  const auto arguments = parse(*command, args);
  if (!arguments.ok()) return refuse(arguments.status());
  if (command->name == "help") return help(arguments->words);
  const Runner& runner = runner_of(*command);
  if (const Status misuse = runner.misuse_of(*arguments); !misuse.ok()) return refuse(misuse);
  const auto exit_code = runner.run(*arguments);
  return exit_code.ok() ? *exit_code : complain(exit_code.status(), kFailed);
}

}  // namespace
}  // namespace streamvec::cli

int main(int argc, char** argv) {
  streamvec::cli::ignore_broken_pipes();
  const std::vector<std::string> args(argv + (argc > 0), argv + argc);
  if (args.empty()) return streamvec::cli::show(streamvec::cli::greeting());
  try {
    return streamvec::cli::main_of(args[0], {args.begin() + 1, args.end()});
  } catch (const std::bad_alloc&) {
    std::cerr << "streamvec: out of memory; try a smaller --dim or --vocab-max" << std::endl;
    return 1;
  } catch (const std::system_error& thrown) {
    std::cerr << "streamvec: the system refuses (" << thrown.what() << "); try fewer --threads" << std::endl;
    return 1;
  }
}
