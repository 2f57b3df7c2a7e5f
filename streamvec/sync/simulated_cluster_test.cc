#include "streamvec/sync/simulated_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "streamvec/sync/simulated_cluster_testing.h"

namespace streamvec {
namespace {

class EveryScheme : public testing::TestWithParam<Admission> {
 protected:
  SimulatedCluster::Options options(uint64_t seed) const {
    SimulatedCluster::Options options;
    options.seed = seed;
    options.scheme.admission = GetParam();
    return options;
  }
};

TEST_P(EveryScheme, LosesNothingAndAppliesNothingTwiceWhateverTheNetworkDoes) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto calm = options(static_cast<uint64_t>(seed));
    calm.crash = calm.join = 0;
    calm.loss = calm.repeat = 0.2;
    ASSERT_EQ(SimulatedCluster(calm).run(), "") << "seed " << seed;
  }
}

TEST_P(EveryScheme, AccountsForEveryChangeWhileNodesDieAndCome) {
  int64_t crashes = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SimulatedCluster cluster(options(static_cast<uint64_t>(seed)));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    crashes += cluster.crashes();
  }
  EXPECT_GT(crashes, seeds() / 2);
}

TEST_P(EveryScheme, AccountsForEveryChangeWhilePushesChangeTheirCodec) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto mixed = options(static_cast<uint64_t>(seed));
    mixed.other_codec = 0.4;
    ASSERT_EQ(SimulatedCluster(mixed).run(), "") << "seed " << seed;
  }
}

TEST_P(EveryScheme, NewcomersThatBeganWithOtherRowsEndWithThoseOfAll) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto joined = options(static_cast<uint64_t>(seed));
    joined.untrained = 4;
    joined.join = 0.1;
    ASSERT_EQ(SimulatedCluster(joined).run(), "") << "seed " << seed;
  }
}

TEST_P(EveryScheme, AccountsForEveryChangeToLivingWordsWhileSlotsChangeHands) {
  int64_t changes = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto turning = options(static_cast<uint64_t>(seed));
    turning.turnover = 0.04;  // few enough that rows are trained on in between
    if (seed % 2 == 0) turning.crash = turning.join = 0;
    SimulatedCluster cluster(turning);
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    changes += cluster.changes_of_hands();
  }
  EXPECT_GT(changes, 10 * seeds());
}

TEST_P(EveryScheme, AccountsForEveryChangeWhileOwnersThatLiveGiveTheirRowsUp) {
  int64_t retirements = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto retiring = options(static_cast<uint64_t>(seed));
    retiring.nodes = 4;
    retiring.retire = 0.03;
    if (seed % 2 == 0) retiring.crash = retiring.join = 0;
    if (seed % 3 == 0) retiring.turnover = 0.04;
    SimulatedCluster cluster(retiring);
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    retirements += cluster.retirements();
  }
  EXPECT_GT(retirements, 3 * seeds());
}

// What the tests above are worth: with a fault planted into the protocol they fail.
class PlantedFault : public EveryScheme {
 protected:
  static constexpr int64_t kSeeds = 6;
  // How many of the seeds give the fault away.
  template <typename Plant>
  int64_t found(Plant&& plant) const {
    int64_t found = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      auto faulty = options(seed);
      plant(faulty);
      found += SimulatedCluster(faulty).run().empty() ? 0 : 1;
    }
    return found;
  }
};

TEST_P(PlantedFault, MessagesTakenTwiceAreFound) {
  EXPECT_GE(found([](auto& faulty) {
              faulty.skip_dedupe = true;
              faulty.repeat = 0.2;
            }),
            kSeeds / 2);
}

TEST_P(PlantedFault, NewcomersThatAreNotToldTheRowsAreFound) {
  EXPECT_GE(found([](auto& faulty) {
              faulty.skip_broadcast = true;
              faulty.join = 0.05;
              faulty.steps = 100;
            }),
            kSeeds / 2);
}

