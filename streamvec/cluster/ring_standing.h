// What the nodes of a ring make of a round that somebody's death, or one that joins, has cut short.
//
// Nobody has the means of a reduction before everybody has brought its part: so of those that are left some have ended
// a round and may have begun the next, others are still in it, and nobody is further apart than that. When the ring is
// formed anew all tell how many rounds they have ended. Where that is the same, nobody has the means of the round under
// way, and all take back what they brought to it. Where it is not, one of those that are ahead tells what it agreed to,
// in which every node's part is, and the others adopt it. Who dies meanwhile changes nothing of that: all stand as
// before, or where the furthest do.
//
// One that joins has ended no round and knows nothing: it is behind everybody, and adopts like those that are. A ring
// of it cannot end a round before it has, as it brings no part: the others stand where they did when it dies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace streamvec {

struct RingStanding {
  enum class Stage : int64_t {
    kRounds,
    kRest,  // everybody's text is over: one round more, of what thin matrices have left out
    kOver
  };
  static constexpr int64_t kNewcomer = -1;
  int64_t rounds = 0;  // that have ended; kNewcomer: of one that joins, and has yet to be told
  Stage stage = Stage::kRounds;
  int64_t rows_met = 0;  // of tables that grow, which the next round takes (RoundValues)
  bool is_new() const { return rounds == kNewcomer; }
};

struct RingAgreement {
  size_t furthest = 0;  // the first of those that are: it tells
  bool differ = false;  // others have to be told
};

// Of all nodes of the new ring, by rank.
inline RingAgreement agree(std::span<const RingStanding> all) {
  const auto less = [](const RingStanding& a, const RingStanding& b) { return a.rounds < b.rounds; };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), less);
  const auto first = std::find_if(all.begin(), all.end(),
                                  [&, most = most](const RingStanding& one) { return one.rounds == most->rounds; });
  return {static_cast<size_t>(first - all.begin()), least->rounds != most->rounds};
}

}  // namespace streamvec
