// What the tests of SimulatedCluster share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "streamvec/core/testing_seeds.h"
#include "streamvec/sync/simulated_cluster.h"

namespace streamvec {

inline int64_t seeds() {
  return seeds_or(60);
}

// Of the schemes under which every push counts by 1.
inline std::string exact_name_of(const testing::TestParamInfo<Admission>& scheme) {
  return scheme.param == Admission::kBsp ? "bsp" : scheme.param == Admission::kSsp ? "ssp" : "async";
}
inline const auto kExactSchemes = testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync);

// One bit a value: most of a push is left for later ones.
inline void coarse(SimulatedCluster::Options& options) {
  options.scheme.codec = CodecKind::kOneBit;
  options.crash = options.join = 0;
  options.nodes_ever = 4;
  options.settling = 60;
}

// Of schemes under which not every push counts by 1, with marks.
inline SimulatedCluster::Options marked(int64_t seed, Admission admission) {
  SimulatedCluster::Options options;
  options.seed = static_cast<uint64_t>(seed);
  options.scheme.admission = admission;
  options.nodes_ever = 6;
  options.marks = 24;
  options.steps = 160;
  options.crash = options.join = 0.012;
  return options;
}

// Each push counts by a share.
inline SimulatedCluster::Options softsync(int64_t seed) {
  SimulatedCluster::Options options = marked(seed, Admission::kSoftsync);
  options.scheme.group = 1 + static_cast<int32_t>(seed % 4);
  return options;
}

// Rounds end when all but one or two have pushed.
inline SimulatedCluster::Options backup(int64_t seed) {
  SimulatedCluster::Options options = marked(seed, Admission::kBackup);
  options.scheme.backups = 1 + static_cast<int32_t>(seed % 2);
  options.nodes = 4;
  options.nodes_ever = 7;
  return options;
}

}  // namespace streamvec
