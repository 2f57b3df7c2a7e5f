// Every scheme against its definition: admission, combiner and codec through an owner and its workers, message by
// message. What becomes of messages on their way is for simulated_cluster_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "streamvec/core/testing_seeds.h"
#include "streamvec/sync/scripted_cluster_testing.h"

namespace streamvec {
namespace {

constexpr int kMoves = 200;
constexpr int64_t kScripts = 20;

using AdmissionAndCombine = std::tuple<Admission, Combine>;

std::string name_of_admission(Admission admission) {
  const char* names[] = {"Bsp", "Backup", "Ssp", "Softsync", "Async"};
  return names[static_cast<size_t>(admission)];
}

ScriptedCluster::Options scripted(Admission admission, Combine combine, CodecKind codec, int64_t seed) {
  ScriptedCluster::Options options;
  options.scheme = {admission, combine, codec};
  options.seed = static_cast<uint64_t>(seed);
  options.workers = static_cast<size_t>(3 + seed % 3);
  options.scheme.backups = static_cast<int32_t>(1 + seed % 2);
  options.scheme.staleness = seed % 3;
  options.scheme.group = static_cast<int32_t>(1 + seed % 4);
  return options;
}

// How many of some scripts give a planted fault away.
int64_t scripts_that_find(const std::function<ScriptedCluster::Options(int64_t seed)>& faulty) {
  int64_t found = 0;
  for (int64_t seed = 1; seed <= kScripts; ++seed)
    found += ScriptedCluster(faulty(seed)).play_any(kMoves).empty() ? 0 : 1;
  return found;
}

// Without a pull `damped` adds (what it does with one: replica_test.cc).
class SchemeDefined : public testing::TestWithParam<AdmissionAndCombine> {
 protected:
  static ScriptedCluster::Options options(int64_t seed) {
    return scripted(std::get<0>(GetParam()), std::get<1>(GetParam()), CodecKind::kFp32, seed);
  }
};

TEST_P(SchemeDefined, OwnerAndWorkersHaveTheRowsOfItsDefinitionInWhateverOrderChangesCome) {
  int64_t dropped = 0, stalest = 0, held_back = 0;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds_or(kScripts); ++seed) {
    ScriptedCluster cluster(options(seed));
    ASSERT_EQ(cluster.play_any(kMoves), "") << "seed " << seed;
    dropped += cluster.dropped();
    stalest = std::max(stalest, cluster.staleness_most());
    held_back += cluster.held_back();
  }
  // The rules were needed.
  const Admission admission = std::get<0>(GetParam());
  EXPECT_EQ(dropped > 0, admission == Admission::kBackup) << dropped;
  EXPECT_EQ(held_back > 0, admission == Admission::kSsp) << held_back;
  EXPECT_GT(stalest, admission == Admission::kSoftsync ? 3 : -1);
}

// What the test above is worth.
TEST_P(SchemeDefined, AnOwnerWithAnotherCombinerIsFound) {
  const auto adds = [](Combine combine) { return combine == Combine::kSum || combine == Combine::kDamped; };
  for (const Combine other : {Combine::kSum, Combine::kMean, Combine::kAdasum}) {
    if (std::get<0>(GetParam()) == Admission::kSoftsync) continue;  // has a rule of its own
    const Combine defined = std::get<1>(GetParam());
    if (other == defined || (adds(other) && adds(defined))) continue;
    const auto with_other = [&](int64_t seed) {
      ScriptedCluster::Options faulty = options(seed);
      faulty.owner_runs = faulty.scheme;
      faulty.owner_runs->combine = other;
      return faulty;
    };
    // Some have rounds of a single change.
    EXPECT_GT(scripts_that_find(with_other), kScripts * 3 / 4) << static_cast<int>(other);
  }
}

std::string name_of_defined(const testing::TestParamInfo<AdmissionAndCombine>& scheme) {
  const std::string combines[] = {"Sum", "Mean", "Adasum", "Damped"};
  return name_of_admission(std::get<0>(scheme.param)) + combines[static_cast<size_t>(std::get<1>(scheme.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Owners, SchemeDefined,
    testing::Combine(testing::Values(Admission::kBsp, Admission::kBackup, Admission::kSsp, Admission::kAsync),
                     testing::Values(Combine::kSum, Combine::kMean, Combine::kAdasum, Combine::kDamped)),
    name_of_defined);
INSTANTIATE_TEST_SUITE_P(Groups, SchemeDefined,
                         testing::Values(AdmissionAndCombine{Admission::kSoftsync, Combine::kMean}), name_of_defined);

// A worker's changes are ones in its column of the first row.
void push_one(ScriptedCluster& cluster, size_t worker) {
  std::vector<float> one(ScriptedCluster::kDim, 0.0f);
  one[worker] = 1;
  cluster.train(worker, 0, one);
  cluster.begin(worker);
}

double counted_of(const ScriptedCluster& cluster, size_t worker) {
  const auto column = static_cast<int64_t>(worker);
  return cluster.value_at_owner(0, column) - scripted_first(0, column);
}

// Of three workers in groups of two; four steps are made while the third's first change is under way.
TEST(SoftsyncDefined, AChangeCountsByItsGroupAndByTheStepsThatWereMadeWithoutIt) {
  ScriptedCluster::Options options = scripted(Admission::kSoftsync, Combine::kMean, CodecKind::kFp32, 1);
  options.workers = 3;
  options.scheme.group = 2;
  ScriptedCluster cluster(options);
  push_one(cluster, 2);
  for (int step = 1; step <= 4; ++step) {
    for (const size_t worker : {0, 1}) {
      push_one(cluster, worker);
      cluster.arrive(worker);
      cluster.hear(worker);
    }
    // The first in a group was answered before its step was made: its next change is one step old, and counts in full.
    for (const size_t worker : {0, 1}) EXPECT_NEAR(counted_of(cluster, worker), step / 2.0, 1e-6);
  }
  cluster.arrive(2);
  EXPECT_EQ(counted_of(cluster, 2), 0) << "half a group";
  push_one(cluster, 1);
  cluster.arrive(1);
  EXPECT_NEAR(counted_of(cluster, 2), 1 / (2 * 4.0), 1e-6);
  EXPECT_NEAR(counted_of(cluster, 1), 5 / 2.0, 1e-6);
  EXPECT_EQ(cluster.staleness_most(), 4);
  EXPECT_EQ(cluster.wrong(), "");
}

TEST(SoftsyncDefined, OwnersThatForgetHowOldAChangeIsAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = scripted(Admission::kSoftsync, Combine::kMean, CodecKind::kFp32, seed);
              faulty.forget_staleness = true;
              return faulty;
            }),
            kScripts);
}

TEST(SoftsyncDefined, GroupsOfAnotherSizeAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = scripted(Admission::kSoftsync, Combine::kMean, CodecKind::kFp32, seed);
              faulty.workers = 5;  // a group is no larger
              faulty.owner_runs = faulty.scheme;
              ++faulty.owner_runs->group;
              return faulty;
            }),
            kScripts);
}

