#include "streamvec/cluster/sandblaster_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <optional>
#include <thread>

#include "streamvec/cluster/sandblaster_testing.h"
#include "streamvec/core/testing_wait.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the function of this folder's tests
using ::testing::HasSubstr;

// Holds a portion's workers, if a test says so.
class HeldObjective final : public PortionedObjective {
 public:
  HeldObjective(const PortionedObjective& inner, std::function<void()> before)
      : inner_(inner), before_(std::move(before)) {}
  int64_t portions() const override { return inner_.portions(); }
  std::unique_ptr<PortionWorker> make_worker() const override { return std::make_unique<Worker>(*this); }

 private:
  class Worker final : public PortionWorker {
   public:
    explicit Worker(const HeldObjective& held) : held_(held), inner_(held.inner_.make_worker()) {}
    void begin(int64_t portion, std::vector<uint32_t>& rows) override {
      held_.before_();
      inner_->begin(portion, rows);
    }
    PortionValue add_gradient(MatrixView<const float> values, MatrixView<float> gradient) override {
      return inner_->add_gradient(values, gradient);
    }

   private:
    const HeldObjective& held_;
    const std::unique_ptr<PortionWorker> inner_;
  };
  const PortionedObjective& inner_;
  const std::function<void()> before_;
};

// Nodes as threads of this process: workers 1 .. n, then nodes that only own rows.
class Nodes {
 public:
  Nodes(int32_t workers, int32_t owners, int64_t iterations, double dead_after_s = 60) {
    for (int32_t i = 0; i < workers + owners; ++i) {
      const auto node = static_cast<NodeId>(i + 1);
      if (i < workers) options.workers.push_back(node);
      if (i >= workers || owners == 0) options.owners.push_back(node);
    }
    options.row_end = kSkipGramRows;
    options.dim = kSkipGramDim;
    options.initial = first_row;
    options.scale = scale_of_row;
    options.dead_after_s = dead_after_s;
    options.lbfgs.iterations_max = iterations;
    options.lbfgs.history = 5;
    members.resize(static_cast<size_t>(workers + owners));
    served.resize(members.size());
  }

  ~Nodes() { members[0].reset(); }  // nobody serves for ever, not in a test that has failed either

  void start(size_t i, const PortionedObjective& objective) {
    auto transport = network.join(static_cast<NodeId>(i + 1));
    for (size_t other = 0; other < members.size(); ++other)
      if (other != i) transport->add_peer(static_cast<NodeId>(other + 1), "");
    members[i] = std::move(SandblasterNode::start(options, objective, std::move(transport))).value();
    if (i > 0)
      served[i] = std::async(std::launch::async, [node = members[i].get()] {
        const Status begun = node->await_start().status();
        return begun.ok() ? node->serve() : begun;
      });
  }
  void start_all(const PortionedObjective& objective) {
    for (size_t i = 0; i < members.size(); ++i) start(i, objective);
  }

  Result<std::string> run(const SandblasterCoordinator::AfterStep& after_step = {}) {
    STREAMVEC_RETURN_IF_ERROR(members[0]->await_start().status());
    auto ended = members[0]->run(nullptr, [&](const SandblasterProgress& now) -> Result<bool> {
      values.push_back(now.value);
      return after_step ? after_step(now) : Result<bool>(true);
    });
    if (!ended.ok()) return ended;
    STREAMVEC_RETURN_IF_ERROR(read_point());
    members[0]->end();
    return ended;
  }

  Status read_point() {
    point.assign(size_t{kSkipGramRows} * kSkipGramDim, NAN);
    return members[0]->coordinator().read_last_point([&](RowKey key, std::span<const float> row) {
      std::copy(row.begin(), row.end(), point.begin() + key * kSkipGramDim);
    });
  }

  InprocNetwork network;
  SandblasterOptions options;
  std::vector<std::unique_ptr<SandblasterNode>> members;
  std::vector<std::future<Status>> served;
  std::vector<double> values;  // after each step
  PlainVector point;
};

TEST(Sandblaster, TakesTheStepsOfPlainLbfgsInOneProcess) {
  const SkipGramBatch objective = skip_gram();
  for (const auto& [workers, owners] : {std::pair{1, 0}, std::pair{3, 0}, std::pair{2, 2}}) {
    Nodes nodes(workers, owners, 12);
    PlainVector x = first_point();
    const std::vector<double> plain = plain_lbfgs(plain_function(objective), nodes.options.lbfgs, plain_scales(), x);
    nodes.start_all(objective);
    const auto ended = nodes.run();
    ASSERT_TRUE(ended.ok()) << ended.status().message();
    for (size_t i = 1; i < nodes.served.size(); ++i) EXPECT_TRUE(nodes.served[i].get().ok());
    ASSERT_EQ(nodes.values.size(), plain.size());
    EXPECT_LT(plain.back(), 0.9 * plain.front());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(nodes.values[i], plain[i], 1e-3 * plain[i]) << i;
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(nodes.point[i], x[i], 0.05) << i;
  }
}

TEST(Sandblaster, ConvergesFurtherThanAFixedStepDoes) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 60);
  nodes.start_all(objective);
  ASSERT_TRUE(nodes.run().ok());
  for (size_t i = 1; i < nodes.values.size(); ++i) EXPECT_LE(nodes.values[i], nodes.values[i - 1]);
  PlainVector x = first_point(), gradient(x.size());
  const PlainFunction f = plain_function(objective);
  double descended = 0;
  for (int step = 0; step < 60; ++step) descended = f(x, gradient), x = plain_sum(x, -2.0, gradient);
  EXPECT_LT(nodes.values.back(), descended);
}

