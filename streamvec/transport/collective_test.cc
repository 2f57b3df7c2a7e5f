#include "streamvec/transport/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/transport/channels.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr NodeId kFirst = 10;  // a node's id is not its rank

using RankRunner = std::function<void(int, const std::function<void(RingCollective&)>&)>;

// Runs `work` once per rank, each in a thread with a ring over an inproc network. Ranks for which `alive` is false
// never take part.
class Ring : public ::testing::Test {
 protected:
  void run_ranks(
      int count, const std::function<void(RingCollective&)>& work, RingCollective::Options options = {},
      const std::function<bool(int)>& alive = [](int) { return true; }) {
    std::vector<NodeId> ring;
    for (int rank = 0; rank < count; ++rank) ring.push_back(next_++);
    std::vector<std::unique_ptr<Transport>> nodes;
    for (const NodeId node : ring) {
      nodes.push_back(network_.join(node));
      for (const NodeId peer : ring) nodes.back()->add_peer(peer, "");
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank)
      if (alive(rank))
        threads.emplace_back([&, rank] {
          ThreadTeam team(team_size_);
          RingCollective::Options mine = options;
          if (team_size_ > 1) mine.team = &team;
          RingCollective collective(*nodes[static_cast<size_t>(rank)], ring, mine);
          work(collective);
        });
    for (std::thread& thread : threads) thread.join();
  }

  // Of small chunks.
  RankRunner runner(int64_t chunk_values = 300) {
    return [=, this](int count, const std::function<void(RingCollective&)>& work) {
      run_ranks(count, work, {.chunk_bytes = 4 * chunk_values});
    };
  }

  static Deadline soon() { return Deadline::after(seconds(20)); }

  InprocNetwork network_;
  NodeId next_ = kFirst;
  int32_t team_size_ = 1;  // of each rank
};

std::vector<float> values_of(int rank, size_t size) {
  Random random(mix(7, static_cast<uint64_t>(rank)));
  std::vector<float> values(size);
  for (float& value : values) value = random.uniform() * 100 - 50;
  return values;
}

class RingSizes : public Ring, public ::testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(RingSizes, LeavesEveryRankWithTheSameMean) {
  const auto [ranks, size] = GetParam();
  std::vector<std::vector<float>> means(static_cast<size_t>(ranks));
  run_ranks(ranks,
            [&](Collective& ring) {
              for (int round = 0; round < 3; ++round) {
                auto values = values_of(ring.rank() + 100 * round, static_cast<size_t>(size));
                ASSERT_TRUE(ring.all_reduce_mean(values, soon()).ok());
                auto& mean = means[static_cast<size_t>(ring.rank())];
                mean.insert(mean.end(), values.begin(), values.end());
              }
            },
            {.chunk_bytes = 400});
  for (const auto& mean : means) EXPECT_EQ(mean, means[0]);  // the same bits
  for (int round = 0; round < 3; ++round) {
    std::vector<double> sums(static_cast<size_t>(size));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto values = values_of(rank + 100 * round, sums.size());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(means[0][static_cast<size_t>(round) * sums.size() + i], sums[i] / ranks, 1e-4);
  }
}

TEST_P(RingSizes, InBf16AllHaveTheSameBitsStillAndTheMeanToAHundredth) {
  const auto [ranks, size] = GetParam();
  if (ranks == 1) return;  // nothing travels
  std::vector<std::vector<float>> means(static_cast<size_t>(ranks));
  run_ranks(ranks,
            [&](Collective& ring) {
              auto values = values_of(ring.rank(), static_cast<size_t>(size));
              ASSERT_TRUE(ring.all_reduce_mean(values, soon()).ok());
              means[static_cast<size_t>(ring.rank())] = values;
            },
            {.chunk_bytes = 400, .in_bf16 = true});
  for (const auto& mean : means) EXPECT_EQ(mean, means[0]);
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
    double sum = 0, lengths = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double value = values_of(rank, static_cast<size_t>(size))[i];
      sum += value;
      lengths += std::abs(value);
    }
    ASSERT_NEAR(means[0][i], sum / ranks, 0.01 * lengths / ranks);
  }
}

