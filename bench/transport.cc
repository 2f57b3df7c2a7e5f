// How many MB/s go from one node to another, and how long does a frame take there and back?
//
//   bench_transport [inproc] [grpc]             two nodes in one process, over loopback
//   mpirun -n 2 bench_transport mpi             two processes
//
// One row per transport and size of frame: MB/s one way with the sender never more than 32 MiB ahead, and the median
// and 99th percentile of a round trip with nothing else under way.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/heap.h"
#include "streamvec/transport/inproc.h"
#ifdef STREAMVEC_GRPC
#include "streamvec/transport/grpc/grpc_transport.h"
#endif
#ifdef STREAMVEC_MPI
#include "streamvec/transport/mpi/mpi_transport.h"
#endif

namespace streamvec {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kAheadMax = int64_t{32} << 20;

struct Plan {
  size_t frame_bytes;
  int64_t frames, round_trips;
};
constexpr Plan kPlans[] = {{100, 1'000'000, 3'000}, {1'000'000, 4'000, 300}};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string take(Transport& node) {
  NodeId from = 0;
  std::string frame;
  const Status status = node.receive(Deadline::after(std::chrono::seconds(30)), from, frame);
  if (!status.ok()) {
    std::cerr << status.message() << std::endl;
    std::exit(1);
  }
  return frame;
}

// Takes everything and says so, then sends back whatever comes.
void answer(Transport& node, NodeId peer) {
  for (const Plan& plan : kPlans) {
    for (int64_t i = 0; i < plan.frames; ++i) take(node);
    node.send(peer, "all");
    for (int64_t i = 0; i < plan.round_trips; ++i) node.send(peer, take(node));
  }
}

double one_way_mb_per_s(Transport& node, NodeId peer, const Plan& plan) {
  const std::string frame(plan.frame_bytes, 'x');
  const auto start = Clock::now();
  for (int64_t i = 0; i < plan.frames; ++i) {
    while (node.queued_bytes(peer) > kAheadMax) std::this_thread::sleep_for(std::chrono::microseconds(50));
    node.send(peer, frame);
  }
  take(node);
  return static_cast<double>(plan.frames) * static_cast<double>(plan.frame_bytes) / 1e6 / seconds_since(start);
}

std::vector<double> round_trips_us(Transport& node, NodeId peer, const Plan& plan) {
  std::vector<double> times;
  for (int64_t i = 0; i < plan.round_trips; ++i) {
    std::string frame(plan.frame_bytes, 'x');
    const auto start = Clock::now();
    node.send(peer, std::move(frame));
    take(node);
    times.push_back(seconds_since(start) * 1e6);
  }
  std::sort(times.begin(), times.end());
  return times;
}

void ask(const char* name, Transport& node, NodeId peer) {
  for (const Plan& plan : kPlans) {
    const double speed = one_way_mb_per_s(node, peer, plan);
    const std::vector<double> times = round_trips_us(node, peer, plan);
    std::printf("| %s | %zu | %.0f | %.1f | %.1f |\n", name, plan.frame_bytes, speed, times[times.size() / 2],
                times[times.size() * 99 / 100]);
    std::fflush(stdout);
  }
}

void both(const char* name, Transport& a, Transport& b) {
  std::thread other([&] { answer(b, a.self()); });
  ask(name, a, b.self());
  other.join();
}

void inproc() {
  InprocNetwork network;
  const auto a = network.join(1), b = network.join(2);
  a->add_peer(2, "");
  b->add_peer(1, "");
  both("inproc", *a, *b);
}

#ifdef STREAMVEC_GRPC
void grpc() {
  keep_large_blocks();
  auto a = GrpcTransport::listen({.self = 1}), b = GrpcTransport::listen({.self = 2});
  if (!a.ok() || !b.ok()) return void(std::cerr << a.status().message() << b.status().message() << std::endl);
  (*a)->add_peer(2, (*b)->address());
  (*b)->add_peer(1, (*a)->address());
  both("grpc", **a, **b);
}
#endif

#ifdef STREAMVEC_MPI
void mpi() {
  auto node = MpiTransport::start();
  if (!node.ok() || (*node)->ranks() != 2) return void(std::cerr << "run it as: mpirun -n 2 bench_transport mpi\n");
  if ((*node)->self() == 0) {
    ask("mpi", **node, 1);
  } else {
    answer(**node, 0);
  }
}
#endif

void run(const std::string& name) {
  if (name == "inproc") return inproc();
#ifdef STREAMVEC_GRPC
  if (name == "grpc") return grpc();
#endif
#ifdef STREAMVEC_MPI
  if (name == "mpi") return mpi();
#endif
  std::cerr << "no transport " << name << " in this build\n";
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  const std::vector<std::string> names(argv + 1, argv + argc);
  if (names != std::vector<std::string>{"mpi"})
    std::printf("| transport | frame bytes | MB/s | round trip µs, median | 99%% |\n|---|---|---|---|---|\n");
  for (const std::string& name : names.empty() ? std::vector<std::string>{"inproc"} : names) streamvec::run(name);
}
