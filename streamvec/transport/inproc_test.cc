#include "streamvec/transport/inproc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Inproc : public ::testing::Test {
 protected:
  std::unique_ptr<Transport> node(NodeId self, std::vector<NodeId> peers) {
    auto transport = network_.join(self);
    for (const NodeId peer : peers) transport->add_peer(peer, "");
    return transport;
  }
  // Everything that waits, as "from:frame".
  static std::vector<std::string> drain(Transport& transport) {
    std::vector<std::string> all;
    NodeId from = 0;
    std::string frame;
    while (transport.receive(Deadline::after(milliseconds(0)), from, frame).ok())
      all.push_back(std::to_string(from) + ":" + frame);
    return all;
  }

  InprocNetwork network_{{.queue_bytes_max = 100}};
};

TEST_F(Inproc, DeliversInTheOrderOfEachSenderAndToTheSenderItself) {
  const auto a = node(1, {2}), b = node(2, {1});
  a->send(2, "one");
  a->send(2, "");
  b->send(2, "self");
  a->send(2, "two");
  EXPECT_THAT(drain(*b), ::testing::ElementsAre("1:one", "1:", "2:self", "1:two"));
  EXPECT_EQ(a->totals().frames_sent, 3);
  EXPECT_EQ(a->totals().bytes_sent, 6);
  EXPECT_EQ(b->totals().frames_received, 4);
  EXPECT_EQ(b->totals().bytes_received, 10);
}

TEST_F(Inproc, ReceivingEndsAtTheDeadlineAndWhenAFrameComes) {
  const auto a = node(1, {2}), b = node(2, {1});
  NodeId from = 0;
  std::string frame;
  EXPECT_EQ(b->receive(Deadline::after(milliseconds(10)), from, frame).code(), Code::kDeadlineExceeded);
  std::thread later([&] { a->send(2, "late"); });
  EXPECT_TRUE(b->receive(Deadline::after(seconds(10)), from, frame).ok());
  EXPECT_EQ(frame, "late");
  later.join();
}

TEST_F(Inproc, ACutLinkDropsAndCountsUntilItIsMended) {
  const auto a = node(1, {2, 3}), b = node(2, {1}), c = node(3, {1});
  network_.cut(2, 1);
  a->send(2, "lost");
  b->send(1, "lost too");
  a->send(3, "kept");
  network_.mend(1, 2);
  a->send(2, "after");
  EXPECT_THAT(drain(*a), ::testing::IsEmpty());
  EXPECT_THAT(drain(*b), ::testing::ElementsAre("1:after"));
  EXPECT_THAT(drain(*c), ::testing::ElementsAre("1:kept"));
  EXPECT_EQ(a->totals().frames_dropped, 1);
  EXPECT_EQ(b->totals().frames_dropped, 1);
}

TEST_F(Inproc, LosesAsManyFramesAsItIsTold) {
  const auto a = node(1, {2}), b = node(2, {1});
  network_.drop_next(1, 2, 2);
  for (const char* frame : {"a", "b", "c"}) a->send(2, frame);
  EXPECT_THAT(drain(*b), ::testing::ElementsAre("1:c"));
}

TEST_F(Inproc, DropsFramesToTheDeadTheUnknownAndTheRemoved) {
  const auto a = node(1, {2, 4, 5});
  const auto stranger = node(3, {});
  const auto removed = node(4, {});
  node(2, {}).reset();
  a->send(2, "dead");
  a->send(3, "never added");
  a->send(4, "queued");
  a->remove_peer(4);
  a->send(4, "removed");
  a->send(5, "never joined");
  EXPECT_THAT(drain(*stranger), ::testing::IsEmpty());
  EXPECT_THAT(drain(*removed), ::testing::IsEmpty());
  EXPECT_EQ(a->totals().frames_dropped, 5);
}

TEST_F(Inproc, TheQueueOfASenderIsBoundedAndTellsItsLength) {
  const auto a = node(1, {3}), b = node(2, {3}), c = node(3, {});
  a->send(3, std::string(60, 'x'));
  a->send(3, std::string(60, 'y'));
  b->send(3, std::string(60, 'z'));
  EXPECT_EQ(a->queued_bytes(3), 60);
  EXPECT_EQ(a->totals().frames_dropped, 1);
  EXPECT_EQ(drain(*c).size(), 2u);
  EXPECT_EQ(a->queued_bytes(3), 0);
  a->send(3, std::string(100, 'x'));
  EXPECT_EQ(drain(*c).size(), 1u);
}

}  // namespace
}  // namespace streamvec