// Runs `rounds` of all_reduce_mean_in_four_bits() over the same values, of which the last `whole` travel whole, and
// returns what each rank has in the end: the sum of all rounds' means.
std::vector<std::vector<double>> sums_in_four_bits(const RankRunner& run, int ranks, size_t size, size_t whole,
                                                   int rounds, bool forgets = false) {
  std::vector<std::vector<double>> sums(static_cast<size_t>(ranks), std::vector<double>(size));
  run(ranks, [&](RingCollective& ring) {
    std::vector<float> left_out(size);
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> values = values_of(ring.rank(), size);
      ASSERT_TRUE(ring.all_reduce_mean_in_four_bits(values, whole, left_out, Deadline::after(seconds(20))).ok());
      for (size_t i = 0; i < size; ++i) sums[static_cast<size_t>(ring.rank())][i] += values[i];
      if (forgets) std::fill(left_out.begin(), left_out.end(), 0.0f);
    }
  });
  return sums;
}

double mean_of_ranks(int ranks, size_t size, size_t i) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += values_of(rank, size)[i];
  return sum / ranks;
}

TEST_P(RingSizes, InFourBitsAllHaveTheSameBitsStillAndWhatIsLeftOutGoesLater) {
  const auto [ranks, size] = GetParam();
  if (ranks == 1) return;  // nothing travels
  const auto values = static_cast<size_t>(size), whole = std::min<size_t>(values, 3);
  constexpr int kRounds = 40;
  // A round leaves out half a step of a block's largest sum at the most, from each rank: 50 each, by 14.
  const double most = 50.0 / 14 * ranks + 1;
  const auto sums = sums_in_four_bits(runner(), ranks, values, whole, kRounds);
  for (const auto& sum : sums) EXPECT_EQ(sum, sums[0]);
  for (size_t i = 0; i < values; ++i)
    ASSERT_NEAR(sums[0][i], kRounds * mean_of_ranks(ranks, values, i), i + whole < values ? most : 1e-2);
}

// Of the test above: what would be seen if it did not.
TEST_F(Ring, WhatFourBitsLeaveOutWouldBeMissedInTheEnd) {
  constexpr size_t kSize = 1'000;
  const auto sums = sums_in_four_bits(runner(), 3, kSize, 0, 40, true);
  double furthest = 0;
  for (size_t i = 0; i < kSize; ++i)
    furthest = std::max(furthest, std::abs(sums[0][i] - 40 * mean_of_ranks(3, kSize, i)));
  EXPECT_GT(furthest, 50.0 / 14 * 3 + 1);
}

// One that diverges is seen by all, and no longer than it does.
TEST_F(Ring, InFourBitsARoundOfNumbersThatAreNotFiniteLeavesNothingForTheNext) {
  const std::vector<float> sevens(300, 7);
  run_ranks(3, [&](RingCollective& ring) {
    std::vector<float> left_out(sevens.size());
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const bool fails : {true, false}) {
        std::vector<float> values = sevens;
        if (fails && ring.rank() == 1) values[5] = wrong;
        ASSERT_TRUE(ring.all_reduce_mean_in_four_bits(values, 0, left_out, soon()).ok());
        EXPECT_EQ(values == sevens, !fails);
      }
  });
}

// Parts of any length, also of none. The last is as long as no other.
std::vector<size_t> uneven_begins(int ranks, int unit = 60) {
  std::vector<size_t> begins = {0};
  for (int rank = 0; rank < ranks; ++rank) begins.push_back(begins.back() + static_cast<size_t>(rank * rank * unit));
  begins.back() += 9;
  return begins;
}

// What a rank makes of the mean of its part; nobody could tell it from the mean alone.
float made_of(float mean, size_t part) {
  return 2 * mean + static_cast<float>(part);
}

// The sum of all rounds' values, as each rank has them.
std::vector<std::vector<double>> sums_of_made_parts(const RankRunner& run, const std::vector<size_t>& begins,
                                                    int rounds, bool few_bits) {
  const size_t ranks = begins.size() - 1, size = begins.back();
  std::vector<std::vector<double>> sums(ranks, std::vector<double>(size));
  std::vector<std::atomic<int>> made(ranks);
  run(static_cast<int>(ranks), [&](RingCollective& ring) {
    std::vector<float> left_out(size);
    const RingCollective::Parts parts{begins, [&](size_t part, std::span<float> means) {
                                        ++made[part];
                                        ASSERT_EQ(means.size(), begins[part + 1] - begins[part]);
                                        for (float& mean : means) mean = made_of(mean, part);
                                      }};
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> values = values_of(ring.rank(), size);
      const Deadline deadline = Deadline::after(seconds(20));
      ASSERT_TRUE((few_bits ? ring.all_reduce_made_in_few_bits(values, 3, left_out, parts, deadline)
                            : ring.all_reduce_made(values, parts, deadline))
                      .ok());
      for (size_t i = 0; i < size; ++i) sums[static_cast<size_t>(ring.rank())][i] += values[i];
    }
  });
  for (const auto& times : made) EXPECT_EQ(times, rounds) << "each part by one rank";
  return sums;
}

