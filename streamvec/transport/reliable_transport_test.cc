#include "streamvec/transport/reliable_transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

TEST(ReliableTransport, AForgottenNodeIsNeitherHeardNorAwaitedAtTheEnd) {
  InprocNetwork network;
  auto of_one = network.join(1), of_two = network.join(2);
  of_one->add_peer(2, "");
  of_two->add_peer(1, "");
  auto one = std::make_unique<ReliableTransport>(std::move(of_one), ReliableTransport::Options{.farewell_s = 60});
  one->send(2, "nobody acknowledges this");
  one->forget(2);
  one->send(2, "nor this");
  const auto begun = std::chrono::steady_clock::now();
  {
    ReliableTransport two(std::move(of_two), {.farewell_s = 0});
    two.send(1, "is not heard");
    NodeId from = 0;
    std::string frame;
    EXPECT_EQ(one->receive(Deadline::after(std::chrono::milliseconds(100)), from, frame).code(),
              Code::kDeadlineExceeded);
    EXPECT_TRUE(two.receive(Deadline::after(std::chrono::milliseconds(100)), from, frame).ok());
    EXPECT_EQ(frame, "nobody acknowledges this");
    EXPECT_EQ(two.receive(Deadline::after(std::chrono::milliseconds(50)), from, frame).code(), Code::kDeadlineExceeded);
  }
  one.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

}  // namespace
}  // namespace streamvec
