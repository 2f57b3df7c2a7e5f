// One rank of the tests under mpirun: does what its argument names, prints "rank N: ok" or what went wrong.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/transport/collective.h"
#include "streamvec/transport/mpi/mpi_transport.h"

namespace streamvec {
namespace {

using std::chrono::seconds;

std::string payload(NodeId from, int number) {
  const size_t size = number % 50 == 0 ? size_t{3} << 20 : static_cast<size_t>(number % 300);
  return std::to_string(from) + ":" + std::to_string(number) + std::string(size, ' ');
}

Status expect(bool holds, const std::string& what) {
  return holds ? Status() : error(Code::kInternal, what);
}

// Everybody sends to everybody, itself included, all at once; large and small.
Status all_to_all(MpiTransport& mpi) {
  constexpr int kFrames = 200;
  const auto ranks = static_cast<NodeId>(mpi.ranks());
  for (int i = 0; i < kFrames; ++i)
    for (NodeId to = 0; to < ranks; ++to) mpi.send(to, payload(mpi.self(), i));
  std::vector<int> seen(ranks);
  for (NodeId i = 0; i < ranks * kFrames; ++i) {
    NodeId from = 0;
    std::string frame;
    STREAMVEC_RETURN_IF_ERROR(mpi.receive(Deadline::after(seconds(30)), from, frame));
    STREAMVEC_RETURN_IF_ERROR(expect(frame == payload(from, seen[from]++), "a frame came out of order or changed"));
  }
  mpi.send(ranks, "nobody");
  STREAMVEC_RETURN_IF_ERROR(expect(mpi.totals().frames_dropped == 1, "a frame for nobody was not counted"));
  return expect(MpiTransport::start().status().code() == Code::kFailedPrecondition, "MPI was started twice");
}

Status ring(MpiTransport& mpi) {
  std::vector<NodeId> nodes;
  for (int rank = 0; rank < mpi.ranks(); ++rank) nodes.push_back(static_cast<NodeId>(rank));
  RingCollective collective(mpi, nodes);
  std::vector<float> values(1'000'003, static_cast<float>(mpi.self()));
  STREAMVEC_RETURN_IF_ERROR(collective.all_reduce_mean(values, Deadline::after(seconds(30))));
  const float mean = static_cast<float>(mpi.ranks() - 1) / 2;
  for (const float value : values) STREAMVEC_RETURN_IF_ERROR(expect(value == mean, "a wrong mean"));
  return {};
}

// What was sent last still arrives.
Status last_words(MpiTransport& mpi) {
  if (mpi.self() != 0) {
    mpi.send(0, std::string(size_t{5} << 20, 'x'));
    return {};
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int i = 1; i < mpi.ranks(); ++i) {
    NodeId from = 0;
    std::string frame;
    STREAMVEC_RETURN_IF_ERROR(mpi.receive(Deadline::after(seconds(30)), from, frame));
    STREAMVEC_RETURN_IF_ERROR(expect(frame.size() == size_t{5} << 20, "last words got lost"));
  }
  return {};
}

Status wait_for_ever(MpiTransport& mpi) {
  NodeId from = 0;
  std::string frame;
  return mpi.receive(Deadline::never(), from, frame);
}

Status killed(MpiTransport& mpi) {
  if (mpi.self() == 1) std::raise(SIGKILL);
  return wait_for_ever(mpi);
}

Status stuck(MpiTransport& mpi) {
  return mpi.self() == 1 ? wait_for_ever(mpi) : Status();
}

// The first of the others has something to say after its transport is gone.
Status stopped(MpiTransport& mpi) {
  if (mpi.self() == 1) std::raise(SIGSTOP);
  return {};
}

Status stopped_first(MpiTransport& mpi) {
  if (mpi.self() == 0) std::raise(SIGSTOP);
  return error(Code::kUnavailable, "the first is silent");
}

// The last one says farewell long before the others do, and is stopped then.
Status stopped_later(MpiTransport& mpi) {
  if (mpi.self() + 1 != static_cast<NodeId>(mpi.ranks())) {
    std::this_thread::sleep_for(seconds(2));
    return {};
  }
  std::thread([] {
    std::this_thread::sleep_for(seconds(1));
    std::raise(SIGSTOP);
  }).detach();
  return {};
}

// Longer than a silent one is waited for.
Status slow(MpiTransport& mpi) {
  if (mpi.self() == 1) std::this_thread::sleep_for(seconds(5));
  return {};
}

int run(const std::string& name) {
  const std::map<std::string, std::function<Status(MpiTransport&)>> all = {{"all_to_all", all_to_all},
                                                                           {"ring", ring},
                                                                           {"last_words", last_words},
                                                                           {"killed", killed},
                                                                           {"stuck", stuck},
                                                                           {"stopped", stopped},
                                                                           {"stopped_first", stopped_first},
                                                                           {"slow", slow},
                                                                           {"stopped_later", stopped_later}};
  auto mpi =
      MpiTransport::start({.inbox_bytes_max = 8 << 20, .farewell_s = name == "stuck" ? 3.0 : 60.0, .silent_s = 3});
  const Status status = mpi.ok() ? all.at(name)(**mpi) : mpi.status();
  const NodeId self = mpi.ok() ? (*mpi)->self() : 0;
  if (mpi.ok()) mpi->reset();
  std::cout << "rank " << self << ": " + (status.ok() ? "ok" : status.message()) << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  return argc == 2 ? streamvec::run(argv[1]) : 2;
}