class RingParts : public Ring, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(RingParts, AllGetWhatARankMadeOfTheMeansOfItsPart) {
  const auto [ranks, few_bits] = GetParam();
  const int rounds = few_bits ? 40 : 2;
  const std::vector<size_t> begins = uneven_begins(ranks);
  const auto sums = sums_of_made_parts(runner(), begins, rounds, few_bits);
  for (const auto& sum : sums) EXPECT_EQ(sum, sums[0]);
  // Half a step of what was made, of the means twice what is left out of them.
  const double slack = few_bits ? (2 * 50 + ranks) / 14.0 + 2 * 50.0 / 254 * ranks + 0.1 : 1e-3;
  for (size_t part = 0; part + 1 < begins.size(); ++part)
    for (size_t i = begins[part]; i < begins[part + 1]; ++i)
      ASSERT_NEAR(sums[0][i], rounds * made_of(static_cast<float>(mean_of_ranks(ranks, begins.back(), i)), part), slack)
          << "value " << i;
}

// Chunks of several units, and of one and some more.
TEST_P(RingParts, WhatATeamPacksIsWhatOneThreadPacks) {
  const auto [ranks, few_bits] = GetParam();
  const std::vector<size_t> begins = uneven_begins(ranks, 2 * static_cast<int>(ValueForm::kUnit) + 700);
  const auto run = runner(5 * static_cast<int64_t>(ValueForm::kUnit) + 100);
  const auto alone = sums_of_made_parts(run, begins, 2, few_bits);
  const auto alone_in_four_bits = sums_in_four_bits(run, ranks, begins.back(), 3, 2);
  team_size_ = 3;
  EXPECT_EQ(sums_of_made_parts(run, begins, 2, few_bits), alone);
  EXPECT_EQ(sums_in_four_bits(run, ranks, begins.back(), 3, 2), alone_in_four_bits);
}

INSTANTIATE_TEST_SUITE_P(RanksAndForms, RingParts,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Bool()));

INSTANTIATE_TEST_SUITE_P(RanksAndValues, RingSizes,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 7),
                                            ::testing::Values(0, 1, 5, 1'000, 1'003)));

TEST_P(RingSizes, GathersWhatEachBroughtByRank) {
  const auto [ranks, size] = GetParam();
  std::vector<std::string> brought;
  for (int rank = 0; rank < ranks; ++rank)
    brought.emplace_back(static_cast<size_t>(size * rank), static_cast<char>('a' + rank));
  run_ranks(ranks,
            [&](Collective& ring) {
              std::vector<std::string> all;
              ASSERT_TRUE(ring.all_gather(brought[static_cast<size_t>(ring.rank())], all, soon()).ok());
              EXPECT_EQ(all, brought);
            },
            {.chunk_bytes = 400});
}