TEST_P(PlantedFault, NewcomersThatKeepTheirOwnFirstRowsAreFound) {
  const auto joined = [](auto& options) {
    options.untrained = 4;
    options.join = 0.1;
    options.steps = 300;
  };
  EXPECT_EQ(found(joined), 0);
  EXPECT_GE(found([&](auto& faulty) {
              joined(faulty);
              faulty.skip_base = true;
            }),
            kSeeds / 2);
}

TEST_P(PlantedFault, ForgottenResidualsAreFound) {
  EXPECT_EQ(found([](auto& faulty) { coarse(faulty); }), 0);
  EXPECT_EQ(found([](auto& faulty) { faulty.drop_residual = true; }), 0) << "all is said at once";
  EXPECT_GE(found([](auto& faulty) {
              coarse(faulty);
              faulty.drop_residual = true;
            }),
            kSeeds / 2);
}

TEST_P(PlantedFault, MessagesOfAnEarlierMembershipAreFound) {
  EXPECT_GE(found([](auto& faulty) {
              faulty.ignore_epoch = true;
              faulty.crash = faulty.join = 0.05;
              faulty.steps = 200;
            }),
            kSeeds / 2);
}

TEST_P(PlantedFault, ChangesToTheLastWordOfASlotAreFound) {
  EXPECT_GE(found([](auto& faulty) {
              faulty.turnover = 0.04;
              faulty.crash = faulty.join = 0;
              faulty.ignore_generation = true;
            }),
            kSeeds / 2);
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme, kExactSchemes, exact_name_of);
INSTANTIATE_TEST_SUITE_P(Schemes, PlantedFault, kExactSchemes, exact_name_of);

// Few seeds find it: of a worker that dies, what was acknowledged to it and no other has heard of yet.
TEST(Async, OwnersThatLiveWhoseRowsAreNotWaitedForAreFound) {
  int64_t found = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimulatedCluster::Options faulty;
    faulty.seed = seed;
    faulty.scheme.admission = Admission::kAsync;
    faulty.nodes = 4;
    faulty.retire = 0.03;
    faulty.join = 0.02;
    faulty.forget_retired = true;
    found += SimulatedCluster(faulty).run().empty() ? 0 : 1;
    faulty.forget_retired = false;
    ASSERT_EQ(SimulatedCluster(faulty).run(), "") << "seed " << seed;
  }
  EXPECT_GE(found, 2);
}

// Of schemes under which not every push counts by 1, with marks. What a codec leaves out would break their marks into
// shares: forgotten residuals are found in scheme_definition_test.cc.
class Marked : public testing::Test {
 protected:
  template <typename Make>
  static void expect_planted_faults_are_found(Make&& options) {
    int64_t taken_twice = 0, not_told = 0, of_last_words = 0;
    for (int64_t seed = 1; seed <= 6; ++seed) {
      SimulatedCluster::Options faulty = options(seed);
      faulty.skip_dedupe = true;
      faulty.repeat = 0.2;
      taken_twice += SimulatedCluster(faulty).run().empty() ? 0 : 1;
      faulty = options(seed);
      faulty.skip_broadcast = true;
      faulty.nodes_ever = 14;
      faulty.join = 0.08;
      not_told += SimulatedCluster(faulty).run().empty() ? 0 : 1;
      faulty = options(seed);
      faulty.ignore_generation = true;
      faulty.turnover = 0.08;
      of_last_words += SimulatedCluster(faulty).run().empty() ? 0 : 1;
    }
    EXPECT_GE(taken_twice, 3);
    EXPECT_GE(not_told, 3);
    EXPECT_GE(of_last_words, 3);
  }
};

// Owners that live give rows up and get them again.
SimulatedCluster::Options retiring(SimulatedCluster::Options options) {
  options.nodes_ever = 7;
  options.nodes = 4;
  options.retire = 0.05;
  if (options.seed % 2 == 0) options.crash = options.join = 0;
  return options;
}

