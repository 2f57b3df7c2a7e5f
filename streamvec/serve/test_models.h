// Small models for the tests of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/serve/served_model.h"

namespace streamvec {

// `groups` x `each` words g0w0, g0w1, ...: those of a group lie close around a direction of their own. Counts fall.
inline std::shared_ptr<Snapshot> grouped_snapshot(int groups, int each, int64_t dim, uint64_t seed = 1,
                                                  float noise = 0.3f) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->input = Matrix::make(groups * each, dim).value();
  for (int i = 0; i < groups * each; ++i) {
    const int group = i % groups;
    Random centre(mix(7, static_cast<uint64_t>(group))), own(mix(seed, static_cast<uint64_t>(i)));
    snapshot->vocabulary.add("g" + std::to_string(group) + "w" + std::to_string(i / groups), 10'000 - i);
    for (int64_t j = 0; j < dim; ++j)
      snapshot->input.row(i)[j] = centre.uniform() - 0.5f + noise * (own.uniform() - 0.5f);
  }
  return snapshot;
}

inline std::shared_ptr<const ServedModel> served(std::shared_ptr<const Snapshot> snapshot, int64_t number = 1) {
  return ServedModel::make(std::move(snapshot), number).value();
}

}  // namespace streamvec
