// Cuts, nodes that stop, and nodes that are left out while they live; bounds that change.
#include <gtest/gtest.h>

#include <algorithm>

#include "streamvec/sync/simulated_cluster.h"
#include "streamvec/sync/simulated_cluster_testing.h"

namespace streamvec {
namespace {

// Shorter than a node may be away.
void cut_for_short(SimulatedCluster::Options& options) {
  options.cut = 0.03;
  options.stop = 0.02;
  options.away_max_s = 1.4;
}

// About half of the cuts and stops are too long, and others come in place of those that are left out.
void cut_for_long(SimulatedCluster::Options& options) {
  options.cut = options.stop = 0.012;
  options.join = 0.02;
}

class CutOff : public testing::TestWithParam<Admission> {
 protected:
  SimulatedCluster::Options options(int64_t seed) const {
    SimulatedCluster::Options options;
    options.seed = static_cast<uint64_t>(seed);
    options.scheme.admission = GetParam();
    return options;
  }
};

TEST_P(CutOff, NothingIsLostOrAppliedTwiceWhenConnectionsAreCutAndComeBack) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto cut = options(seed);
    cut_for_short(cut);
    if (seed % 2 == 0) cut.crash = cut.join = 0;
    SimulatedCluster cluster(cut);
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    ASSERT_EQ(cluster.left_out(), 0) << "seed " << seed;
  }
}

TEST_P(CutOff, WhatWasAcknowledgedStaysAndWhatNodesSayAfterTheyWereLeftOutIsIgnored) {
  int64_t left_out = 0, said_late = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto cut = options(seed);
    cut_for_long(cut);
    if (seed % 2 == 0) cut.turnover = 0.04;
    SimulatedCluster cluster(cut);
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    left_out += cluster.left_out();
    said_late += cluster.said_late();
  }
  EXPECT_GT(left_out, seeds());
  EXPECT_GT(said_late, seeds());
}

TEST_P(CutOff, NothingIsLostOrAppliedTwiceWhenOwnersGiveTheirRowsUpMeanwhile) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto cut = options(seed);
    seed % 2 == 0 ? cut_for_short(cut) : cut_for_long(cut);
    cut.nodes = 4;
    cut.retire = 0.02;
    ASSERT_EQ(SimulatedCluster(cut).run(), "") << "seed " << seed;
  }
}

TEST_P(CutOff, NewcomersThatBeganWithOtherRowsEndWithThoseOfAll) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto cut = options(seed);
    cut_for_long(cut);
    cut.untrained = 4;
    cut.join = 0.1;
    ASSERT_EQ(SimulatedCluster(cut).run(), "") << "seed " << seed;
  }
}

// How many of some seeds give a planted fault away.
template <typename Make>
int64_t found_in(int64_t seeds, Make&& options) {
  int64_t found = 0;
  for (int64_t seed = 1; seed <= seeds; ++seed) found += SimulatedCluster(options(seed)).run().empty() ? 0 : 1;
  return found;
}

TEST_P(CutOff, ThoseThatTakePartAgainAfterTheyWereLeftOutAreFound) {
  EXPECT_GE(found_in(20,
                     [&](int64_t seed) {
                       auto faulty = options(seed);
                       cut_for_long(faulty);
                       faulty.crash = 0;
                       faulty.readmit = true;
                       return faulty;
                     }),
            3);
}

TEST_P(CutOff, MessagesOfAnEarlierMembershipAreFound) {
  EXPECT_GE(found_in(6,
                     [&](int64_t seed) {
                       auto faulty = options(seed);
                       cut_for_long(faulty);
                       faulty.crash = 0;
                       faulty.ignore_epoch = true;
                       return faulty;
                     }),
            3);
}

INSTANTIATE_TEST_SUITE_P(Schemes, CutOff, kExactSchemes, exact_name_of);