TEST(Sandblaster, ASlowWorkersPortionIsDoneByAnother) {
  const SkipGramBatch objective = skip_gram();
  std::promise<void> free;
  const std::shared_future<void> freed = free.get_future().share();
  const HeldObjective held(objective, [freed] { freed.wait(); });
  Nodes nodes(2, 0, 2);
  struct AtTheEnd {
    ~AtTheEnd() { free.set_value(); }
    std::promise<void>& free;
  };
  std::optional<AtTheEnd> holding(std::in_place, free);  // however the test ends
  nodes.start(0, objective);
  nodes.start(1, held);  // gets portions and does nothing until all is over
  ASSERT_TRUE(nodes.run().ok());
  EXPECT_GT(nodes.members[0]->coordinator().progress().copies, 0);
  EXPECT_EQ(nodes.members[0]->coordinator().progress().restarts, 0);
  holding.reset();
  EXPECT_TRUE(nodes.served[1].get().ok());
}

TEST(Sandblaster, GoesOnWhenAWorkerDies) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(3, 1, 12, 6);
  PlainVector x = first_point();
  const std::vector<double> plain = plain_lbfgs(plain_function(objective), nodes.options.lbfgs, plain_scales(), x);
  nodes.start_all(objective);
  const auto ended = nodes.run([&](const SandblasterProgress& now) -> Result<bool> {
    if (now.iterations == 4) nodes.network.cut(3, 1), nodes.network.cut(3, 2), nodes.network.cut(3, 4);
    return true;
  });
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  ASSERT_EQ(nodes.values.size(), plain.size());
  EXPECT_NEAR(nodes.values.back(), plain.back(), 1e-3 * plain.back());  // nothing was lost
  EXPECT_EQ(nodes.members[0]->coordinator().progress().restarts, 0);
  EXPECT_EQ(nodes.served[2].get().code(), Code::kUnavailable);  // it hears nobody
}

TEST(Sandblaster, RowsOfADeadOwnerComeBackFromTheirSecondCopies) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(3, 0, 25, 6);
  nodes.start_all(objective);
  double before = 0, again = 0;
  const auto ended = nodes.run([&](const SandblasterProgress& now) -> Result<bool> {
    if (now.iterations == 10) {
      before = now.value;
      nodes.network.cut(2, 1);
      nodes.network.cut(2, 3);
    }
    if (now.iterations == 11) again = now.value;
    return true;
  });
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_EQ(nodes.members[0]->coordinator().progress().restarts, 1);
  EXPECT_EQ(nodes.values.size(), 25u);
  EXPECT_LT(again, before);  // from where it was, not from the beginning
  EXPECT_LT(nodes.values.back(), before);
  EXPECT_THAT(nodes.members[0]->coordinator().notes(), ::testing::ElementsAre(HasSubstr("node 2 fell silent")));
}

TEST(Sandblaster, NodesThatLoseTheFirstOneEndWithAnError) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 1'000'000, 6);
  nodes.start_all(objective);
  std::promise<void> begun;
  std::thread first([&] {
    (void)nodes.run([&](const SandblasterProgress& now) -> Result<bool> {
      if (now.iterations == 1) nodes.network.cut(1, 2), begun.set_value();
      return now.iterations < 3;
    });
  });
  begun.get_future().wait();
  const Status lost = nodes.served[1].get();
  EXPECT_EQ(lost.code(), Code::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("the first node was not heard"));
  first.join();
}

TEST(Sandblaster, ADeadNodeIsFoundHoweverSoonItIsToBe) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 3, 0.1);
  nodes.start_all(objective);
  const auto ended = nodes.run([&](const SandblasterProgress& now) -> Result<bool> {
    if (now.iterations == 1) nodes.network.cut(1, 2);
    return true;
  });
  EXPECT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_EQ(nodes.members[0]->coordinator().members().size(), 1u);
}

TEST(Sandblaster, AMessageThatCannotBeReadEndsItWithTheReason) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 1);
  ReliableTransport other(nodes.network.join(2));
  other.add_peer(1, "");
  nodes.start(0, objective);
  other.send(1, "of another version");
  EXPECT_THAT(nodes.run().status().message(), HasSubstr("node 2 sent a message that nobody can read"));
}

TEST(Sandblaster, ANodeWithOtherTextIsRefusedWithTheReason) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 1);
  nodes.options.fingerprint_of = "30 words";
  nodes.start(0, objective);
  nodes.options.fingerprint = 7;
  nodes.start(1, objective);
  EXPECT_THAT(nodes.served[1].get().message(), HasSubstr("give all nodes the same text and options"));
}

TEST(Sandblaster, AWishToStopOfAnyNodeEndsItWithWhatThereIs) {
  const SkipGramBatch objective = skip_gram();
  Nodes nodes(2, 0, 1'000'000);
  std::atomic<bool> stop{false};
  nodes.start(0, objective);
  nodes.start(1, objective);
  std::future<Status> asks = std::async(std::launch::async, [&] {
    STREAMVEC_RETURN_IF_ERROR(nodes.members[1]->await_start().status());
    return nodes.members[1]->serve(&stop);
  });
  const auto ended = nodes.run([&](const SandblasterProgress& now) -> Result<bool> {
    stop = now.iterations == 2;
    EXPECT_TRUE(!stop || eventually("the wish to stop", [&] { return nodes.members[0]->coordinator().wants_stop(); }));
    return true;
  });
  EXPECT_EQ(ended.ok() ? *ended : ended.status().message(), "it was stopped");
  if (!ended.ok()) nodes.members[0].reset();  // the other does not serve for ever then
  EXPECT_EQ(nodes.values.size(), 2u);
  EXPECT_TRUE(asks.get().ok());
}

}  // namespace
}  // namespace streamvec