TEST_F(Ring, BroadcastsFromAnyRoot) {
  run_ranks(4,
            [](Collective& ring) {
              for (const size_t size : {0u, 1u, 16u, 1'000u})
                for (int root = 0; root < 4; ++root) {
                  const std::string sent(size, static_cast<char>('a' + root));
                  std::string bytes = ring.rank() == root ? sent : "old";
                  ASSERT_TRUE(ring.broadcast(bytes, root, soon()).ok());
                  EXPECT_EQ(bytes, sent);
                }
            },
            {.chunk_bytes = 16});
}

TEST_F(Ring, MoreThanTheQueuesHoldStillGoesRound) {
  run_ranks(3,
            [](Collective& ring) {
              std::vector<float> values(300'000, static_cast<float>(ring.rank()));
              ASSERT_TRUE(ring.all_reduce_mean(values, soon()).ok());
              EXPECT_EQ(values, std::vector<float>(300'000, 1.0f));
              std::vector<std::string> all;
              ASSERT_TRUE(ring.all_gather(std::string(500'000, 'x'), all, soon()).ok());
              EXPECT_EQ(all, std::vector<std::string>(3, std::string(500'000, 'x')));
            },
            {.chunk_bytes = 1'000, .queue_bytes_max = 2'000});
}

TEST_F(Ring, ReportsAPeerThatDiedAndStaysBroken) {
  run_ranks(
      3,
      [](Collective& ring) {
        std::vector<float> values(100);
        const Status status = ring.all_reduce_mean(values, Deadline::after(milliseconds(50)));
        EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
        EXPECT_THAT(status.message(), ::testing::HasSubstr("node "));
        std::vector<std::string> all;
        EXPECT_EQ(ring.all_gather("x", all, soon()).code(), Code::kDeadlineExceeded);
      },
      {}, [](int rank) { return rank != 1; });
}

TEST_F(Ring, ReportsUnavailableWhenFramesGetLost) {
  network_.drop_next(kFirst, kFirst + 1, 1);
  run_ranks(2,
            [](Collective& ring) {
              std::vector<float> values(100);
              // The one hears of the next frame, the other waits for what nobody sends.
              const auto wait = ring.rank() == 1 ? seconds(20) : seconds(1);
              const Status status = ring.all_reduce_mean(values, Deadline::after(wait));
              EXPECT_EQ(status.code(), ring.rank() == 1 ? Code::kUnavailable : Code::kDeadlineExceeded);
            },
            {.chunk_bytes = 40});
}

TEST_F(Ring, ReportsRanksThatDoNotBringAsManyValues) {
  run_ranks(2, [](Collective& ring) {
    std::vector<float> values(ring.rank() == 0 ? 100 : 101);
    EXPECT_EQ(ring.all_reduce_mean(values, soon()).code(), Code::kInvalidArgument);
  });
}

TEST_F(Ring, ARankKnowsThatTheOneBeforeItHasBegun) {
  std::atomic<int> looked = 0;
  run_ranks(2, [&](RingCollective& ring) {
    const Deadline now = Deadline::after(seconds(0));
    EXPECT_FALSE(ring.is_called(now));
    for (++looked; looked < 2;) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(ring.rank() == 0 || ring.is_called(soon()));
    EXPECT_EQ(ring.is_called(now), ring.rank() == 1) << "and is told so again";
    std::vector<float> values(10, static_cast<float>(ring.rank()));
    EXPECT_TRUE(ring.all_reduce_mean(values, soon()).ok());
    EXPECT_EQ(values, std::vector<float>(10, 0.5f));
    EXPECT_FALSE(ring.is_called(now));
  });
}

// Two of three go on: one of them knows so before the other, which is still in the round that the third has left.
TEST_F(Ring, AGroupThatIsFormedAnewHearsNothingOfTheOneBefore) {
  const std::vector<NodeId> all = {kFirst, kFirst + 1, kFirst + 2}, left = {kFirst, kFirst + 1};
  std::unique_ptr<Transport> nodes[2];
  for (size_t i = 0; i < 2; ++i) {
    nodes[i] = network_.join(all[i]);
    for (const NodeId peer : all) nodes[i]->add_peer(peer, "");
  }
  std::atomic<bool> told[2] = {false, false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      RingCollective::Options options{.chunk_bytes = 40};
      options.interrupted = [&, i] { return told[i].exchange(false); };
      RingCollective ring(*nodes[i], all, options);
      std::vector<float> values = {1, 2, 3};
      EXPECT_EQ(ring.all_reduce_mean(values, soon()).code(), Code::kAborted);
      EXPECT_EQ(ring.all_reduce_mean(values, soon()).code(), Code::kAborted);  // and stays so
      ring.form(left, 1);
      EXPECT_EQ(ring.ranks(), 2);
      for (const float added : {10.0f, 20.0f}) {
        values.assign(100, static_cast<float>(ring.rank()) + added);
        EXPECT_TRUE(ring.all_reduce_mean(values, soon()).ok());
        EXPECT_EQ(values, std::vector<float>(100, 0.5f + added));
      }
    });
  told[1] = true;
  std::this_thread::sleep_for(milliseconds(60));
  told[0] = true;
  for (std::thread& thread : threads) thread.join();
}

struct TwoNodes {
  InprocNetwork network;
  std::unique_ptr<Transport> a = network.join(1), b = network.join(2);
  Channels of_a{*a}, of_b{*b, {.waiting_bytes_max = 1'000}};
  TwoNodes() {
    a->add_peer(2, "");
    b->add_peer(1, "");
  }
};

std::string next(Transport& transport, Deadline deadline = Deadline::after(milliseconds(0))) {
  NodeId from = 0;
  std::string frame;
  const Status status = transport.receive(deadline, from, frame);
  return status.ok() ? frame : status.message();
}

TEST(Channels, KeepFramesApartAndInOrder) {
  TwoNodes nodes;
  const auto a1 = nodes.of_a.open(1), a2 = nodes.of_a.open(2);
  const auto b1 = nodes.of_b.open(1);
  a2->send(2, "second");
  a1->send(2, "first");
  a2->send(2, "");
  EXPECT_EQ(next(*b1), "first");
  EXPECT_EQ(next(*b1), "no frame came in time");
  const auto b2 = nodes.of_b.open(2);  // what came before it was opened waits
  EXPECT_EQ(next(*b2), "second");
  EXPECT_EQ(next(*b2), "");
  EXPECT_EQ(a2->totals().bytes_sent, 6);
  EXPECT_EQ(b2->totals().frames_received, 2);
}

TEST(Channels, DropWhatCannotWaitAndWhatComesForAClosedOne) {
  TwoNodes nodes;
  const auto a1 = nodes.of_a.open(1), a2 = nodes.of_a.open(2);
  const auto b1 = nodes.of_b.open(1);
  for (int i = 0; i < 3; ++i) a2->send(2, std::string(400, 'x'));
  a1->send(2, "through");
  EXPECT_EQ(next(*b1), "through");
  auto b2 = nodes.of_b.open(2);
  EXPECT_EQ(next(*b2).size(), 400u);
  EXPECT_EQ(next(*b2).size(), 400u);
  EXPECT_EQ(b2->totals().frames_dropped, 1);
  a2->send(2, std::string(900, 'y'));
  EXPECT_EQ(next(*b1), "no frame came in time");
  b2.reset();  // frees the room
  a2->send(2, std::string(900, 'z'));
  a1->send(2, std::string(800, 'w'));
  EXPECT_EQ(next(*b1).size(), 800u);
}

TEST(Channels, EveryReceiverIsServedWhoeverWaitsForTheTransport) {
  TwoNodes nodes;
  constexpr int kChannels = 4, kFrames = 300;
  std::vector<std::unique_ptr<Transport>> from, to;
  for (uint32_t i = 0; i < kChannels; ++i) from.push_back(nodes.of_a.open(i)), to.push_back(nodes.of_b.open(i));
  std::vector<std::thread> receivers;
  for (auto& channel : to)
    receivers.emplace_back([&channel] {
      for (int i = 0; i < kFrames; ++i) {
        ASSERT_EQ(next(*channel, Deadline::after(seconds(20))), std::to_string(i));
        channel->send(1, "taken");
      }
    });
  std::thread sender([&] {
    for (int i = 0; i < kFrames; ++i) {
      for (auto& channel : from) channel->send(2, std::to_string(i));
      for (auto& channel : from) ASSERT_EQ(next(*channel, Deadline::after(seconds(20))), "taken");
    }
  });
  sender.join();
  for (std::thread& receiver : receivers) receiver.join();
}

// As the ring's frames begin: a number, the kind, the group, the size.
std::string first_of_bytes(uint64_t size) {
  const uint64_t words[] = {0, 1, size};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

TEST(RingFrames, NoMemoryIsTakenForBytesThatAreOnlyAnnounced) {
  for (const uint64_t size : {uint64_t{1} << 50, ~uint64_t{0}}) {
    TwoNodes nodes;
    RingCollective ring(*nodes.a, {1, 2});
    nodes.b->send(1, first_of_bytes(size) + "some");
    std::string bytes;
    EXPECT_EQ(ring.broadcast(bytes, 1, Deadline::after(milliseconds(100))).code(), Code::kDeadlineExceeded);
  }
}

TEST(Channels, TellThatTheTransportIsClosed) {
  class Closed final : public Transport {
    NodeId self() const override { return 1; }
    void add_peer(NodeId, const std::string&) override {}
    void remove_peer(NodeId) override {}
    void send(NodeId, std::string) override {}
    Status receive(Deadline, NodeId&, std::string&) override { return error(Code::kUnavailable, "closed"); }
    int64_t queued_bytes(NodeId) const override { return 0; }
    TransportTotals totals() const override { return {}; }
  } transport;
  Channels channels(transport);
  const auto channel = channels.open(1);
  EXPECT_EQ(next(*channel), "closed");
  RingCollective ring(*channel, {1, 2});
  std::vector<float> values(2);
  EXPECT_EQ(ring.all_reduce_mean(values, Deadline::never()).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace streamvec