TEST(BackupDefined, TheFirstOfARoundAreItsChangesAndWhoComesLateForgetsItsOwn) {
  ScriptedCluster::Options options = scripted(Admission::kBackup, Combine::kSum, CodecKind::kFp32, 1);
  options.workers = 3;
  options.scheme.backups = 1;
  ScriptedCluster cluster(options);
  for (const size_t worker : {0, 1, 2}) push_one(cluster, worker);
  for (const size_t worker : {2, 0, 1}) cluster.arrive(worker);
  EXPECT_EQ(cluster.dropped(), 1);
  for (const size_t worker : {0, 1, 2})
    while (cluster.can_hear(worker)) cluster.hear(worker);
  for (int64_t column = 0; column < 3; ++column) {
    const double counted = column == 1 ? 0 : 1;
    EXPECT_EQ(counted_of(cluster, static_cast<size_t>(column)), counted);
    EXPECT_EQ(cluster.value_at(1, 0, column), scripted_first(0, column) + counted) << "the late one's own";
  }
  EXPECT_EQ(cluster.wrong(), "");
}

TEST(BackupDefined, LateChangesThatAreTakenForThoseOfTheNextRoundAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = scripted(Admission::kBackup, Combine::kSum, CodecKind::kFp32, seed);
              faulty.forget_staleness = true;
              return faulty;
            }),
            kScripts);
}

