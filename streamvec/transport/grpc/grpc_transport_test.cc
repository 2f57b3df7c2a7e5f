#include "streamvec/transport/grpc/grpc_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

std::unique_ptr<GrpcTransport> listen(GrpcTransport::Options options) {
  auto transport = GrpcTransport::listen(options);
  EXPECT_TRUE(transport.ok()) << transport.status().message();
  return transport.ok() ? std::move(transport).value() : nullptr;
}

std::unique_ptr<GrpcTransport> listen(NodeId self) {
  return listen(GrpcTransport::Options{.self = self});
}

void join(GrpcTransport& a, GrpcTransport& b) {
  a.add_peer(b.self(), b.address());
  b.add_peer(a.self(), a.address());
}

// The next frame, as "from:frame"; the error otherwise.
std::string next(Transport& transport, Clock::duration wait = seconds(20)) {
  NodeId from = 0;
  std::string frame;
  const Status status = transport.receive(Deadline::after(wait), from, frame);
  return status.ok() ? std::to_string(from) + ":" + frame : status.message();
}

int64_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(GrpcTransport, DeliversInOrderBothWaysAndToItself) {
  const auto a = listen(1), b = listen(2);
  join(*a, *b);
  for (int i = 0; i < 1'000; ++i) a->send(2, std::to_string(i));
  b->send(1, "back");
  a->send(1, "self");
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(next(*b), "1:" + std::to_string(i));
  EXPECT_THAT((std::vector{next(*a), next(*a)}), ::testing::UnorderedElementsAre("2:back", "1:self"));
  EXPECT_TRUE(eventually("all frames to be sent", [&] { return a->totals().frames_sent == 1'001; }));
  EXPECT_EQ(b->totals().frames_received, 1'000);
  EXPECT_TRUE(a->peer_status(2).ok());
}

TEST(GrpcTransport, FramesOfAnySizeArriveWhole) {
  const auto a = listen(1), b = listen(2);
  join(*a, *b);
  for (const size_t size : {size_t{0}, size_t{1} << 20, size_t{70} << 20, size_t{3}}) {
    std::string frame(size, 'x');
    for (size_t i = 0; i < size; i += 997) frame[i] = static_cast<char>(i);
    a->send(2, frame);
    EXPECT_TRUE(next(*b) == "1:" + frame) << size;
  }
}

TEST(GrpcTransport, RefusesAnAddressThatOthersReachWithoutTlsOrToken) {
  const auto open = GrpcTransport::listen({.self = 1, .address = "0.0.0.0:0"});
  EXPECT_EQ(open.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(open.status().message(), ::testing::HasSubstr("token"));
  EXPECT_TRUE(GrpcTransport::listen({.self = 1, .address = "0.0.0.0:0", .token = "secret"}).ok());
  for (const char* bad : {"127.0.0.1", "127.0.0.1:", ":7000", "127.0.0.1:http", "::1:7000", "127.evil.example:1"})
    EXPECT_EQ(GrpcTransport::listen({.self = 1, .address = bad}).status().code(), Code::kInvalidArgument) << bad;
}

TEST(GrpcTransport, SaysThatThePortIsTaken) {
  const auto a = listen(1);
  const auto b = GrpcTransport::listen({.self = 2, .address = a->address()});
  EXPECT_EQ(b.status().code(), Code::kUnavailable);
  EXPECT_THAT(b.status().message(), ::testing::HasSubstr(a->address()));
}

TEST(GrpcTransport, RefusesPeersWithoutTheToken) {
  const auto a = listen({.self = 1, .token = "wrong"}), b = listen({.self = 2, .token = "right"});
  join(*a, *b);
  a->send(2, "intruder");
  EXPECT_TRUE(eventually("a refusal", [&] { return a->peer_status(2).code() == Code::kUnauthenticated; }));
  const auto c = listen({.self = 3, .token = "right"});
  join(*b, *c);
  c->send(2, "friend");
  EXPECT_EQ(next(*b), "3:friend");
}

TEST(GrpcTransport, DoesNotHandFramesToAnotherNodeAtTheSameAddress) {
  const auto a = listen(1), b = listen(2);
  a->add_peer(7, b->address());
  a->send(7, "for the dead");
  EXPECT_TRUE(eventually("a refusal", [&] { return a->peer_status(7).code() == Code::kFailedPrecondition; }));
  EXPECT_EQ(b->totals().frames_received, 0);
}

TEST(GrpcTransport, KeepsFramesForAPeerThatStartsLate) {
  const auto a = listen({.self = 1, .patience_s = 20});
  const std::string address = listen(2)->address();
  a->add_peer(2, address);
  a->send(2, "early");
  std::this_thread::sleep_for(milliseconds(100));
  const auto b = listen({.self = 2, .address = address});
  EXPECT_EQ(next(*b), "1:early");
}

TEST(GrpcTransport, ConnectsAgainAfterTheStreamBroke) {
  const auto a = listen(1);
  auto b = listen(2);
  const std::string address = b->address();
  a->add_peer(2, address);
  a->send(2, "first");
  EXPECT_EQ(next(*b), "1:first");
  b.reset();
  EXPECT_TRUE(eventually("word that it is gone", [&] { return !a->peer_status(2).ok(); }));
  b = listen({.self = 2, .address = address});
  a->send(2, "second");
  EXPECT_EQ(next(*b), "1:second");
}

TEST(GrpcTransport, DropsWhatCannotBeDeliveredAndNobodyElseNotices) {
  const auto a = listen({.self = 1, .patience_s = 2}), b = listen(2);
  join(*a, *b);
  a->send(2, "hello");
  EXPECT_EQ(next(*b), "1:hello");
  a->add_peer(3, listen(3)->address());  // gone
  a->add_peer(4, "192.0.2.1:9");         // never answers
  for (int i = 0; i < 10; ++i) {
    a->send(3, "lost");
    a->send(4, "lost");
    a->send(9, "unknown");
    a->send(2, "heard");
    EXPECT_EQ(next(*b), "1:heard");
  }
  EXPECT_TRUE(eventually("frames to be dropped", [&] { return a->totals().frames_dropped == 30; }))
      << a->totals().frames_dropped;
  EXPECT_EQ(a->queued_bytes(3), 0);
  EXPECT_EQ(a->peer_status(3).code(), Code::kUnavailable);
}

TEST(GrpcTransport, QueuesAreBoundedWhenThePeerDoesNotReceive) {
  const auto a = listen({.self = 1, .queue_bytes_max = 4 << 20}), b = listen({.self = 2, .inbox_bytes_max = 4 << 20});
  join(*a, *b);
  constexpr int kFrames = 200;
  for (int i = 0; i < kFrames; ++i) {
    a->send(2, std::to_string(i) + std::string(1 << 20, ' '));
    EXPECT_LE(a->queued_bytes(2), (4 << 20) + (1 << 20));
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GT(a->totals().frames_dropped, 0);
  int last = -1, came = 0;
  for (; last < kFrames - 1 && came + a->totals().frames_dropped < kFrames; ++came) {
    const std::string frame = next(*b);
    const int number = std::atoi(frame.c_str() + 2);
    ASSERT_GT(number, last) << frame.substr(0, 40);
    last = number;
  }
  a->send(2, "after");
  EXPECT_EQ(next(*b), "1:after");
}

TEST(GrpcTransport, RemovingAPeerDropsWhatWasQueued) {
  const auto a = listen({.self = 1, .patience_s = 60});
  a->add_peer(2, listen(2)->address());
  a->send(2, "queued");
  EXPECT_EQ(a->queued_bytes(2), 6);
  a->remove_peer(2);
  EXPECT_EQ(a->queued_bytes(2), 0);
  EXPECT_EQ(a->totals().frames_dropped, 1);
  EXPECT_EQ(a->peer_status(2).code(), Code::kNotFound);
}

TEST(GrpcTransport, EndsSoonAndLeavesNoThreadBehind) {
  int64_t before = 0;
  for (int round = 0; round < 8; ++round) {
    auto a = listen(1), b = listen({.self = 2, .inbox_bytes_max = 1 << 20});
    join(*a, *b);
    a->add_peer(3, "192.0.2.1:9");
    for (int i = 0; i < 20; ++i) a->send(2, std::string(1 << 20, ' '));
    a->send(3, "never");
    EXPECT_EQ(next(*b).size(), (1u << 20) + 2);
    const auto start = Clock::now();
    if (round % 2 == 0) b.reset();  // the peer's death meets the end of the stream to it
    a.reset();
    b.reset();
    EXPECT_LT(Clock::now() - start, seconds(15)) << "milliseconds, on a quiet machine";
    if (round == 1) before = threads();  // gRPC keeps a pool of its own
  }
  EXPECT_TRUE(eventually("threads to end", [&] { return threads() <= before; })) << threads() << " against " << before;
}

// A CA with one certificate for "node.test" in `folder`.
GrpcTransport::Tls certificates(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string in = "cd " + folder.string() + " && ";
  const std::string quietly = " >openssl.log 2>&1";
  const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  EXPECT_EQ(
      std::system(
          (in + "openssl req -x509" + key + " -keyout ca.key -out ca.pem -days 2 -subj /CN=ca" + quietly).c_str()),
      0);
  EXPECT_EQ(
      std::system((in + "openssl req" + key + " -keyout key.pem -out request -subj /CN=node.test" + quietly).c_str()),
      0);
  EXPECT_EQ(std::system((in +
                         "echo subjectAltName=DNS:node.test >names && openssl x509 -req -in request -CA ca.pem "
                         "-CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem" +
                         quietly)
                            .c_str()),
            0);
  return {folder / "ca.pem", folder / "cert.pem", folder / "key.pem", "node.test"};
}

TEST(GrpcTransport, TlsLetsInOnlyThoseWhomTheCaHasSigned) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "streamvec_grpc_tls";
  const auto ours = certificates(folder / "ours"), theirs = certificates(folder / "theirs");
  const auto a = listen({.self = 1, .tls = ours}), b = listen({.self = 2, .tls = ours});
  join(*a, *b);
  a->send(2, "signed");
  EXPECT_EQ(next(*b), "1:signed");
  auto mixed = theirs;
  mixed.ca = ours.ca;  // trusts us, and is not trusted
  const auto c = listen({.self = 3, .tls = mixed, .patience_s = 0.5}), d = listen({.self = 4, .patience_s = 0.5});
  for (GrpcTransport* stranger : {c.get(), d.get()}) {
    stranger->add_peer(2, b->address());
    stranger->send(2, "stranger");
    EXPECT_TRUE(eventually("its frame to be dropped", [&] { return stranger->totals().frames_dropped == 1; }));
  }
  EXPECT_EQ(b->totals().frames_received, 1);
  auto part = ours;
  part.key.clear();
  EXPECT_EQ(GrpcTransport::listen({.self = 5, .tls = part}).status().code(), Code::kInvalidArgument);
  part.key = folder / "nothing.pem";
  EXPECT_EQ(GrpcTransport::listen({.self = 5, .tls = part}).status().code(), Code::kInvalidArgument);
  part.key = theirs.key;
  EXPECT_THAT(GrpcTransport::listen({.self = 5, .tls = part}).status().message(),
              ::testing::HasSubstr(theirs.key + " the certificate's key?"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace streamvec
