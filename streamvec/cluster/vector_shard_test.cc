#include "streamvec/cluster/vector_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "streamvec/cluster/sandblaster_owner.h"
#include "streamvec/cluster/sandblaster_worker.h"
#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kVectorDim = 3;

Status by_number(RowKey row, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(row) + 0.25f * static_cast<float>(i);
  return {};
}

VectorShard shard_of(const std::vector<RowKey>& rows) {
  VectorShard shard(
      kVectorDim, [](RowKey row) { return static_cast<float>(row + 1); }, "a smaller --dim");
  EXPECT_TRUE(shard.take(rows, by_number).ok());
  return shard;
}

std::vector<float> read(VectorShard& shard, VectorId vector, std::vector<RowKey> rows) {
  std::vector<float> values;
  EXPECT_TRUE(shard.read(vector, rows, values).ok());
  return values;
}

TEST(VectorShard, SumsOfSharesAreThoseOfTheWhole) {
  using Kind = VectorOp::Kind;
  const std::vector<VectorOp> ops = {{Kind::kCopy, kPoint, kTrial, 0},       {Kind::kScale, kTrial, 0, -2},
                                     {Kind::kAxpy, kPoint, kTrial, 0.5},     {Kind::kDot, kPoint, kTrial, 0},
                                     {Kind::kDotDivided, kTrial, kTrial, 0}, {Kind::kDivide, kTrial, 0, 0},
                                     {Kind::kDot, kTrial, kTrial, 0}};
  VectorShard whole = shard_of({0, 1, 2, 3, 4, 5, 6}), even = shard_of({0, 2, 4, 6}), odd = shard_of({5, 3, 1});
  std::vector<double> all, some, others;
  ASSERT_TRUE(whole.apply(ops, all).ok() && even.apply(ops, some).ok() && odd.apply(ops, others).ok());
  ASSERT_EQ(all.size(), 3u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], some[i] + others[i], 1e-9 * std::abs(all[i]));
  EXPECT_EQ(read(whole, kTrial, {3, 5}), read(odd, kTrial, {3, 5}));
}

TEST(VectorShard, OpsDoWhatTheySay) {
  using Kind = VectorOp::Kind;
  VectorShard shard = shard_of({1});
  std::vector<double> told;
  const std::vector<VectorOp> ops = {{Kind::kAxpy, kPoint, kDirection, 2},
                                     {Kind::kDot, kDirection, kPoint, 0},
                                     {Kind::kDotDivided, kDirection, kPoint, 0},
                                     {Kind::kDivide, kDirection, 0, 0},
                                     {Kind::kScale, kDirection, 0, -1}};
  ASSERT_TRUE(shard.apply(ops, told).ok());
  EXPECT_THAT(told, ElementsAre(2 * (1 + 1.5625 + 2.25), 1 + 1.5625 + 2.25));
  EXPECT_THAT(read(shard, kDirection, {1}), ElementsAre(-1, -1.25f, -1.5f));
}

TEST(VectorShard, RowsThatItHasStayWhenOthersComeAndTheRestIsForgotten) {
  VectorShard shard = shard_of({1, 2});
  const std::vector<float> more = {10, 10, 10};
  ASSERT_TRUE(shard.add(kPoint, std::vector<RowKey>{2}, more).ok());
  ASSERT_TRUE(shard.add(kTrialGradient, std::vector<RowKey>{2}, more).ok());
  ASSERT_TRUE(shard.take({2, 7}, by_number).ok());
  EXPECT_THAT(read(shard, kPoint, {7, 2}), ElementsAre(7, 7.25f, 7.5f, 12, 12.25f, 12.5f));
  EXPECT_THAT(read(shard, kTrialGradient, {2}), ElementsAre(0, 0, 0));
  std::vector<float> values;
  EXPECT_EQ(shard.read(kPoint, std::vector<RowKey>{1}, values).code(), Code::kOutOfRange);
}

TEST(VectorShard, RefusesValuesThatDoNotFit) {
  VectorShard shard = shard_of({1, 2});
  const std::vector<float> two(2), three(3);
  EXPECT_EQ(shard.add(kPoint, std::vector<RowKey>{1}, two).code(), Code::kInvalidArgument);
  EXPECT_EQ(shard.add(kPoint, std::vector<RowKey>{9}, three).code(), Code::kOutOfRange);
}

TEST(SandblasterOwner, TheSecondOwnerIsTheNextOneWhenTheFirstIsGone) {
  const std::vector<NodeId> owners = {1, 2, 3, 4};
  for (RowKey row = 0; row < 200; ++row) {
    std::vector<NodeId> left;
    for (const NodeId owner : owners)
      if (owner != owner_of(row, owners)) left.push_back(owner);
    EXPECT_EQ(second_owner_of(row, owners), owner_of(row, left));
  }
}