TEST(BackupDefined, RoundsOfAnotherSizeAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = scripted(Admission::kBackup, Combine::kSum, CodecKind::kFp32, seed);
              faulty.owner_runs = faulty.scheme;
              --faulty.owner_runs->backups;
              return faulty;
            }),
            kScripts);
}

TEST(SspDefined, WorkersThatRunAClockTooFarAheadAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = scripted(Admission::kSsp, Combine::kSum, CodecKind::kFp32, seed);
              faulty.ignore_bound = true;
              return faulty;
            }),
            kScripts);
}

// It has been told of both changes of the other's, but for the rounding of their sum.
TEST(AsyncDefined, AdasumOfAWorkerThatHasMissedNothingIsItsChange) {
  ScriptedCluster::Options options = scripted(Admission::kAsync, Combine::kAdasum, CodecKind::kFp32, 1);
  options.workers = 2;
  ScriptedCluster cluster(options);
  const auto push = [&](size_t worker, RowKey key, int time) {
    std::vector<float> change;
    for (int k = 0; k < ScriptedCluster::kDim; ++k) change.push_back(static_cast<float>(3 * std::sin(0.7 * time + k)));
    cluster.train(worker, key, change);
    cluster.begin(worker);
    cluster.arrive(worker);
    cluster.hear(worker);
  };
  for (int time = 0; time < 40 && cluster.wrong().empty(); time += 4) {
    push(1, 0, time);
    push(1, 0, time + 1);
    push(0, 1, time + 2);  // and hears of row 0
    push(0, 0, time + 3);
  }
  EXPECT_EQ(cluster.wrong(), "");
}

// One bit a value leaves most of a change for later: at the worker of what it has trained, at the owner of what it
// tells each worker. Every message is the one bit form of all that was not said before.
class OneBitDefined : public testing::TestWithParam<Admission> {
 protected:
  static ScriptedCluster::Options options(int64_t seed) {
    return scripted(GetParam(), Combine::kSum, CodecKind::kOneBit, seed);
  }
};

TEST_P(OneBitDefined, PushesAndAnswersSayWhatWasLeftOutOfThoseBefore) {
  for (int64_t seed = first_seed(); seed < first_seed() + seeds_or(kScripts); ++seed)
    ASSERT_EQ(ScriptedCluster(options(seed)).play_any(kMoves), "") << "seed " << seed;
}

TEST_P(OneBitDefined, ForgottenResidualsAreFound) {
  EXPECT_EQ(scripts_that_find([](int64_t seed) {
              auto faulty = options(seed);
              faulty.drop_residual = true;
              return faulty;
            }),
            kScripts);
}

TEST_P(OneBitDefined, InTheEndAllHaveTheSumOfAllChanges) {
  const bool counts_all = GetParam() != Admission::kBackup && GetParam() != Admission::kSoftsync;
  for (int64_t seed = first_seed(); seed < first_seed() + seeds_or(kScripts); ++seed) {
    ScriptedCluster cluster(options(seed));
    ASSERT_EQ(cluster.play_any(kMoves), "") << "seed " << seed;
    ASSERT_EQ(cluster.play_out(80), "") << "seed " << seed;
    for (const auto& [key, sum] : cluster.trained())
      for (int64_t k = 0; k < ScriptedCluster::kDim; ++k) {
        const double owned = cluster.value_at_owner(key, k);
        if (counts_all) {
          EXPECT_NEAR(owned, scripted_first(key, k) + sum[static_cast<size_t>(k)], 1e-3) << "seed " << seed;
        }
        for (size_t worker = 0; worker < cluster.workers(); ++worker)
          EXPECT_NEAR(cluster.value_at(worker, key, k), owned, 1e-3) << "seed " << seed;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Owners, OneBitDefined,
                         testing::Values(Admission::kBsp, Admission::kBackup, Admission::kSsp, Admission::kSoftsync,
                                         Admission::kAsync),
                         [](const auto& scheme) { return name_of_admission(scheme.param); });

}  // namespace
}  // namespace streamvec
