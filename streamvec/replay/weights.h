// How likely each chunk of a replay table is to be drawn, and what a draw is to count for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "streamvec/core/forward_decay.h"
#include "streamvec/replay/sum_tree.h"

namespace streamvec {

// A chunk's weight is its priority to the power of alpha; with a half-life it fades as the chunk grows older. A chunk
// without a priority has the mean of the latest ones. A weight is never further than a factor of kSpreadMax from that
// mean, so that no outlier is drawn for ever, and no idle chunk lets the importance of all the others vanish.
// Not thread-safe.
class ReplayWeights {
 public:
  static constexpr float kSpreadMax = 64;
  struct Options {
    bool prioritised = false;                   // off: every weight is 1
    double alpha = 0.6;                         // 0: uniform; 1: in proportion to priority
    double beta = 0.4;                          // how much of the bias importance takes back; 1: all
    double half_life = ForwardDecay::kForever;  // of weights, on the clock of ReplayItem::t
  };
  struct State {  // with the weights themselves, all there is to know
    float mean = 0;
    double half_life = ForwardDecay::kForever;
    int64_t landmark = 0;
  };

  ReplayWeights(const Options& options, size_t places);

  // To be called before chunks of time t are added. Linear in the places, once in many half-lives; mostly nothing.
  void advance(double t);
  // REQUIRES: the place is empty; t is finite. `weight` is what get() gave before a restart.
  void add(size_t place, double t);
  void restore(size_t place, double t, float weight);
  void remove(size_t place);
  // False for a priority that is negative or no number: nothing changes. REQUIRES: the place is not empty.
  bool update(size_t place, float priority);

  float get(size_t place) const { return plain().get(place); }  // without fading; 0: the place is empty
  // The places of random numbers, each 0 <= u < 1, which are used up. REQUIRES: not all places are empty; as many
  // places as numbers.
  void draw(std::span<double> numbers, std::span<size_t> places) const;

  // What undoes the bias of a draw, to the power of beta, relative to the largest there is: 0 < result <= 1. The
  // largest is that of the least weight here or, of a table that is one of several, of what set_reference() was told.
  float importance(size_t place) const;
  float importance_in_order() const;  // of a chunk taken in its turn

  // The weight of which a draw's importance is 1 (ReplayUnion); nullopt: the least here.
  void set_reference(std::optional<float> weight) { reference_ = weight; }
  // Of what draw() goes by: the logarithm of the sum, on a scale that all tables of one half-life share. -infinity:
  // nothing is here.
  double log2_sum() const;
  float least() const { return plain().least(); }  // infinity: nothing is here

  State state() const { return {mean_, decay_.half_life(), decay_.landmark()}; }
  void restore(const State& state);  // before the places

 private:
  bool fades() const { return decay_.half_life() != ForwardDecay::kForever; }
  const SumTree& plain() const { return fades() ? plain_ : drawn_; }
  float reference() const { return reference_.value_or(plain().least()); }
  float faded(float weight, double t) const;
  void set(size_t place, float weight);
  void refresh();
  void adopt_scale(float first);

  Options options_;
  ForwardDecay decay_;
  SumTree drawn_;              // what draw() goes by
  SumTree plain_;              // the weights without fading; not used when they do not fade
  std::vector<double> times_;  // by place, when they fade
  float mean_ = 0;             // of the latest priorities to the power of alpha; 0: none yet
  int64_t held_ = 0;
  std::optional<float> reference_;
};

}  // namespace streamvec