class OwnerTest : public ::testing::Test {
 protected:
  OwnerTest() {
    SandblasterOwner::Options options;
    options.self = 1;
    options.coordinator = 9;
    options.row_end = 10;
    options.dim = kVectorDim;
    options.initial = [](RowKey row, std::span<float> values) { (void)by_number(row, values); };
    owner_ = std::move(SandblasterOwner::make(options, [this](NodeId to, const SandblasterMessage& message) {
               sent_.emplace_back(to, message);
             })).value();
  }
  SandblasterMessage answer_to(const SandblasterMessage& message) {
    sent_.clear();
    EXPECT_TRUE(owner_->receive(5, message).ok());
    EXPECT_EQ(sent_.size(), 1u);
    return sent_.empty() ? SandblasterMessage() : sent_.back().second;
  }
  std::vector<float> trial_gradient(RowKey row) {
    return answer_to(
               {.kind = SandblasterKind::kFetch, .epoch = 1, .number = 77, .vector = kTrialGradient, .rows = {row}})
        .values;
  }

  std::unique_ptr<SandblasterOwner> owner_;
  std::vector<std::pair<NodeId, SandblasterMessage>> sent_;
};

TEST_F(OwnerTest, APortionThatTwoNodesBringIsAddedOnce) {
  EXPECT_EQ(answer_to({.kind = SandblasterKind::kView, .epoch = 1, .rows = {1}}).text, "");
  answer_to({.kind = SandblasterKind::kBegin, .epoch = 1, .number = 3});
  const SandblasterMessage part{
      .kind = SandblasterKind::kGradient, .epoch = 1, .number = 3, .portion = 6, .rows = {4}, .values = {1, 2, 3}};
  for (int time = 0; time < 2; ++time) EXPECT_EQ(answer_to(part).kind, SandblasterKind::kTaken);
  EXPECT_THAT(trial_gradient(4), ElementsAre(1, 2, 3));
  SandblasterMessage other = part;
  other.portion = 7;
  answer_to(other);
  EXPECT_THAT(trial_gradient(4), ElementsAre(2, 4, 6));
  answer_to({.kind = SandblasterKind::kBegin, .epoch = 1, .number = 4});
  answer_to(part);  // of the evaluation before
  EXPECT_THAT(trial_gradient(4), ElementsAre(0, 0, 0));
}

TEST_F(OwnerTest, EveryPartOfAPortionThatCameInSeveralMessagesIsAddedOnce) {
  answer_to({.kind = SandblasterKind::kView, .epoch = 1, .rows = {1}});
  answer_to({.kind = SandblasterKind::kBegin, .epoch = 1, .number = 3});
  for (int time = 0; time < 2; ++time)
    for (const RowKey row : {4u, 5u})
      answer_to({.kind = SandblasterKind::kGradient,
                 .epoch = 1,
                 .number = 3,
                 .portion = 6,
                 .rows = {row},
                 .values = {1, 2, 3}});
  EXPECT_THAT(trial_gradient(4), ElementsAre(1, 2, 3));
  EXPECT_THAT(trial_gradient(5), ElementsAre(1, 2, 3));
}

TEST_F(OwnerTest, RowsOfWhichNobodyHasACopyAreReportedAsLost) {
  const SandblasterMessage ready = answer_to({.kind = SandblasterKind::kView, .epoch = 2, .number = 1, .rows = {1}});
  EXPECT_THAT(ready.text, ::testing::HasSubstr("are gone"));
}

TEST_F(OwnerTest, ASecondCopyBecomesTheRowWhenItsOwnerIsGone) {
  answer_to({.kind = SandblasterKind::kView, .epoch = 1, .rows = {1, 2}});
  RowKey row = 0;
  while (owner_of(row, std::vector<NodeId>{1, 2}) != 2) ++row;
  std::vector<RowKey> others;
  for (RowKey each = 0; each < 10; ++each)
    if (owner_of(each, std::vector<NodeId>{1, 2}) == 2) others.push_back(each);
  SandblasterMessage copies{.kind = SandblasterKind::kCopies, .epoch = 1, .number = 8, .rows = others};
  copies.values.assign(others.size() * kVectorDim, 42.0f);
  EXPECT_EQ(answer_to(copies).kind, SandblasterKind::kCopied);
  EXPECT_EQ(answer_to({.kind = SandblasterKind::kView, .epoch = 2, .number = 1, .rows = {1}}).text, "");
  EXPECT_THAT(
      answer_to({.kind = SandblasterKind::kFetch, .epoch = 2, .number = 77, .vector = kPoint, .rows = {row}}).values,
      ElementsAre(42, 42, 42));
}

constexpr int64_t kLongDim = int64_t{1} << 20;  // two rows make a message