// Of the schemes whose pushes leave marks.
void expect_marks_add_up(SimulatedCluster::Options (*options)(int64_t seed)) {
  const auto cut = [&](int64_t seed) {
    SimulatedCluster::Options faulted = options(seed);
    faulted.nodes_ever = 9;
    faulted.cut = faulted.stop = 0.02;
    faulted.join = 0.04;
    return faulted;
  };
  int64_t left_out = 0, said_late = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SimulatedCluster cluster(cut(seed));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    left_out += cluster.left_out();
    said_late += cluster.said_late();
  }
  EXPECT_GT(left_out, seeds());
  EXPECT_GT(said_late, seeds());
  EXPECT_GE(found_in(12,
                     [&](int64_t seed) {
                       SimulatedCluster::Options faulty = cut(seed);
                       faulty.crash = 0;
                       faulty.ignore_epoch = true;
                       return faulty;
                     }),
            6)
      << "messages of an earlier membership";
}

TEST(CutOffWithMarks, EveryPushOfSoftsyncCountsOnceByItsShare) {
  expect_marks_add_up(softsync);
}

TEST(CutOffWithMarks, EveryPushOfBackupWorkersCountsOnceOrNotAtAll) {
  expect_marks_add_up(backup);
}

// Auto: SSP with a bound of each node's own, which changes.
SimulatedCluster::Options with_changing_bounds(int64_t seed) {
  SimulatedCluster::Options options;
  options.seed = static_cast<uint64_t>(seed);
  options.scheme.admission = Admission::kSsp;
  options.scheme.staleness = 1;
  options.change_bound = 0.01;
  return options;
}

TEST(Auto, AccountsForEveryChangeWhileBoundsChangeAndNodesDieComeAndAreCutOff) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto changing = with_changing_bounds(seed);
    if (seed % 3 == 1) cut_for_short(changing);
    if (seed % 3 == 2) cut_for_long(changing);
    ASSERT_EQ(SimulatedCluster(changing).run(), "") << "seed " << seed;
  }
}

// By what is in the rows, as of SSP.
SimulatedCluster::Options with_stamps(int64_t seed) {
  auto stamped = with_changing_bounds(seed);
  stamped.crash = stamped.join = 0;
  stamped.stamp_clocks = true;
  if (seed % 2 == 0) cut_for_short(stamped);
  return stamped;
}

TEST(Auto, NoValueThatIsReadIsStalerThanTheBoundThatItsReaderHas) {
  int64_t reads = 0, most = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SimulatedCluster cluster(with_stamps(seed));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    ASSERT_EQ(cluster.too_stale(), 0) << "seed " << seed;
    most = std::max(most, cluster.staleness_most());
    reads += cluster.reads();
  }
  EXPECT_GT(most, 4) << "some run freely for a while";
  EXPECT_GT(reads, 1'000);
}

TEST(Auto, WorkersThatIgnoreTheirBoundAreFound) {
  int64_t found = 0;
  for (int64_t seed = 1; seed <= 6; ++seed) {
    auto faulty = with_stamps(seed);
    faulty.ignore_bound = true;
    SimulatedCluster cluster(faulty);
    EXPECT_EQ(cluster.run(), "") << "seed " << seed;
    found += cluster.too_stale() > 0 ? 1 : 0;
  }
  EXPECT_GE(found, 3);
}

TEST(Auto, FaultsThatArePlantedAreFound) {
  constexpr int64_t kSeeds = 6;
  const auto finding = [](void (*plant)(SimulatedCluster::Options&)) {
    return found_in(kSeeds, [&](int64_t seed) {
      auto faulty = with_changing_bounds(seed);
      plant(faulty);
      return faulty;
    });
  };
  EXPECT_GE(finding([](auto& faulty) { faulty.skip_dedupe = true, faulty.repeat = 0.2; }), kSeeds / 2);
  EXPECT_GE(finding([](auto& faulty) { faulty.skip_broadcast = true, faulty.join = 0.05; }), kSeeds / 2);
  EXPECT_GE(finding([](auto& faulty) {
              faulty.ignore_epoch = true;
              faulty.crash = faulty.join = 0.05;
              faulty.steps = 200;
            }),
            kSeeds / 2);
  EXPECT_GE(finding([](auto& faulty) { faulty.ignore_generation = true, faulty.turnover = 0.04; }), kSeeds / 2);
  EXPECT_EQ(finding(coarse), 0);
  EXPECT_GE(finding([](auto& faulty) { coarse(faulty), faulty.drop_residual = true; }), kSeeds / 2);
}

}  // namespace
}  // namespace streamvec
