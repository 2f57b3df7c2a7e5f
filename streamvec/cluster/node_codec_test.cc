// A node that finds its codec by what its links carry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "streamvec/cluster/node.h"
#include "streamvec/core/testing_wait.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

constexpr int64_t kSentRows = 4'000, kSentDim = 64;  // 34 bytes a row with four bits a value

// Frames take their time to come.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> under, double bytes_per_s)
      : under_(std::move(under)), bytes_per_s_(bytes_per_s) {}
  NodeId self() const override { return under_->self(); }
  void add_peer(NodeId node, const std::string& address) override { under_->add_peer(node, address); }
  void remove_peer(NodeId node) override { under_->remove_peer(node); }
  void send(NodeId to, std::string frame) override { under_->send(to, std::move(frame)); }
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    STREAMVEC_RETURN_IF_ERROR(under_->receive(deadline, from, frame));
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(frame.size()) / bytes_per_s_));
    return {};
  }
  int64_t queued_bytes(NodeId to) const override { return under_->queued_bytes(to); }
  TransportTotals totals() const override { return under_->totals(); }

 private:
  const std::unique_ptr<Transport> under_;
  const double bytes_per_s_;
};

struct Trainee {
  Matrix tables[2];
  RowMarks changed{2 * kSentRows};
  std::unique_ptr<ClusterNode> node;
  std::thread thread;
};

TEST(NodeCodec, ASlowWireBringsOneBitAValueAndANoteSaysSo) {
  InprocNetwork network;
  ClusterOptions options;
  options.workers = options.servers = {1, 2};
  options.sync.scheme.codec = CodecKind::kFourBit;
  options.sync.scheme.finds_codec = true;
  options.sync.dim = kSentDim;
  options.sync.key_end = 2 * kSentRows;
  options.words_min = 10;
  options.words_max = 1'000'000;
  std::deque<Trainee> trainees(2);
  for (NodeId id = 1; id <= 2; ++id) {
    Trainee& trainee = trainees[id - 1];
    for (Matrix& table : trainee.tables) table = std::move(Matrix::make(kSentRows, kSentDim)).value();
    auto transport = std::make_unique<SlowTransport>(network.join(id), 1e6);
    transport->add_peer(3 - id, "");
    options.changed = &trainee.changed;
    trainee.node =
        std::move(ClusterNode::start(options, std::move(transport), {&trainee.tables[0], &trainee.tables[1]})).value();
  }
  std::atomic<bool> over = false;
  for (Trainee& trainee : trainees)
    trainee.thread = std::thread([&] {
      if (!trainee.node->await_start().ok()) return;
      while (!over && trainee.node->trained(10).ok()) {
        for (int64_t key = 0; key < 2 * kSentRows; ++key) trainee.changed.mark(key);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  for (const Trainee& trainee : trainees)
    EXPECT_TRUE(eventually("a note", [&] { return !trainee.node->stats().notes.empty(); }));
  over = true;
  for (Trainee& trainee : trainees) trainee.thread.join();
  for (const Trainee& trainee : trainees)
    EXPECT_THAT(trainee.node->stats().notes,
                ::testing::Contains(::testing::HasSubstr("--codec auto: onebit: a link carries")));
}

}  // namespace
}  // namespace streamvec