TEST(SandblasterOwner, SecondCopiesOfLongRowsTravelInSeveralMessages) {
  std::vector<size_t> sizes;
  SandblasterOwner::Options options;
  options.self = 1;
  options.coordinator = 9;
  options.row_end = 12;
  options.dim = kLongDim;
  options.initial = [](RowKey, std::span<float>) {};
  std::set<RowKey> rows;
  const auto owner = std::move(SandblasterOwner::make(options, [&](NodeId, const SandblasterMessage& message) {
                       if (message.kind != SandblasterKind::kCopies) return;
                       sizes.push_back(message.rows.size());
                       rows.insert(message.rows.begin(), message.rows.end());
                     })).value();
  ASSERT_TRUE(owner->receive(9, {.kind = SandblasterKind::kView, .epoch = 1, .rows = {1, 2}}).ok());
  ASSERT_TRUE(owner->receive(9, {.kind = SandblasterKind::kKeep, .epoch = 1, .number = 5}).ok());
  for (size_t copied = 0; copied < sizes.size(); ++copied)
    ASSERT_TRUE(owner->receive(2, {.kind = SandblasterKind::kCopied, .epoch = 1, .number = 5}).ok());
  EXPECT_THAT(sizes, ::testing::Each(::testing::Le(2u)));
  for (RowKey row = 0; row < 12; ++row)
    EXPECT_EQ(rows.count(row) == 1, owner_of(row, std::vector<NodeId>{1, 2}) == 1) << row;
  EXPECT_GT(rows.size(), 2u);
}

// Five rows, whose gradient is what they are.
class FiveRows final : public PortionedObjective {
 public:
  int64_t portions() const override { return 1; }
  std::unique_ptr<PortionWorker> make_worker() const override { return std::make_unique<Worker>(); }

 private:
  class Worker final : public PortionWorker {
    void begin(int64_t, std::vector<uint32_t>& rows) override { rows = {3, 0, 4, 1, 2}; }
    PortionValue add_gradient(MatrixView<const float> values, MatrixView<float> gradient) override {
      for (int64_t i = 0; i < values.rows; ++i) std::copy_n(values.row(i), values.cols, gradient.row(i));
      return {1, 1};
    }
  };
};

TEST(SandblasterWorker, LongRowsTravelInSeveralMessages) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<SandblasterMessage> sent;
  const FiveRows objective;
  const auto worker = std::move(SandblasterWorker::make({.coordinator = 9, .row_end = 5, .dim = kLongDim}, objective,
                                                        [&](NodeId, const SandblasterMessage& message) {
                                                          const std::lock_guard lock(mutex);
                                                          sent.push_back(message);
                                                          changed.notify_all();
                                                        }))
                          .value();
  worker->receive(9, {.kind = SandblasterKind::kView, .epoch = 1, .rows = {1}});
  worker->receive(9, {.kind = SandblasterKind::kPortion, .epoch = 1, .number = 7, .portion = 0});
  std::map<RowKey, float> gradient;
  for (SandblasterMessage message; message.kind != SandblasterKind::kFinished;) {
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return !sent.empty(); }));
      message = std::move(sent.front());
      sent.pop_front();
    }
    EXPECT_LE(message.rows.size(), 2u);
    SandblasterMessage answer{.epoch = 1, .number = message.number, .portion = message.portion};
    answer.kind = message.kind == SandblasterKind::kFetch ? SandblasterKind::kRows : SandblasterKind::kTaken;
    for (size_t i = 0; i < message.rows.size(); ++i) {
      const auto place = i * static_cast<size_t>(kLongDim);
      if (message.kind == SandblasterKind::kFetch)
        answer.values.resize(place + static_cast<size_t>(kLongDim), static_cast<float>(message.rows[i]));
      else
        gradient[message.rows[i]] += message.values[place];
    }
    worker->receive(1, answer);
  }
  EXPECT_THAT(gradient, ElementsAre(::testing::Pair(0, 0), ::testing::Pair(1, 1), ::testing::Pair(2, 2),
                                    ::testing::Pair(3, 3), ::testing::Pair(4, 4)));
}

TEST(SandblasterMessage, ComesBackAsItWasAndDamageIsNoticed) {
  SandblasterMessage message{.kind = SandblasterKind::kApply,
                             .epoch = 7,
                             .number = uint64_t{1} << 40,
                             .portion = 9,
                             .vector = kTrial,
                             .ops = {{VectorOp::Kind::kAxpy, 1, 2, -0.5}},
                             .doubles = {1, 2},
                             .rows = {3, 4, 5},
                             .values = {6, 7},
                             .text = "why"};
  const std::string bytes = encode(message);
  const auto back = decode_sandblaster(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(encode(*back), bytes);
  EXPECT_EQ(back->ops, message.ops);
  EXPECT_EQ(back->text, "why");
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_sandblaster(std::string_view(bytes).substr(0, length)).ok());
  EXPECT_FALSE(decode_sandblaster(bytes + "x").ok());
  std::string huge = bytes;
  huge[19] = '\x7f';  // more ops than there are bytes
  EXPECT_FALSE(decode_sandblaster(huge).ok());
}

}  // namespace
}  // namespace streamvec
