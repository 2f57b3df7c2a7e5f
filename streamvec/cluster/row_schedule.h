// Which rows a push takes along. A row that training moves fast goes with every push; one that moves slowly goes when
// it has moved as far as is worth a message, every 2nd, 4th, 8th... push: nodes that count their pushes alike then send
// it in the same round, and one answer serves all of them. After kAllEvery pushes every row goes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace streamvec {

class RowSchedule {
 public:
  static constexpr int64_t kAllEvery = 32;
  // One other node has moved the row by this share of its way (docs/BENCHMARKS.md, Cluster). Less: closer to one node,
  // and more rows to send, so fewer pushes in the same time. Of several others, all together, less is worth a message:
  // half of it of four.
  static constexpr double kWorth = 0.4;

  // `pull`: by key, how strongly training moves the row (SyncOptions::pull); a row whose pull is not known, 0, goes
  // with every push. `nodes`: that train.
  RowSchedule(std::span<const float> pull, int64_t nodes);

  void set_nodes(int64_t nodes);
  // The rows of push number `push`, from 1 on: a bit a key. `steps`: a row's pull times that is how far one node moves
  // it towards its rest between two pushes.
  std::span<const uint64_t> due(int64_t push, double steps) const;

 private:
  double others_ = 1;  // that train, each counting the more the more there are
  double most_ = 0;    // pull of the row that moves fastest
  // By k: the rows whose pull is at least 2^-k of the most.
  std::vector<std::vector<uint64_t>> rows_;
};

}  // namespace streamvec
