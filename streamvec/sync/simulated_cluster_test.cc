#include "streamvec/sync/simulated_cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace streamvec {
namespace {

// More seeds by STREAMVEC_SEEDS=100000; a failure prints its seed.
int64_t seeds() {
  const char* wanted = std::getenv("STREAMVEC_SEEDS");
  return wanted == nullptr ? 60 : std::atoll(wanted);
}

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
  for (int64_t seed = 1; seed <= seeds(); ++seed) {
    auto calm = options(static_cast<uint64_t>(seed));
    calm.crash = calm.join = 0;
    calm.loss = calm.repeat = 0.2;
    ASSERT_EQ(SimulatedCluster(calm).run(), "") << "seed " << seed;
  }
}

TEST_P(EveryScheme, AccountsForEveryChangeWhileNodesDieAndCome) {
  int64_t crashes = 0;
  for (int64_t seed = 1; seed <= seeds(); ++seed) {
    SimulatedCluster cluster(options(static_cast<uint64_t>(seed)));
    ASSERT_EQ(cluster.run(), "") << "seed " << seed;
    crashes += cluster.crashes();
  }
  EXPECT_GT(crashes, seeds() / 2);
}

TEST_P(EveryScheme, IsFoundOutWhenMessagesAreTakenTwice) {
  int64_t found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto faulty = options(seed);
    faulty.skip_dedupe = true;
    faulty.repeat = 0.2;
    found += SimulatedCluster(faulty).run().empty() ? 0 : 1;
  }
  EXPECT_GE(found, 15);
}

INSTANTIATE_TEST_SUITE_P(
    Schemes, EveryScheme, testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync), [](const auto& scheme) {
      return std::string(scheme.param == Admission::kBsp ? "bsp" : scheme.param == Admission::kSsp ? "ssp" : "async");
    });

TEST(Ssp, NoWorkerTrainsFurtherAheadOfTheSlowestThanAllowed) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SimulatedCluster::Options options;
    options.seed = seed;
    options.crash = options.join = 0;
    options.scheme.admission = Admission::kSsp;
    options.scheme.staleness = 2;
    SimulatedCluster cluster(options);
    ASSERT_EQ(cluster.run(), "");
    ASSERT_LE(cluster.staleness_most(), 2);
  }
}

}  // namespace
}  // namespace streamvec
