#include "streamvec/transport/mpi/abort_at_exit.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

namespace streamvec {
namespace {

constexpr double kAbortWithin_s = 60;  // else the process ends by itself, and the others with it

struct Exit {
  std::mutex mutex;
  std::condition_variable changed;
  pid_t process = 0;
  double patience_s = 0;
  int code_min = 0;
  std::optional<int> code;
  bool aborted = false;
};

// Never destroyed: handlers of exit use it.
Exit& the_exit() {
  static auto* const exit = new Exit;
  return *exit;
}

void hand_over(int code, void*) {
  std::cout.flush();
  std::fflush(nullptr);
  Exit& exit = the_exit();
  if (::getpid() != exit.process) return;  // a child that has no MPI
  std::unique_lock lock(exit.mutex);
  exit.code = std::max(code & 0xff, exit.code_min);
  exit.changed.notify_all();
  const std::chrono::duration<double> within(exit.patience_s + kAbortWithin_s);
  exit.changed.wait_for(lock, within, [&] { return exit.aborted; });
  std::_Exit(*exit.code);
}

}  // namespace

void abort_at_exit(int code_min, double patience_s, const std::function<void()>& arranged) {
  Exit& exit = the_exit();
  exit.process = ::getpid();
  exit.patience_s = patience_s;
  exit.code_min = code_min;
  ::on_exit(hand_over, nullptr);
  arranged();
  std::unique_lock lock(exit.mutex);
  exit.changed.wait(lock, [&] { return exit.code.has_value(); });
  std::this_thread::sleep_for(std::chrono::duration<double>(patience_s));
  // Open MPI's mpirun ends all when one rank leaves like this. Of its aborts one in ten hung or crashed it (4.1.4).
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) std::_Exit(*exit.code);
  MPI_Abort(MPI_COMM_WORLD, *exit.code);
  exit.aborted = true;  // MPI that comes back from it has left the end to us
  exit.changed.notify_all();
  lock.unlock();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace streamvec