class Softsync : public Marked {};

TEST_F(Softsync, EveryPushCountsOnceByItsShareWhileNodesDieAndCome) {
  int64_t crashes = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SimulatedCluster cluster(softsync(seed));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    crashes += cluster.crashes();
  }
  EXPECT_GT(crashes, seeds() / 2);
}

TEST_F(Softsync, EveryPushCountsOnceByItsShareWhileSlotsChangeHands) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto turning = softsync(seed);
    turning.turnover = 0.04;
    ASSERT_EQ(SimulatedCluster(turning).run(), "") << "seed " << seed;
  }
}

TEST_F(Softsync, EveryPushCountsOnceByItsShareWhileOwnersThatLiveGiveTheirRowsUp) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed)
    ASSERT_EQ(SimulatedCluster(retiring(softsync(seed))).run(), "") << "seed " << seed;
}

// Each found a fault that few seeds find.
TEST_F(Softsync, SeedsThatOnceFoundFaultsFindNone) {
  for (const int64_t seed : {174, 233, 3256, 5560, 6824, 7284, 10333, 3002966, 3004327})
    EXPECT_EQ(SimulatedCluster(softsync(seed)).run(), "") << "seed " << seed;
}

TEST_F(Softsync, FaultsThatArePlantedAreFound) {
  expect_planted_faults_are_found(softsync);
}

class Backup : public Marked {};

TEST_F(Backup, EveryPushCountsOnceOrNotAtAllWhileNodesDieAndCome) {
  int64_t crashes = 0, counted = 0, dropped = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SimulatedCluster cluster(backup(seed));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    crashes += cluster.crashes();
    counted += cluster.counted();
    dropped += cluster.dropped();
  }
  EXPECT_GT(crashes, seeds() / 2);
  EXPECT_GT(dropped, 10 * seeds());
  EXPECT_GT(counted, dropped) << "most of four are in time";
}

TEST_F(Backup, EveryPushCountsOnceOrNotAtAllWhileSlotsChangeHands) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    auto turning = backup(seed);
    turning.turnover = 0.04;
    ASSERT_EQ(SimulatedCluster(turning).run(), "") << "seed " << seed;
  }
}

TEST_F(Backup, EveryPushCountsOnceOrNotAtAllWhileOwnersThatLiveGiveTheirRowsUp) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds(); ++seed)
    ASSERT_EQ(SimulatedCluster(retiring(backup(seed))).run(), "") << "seed " << seed;
}

// Each found a fault that few seeds find.
TEST_F(Backup, SeedsThatOnceFoundFaultsFindNone) {
  for (const int64_t seed : {5713, 7517, 15897}) EXPECT_EQ(SimulatedCluster(backup(seed)).run(), "") << "seed " << seed;
}

TEST_F(Backup, FaultsThatArePlantedAreFound) {
  expect_planted_faults_are_found(backup);
}

// By what is in the rows: every worker leaves its clock there, and looks how old the others' are. With
// STREAMVEC_SEEDS=2000 more than ten million reads.
TEST(Ssp, NoValueThatIsReadIsStalerThanAllowed) {
  int64_t reads = 0, most = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + std::max<int64_t>(seeds() / 2, 1); ++seed) {
    SimulatedCluster::Options options;
    options.seed = static_cast<uint64_t>(seed);
    options.crash = options.join = 0;
    options.stamp_clocks = true;
    options.scheme.admission = Admission::kSsp;
    options.scheme.staleness = seed % 4;
    SimulatedCluster cluster(options);
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    ASSERT_LE(cluster.staleness_most(), options.scheme.staleness) << "seed " << seed;
    most = std::max(most, cluster.staleness_most());
    reads += cluster.reads();
  }
  EXPECT_EQ(most, 3);  // workers do run ahead
  RecordProperty("reads", std::to_string(reads));
  EXPECT_GT(reads, 1'000);
}

}  // namespace
}  // namespace streamvec
