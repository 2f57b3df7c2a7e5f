// How near the vectors of a stream are to what the stream said lately: PIP against SPPMI (pip.h) for a probe vocabulary
// whose pair counts are kept while the text passes by, with the half-life of everything else, in fixed bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/forward_decay.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/pip.h"
#include "streamvec/eval/sentences.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {

struct ProbeOptions {
  PairOptions pairs;                          // as in training
  double half_life = ForwardDecay::kForever;  // in the unit of add()'s t
  int64_t words_max = 1'000;                  // 8 bytes * words_max^2 of memory; time of a measurement with its square
  double count_min = 50;                      // words with a smaller (decayed) count are not probed
  int32_t chunks_every = 8;                   // one chunk in so many is counted; 1: all, and more exact
  int64_t dim = 200;                          // of the oracle: give the model's
  double basis_factor = 2;                    // of its factorisation, see SvdOptions
  int64_t overlap_words = 500;                // words whose neighbours are compared
};

// What was counted, by probe word; in two halves, chunks being divided by chance. All sums have one common scale.
struct ProbeCounts {
  struct Half {
    std::vector<double> pairs;      // n_ij = n_ji at pair_index(i, j): probe words within a window of each other
    std::vector<double> marginals;  // n_i: with all words, probed or not
    std::vector<double> tokens;     // occurrences before subsampling
    double tokens_sum = 0;          // of all words
  };
  std::vector<Slot> slots;  // of the words
  std::array<Half, 2> halves;

  int64_t size() const { return static_cast<int64_t>(slots.size()); }
  static size_t pair_index(size_t i, size_t j) { return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i; }
};

// Not thread-safe. One thread adds; another takes copies of counts() under the same lock and measures those, so that
// adding never waits for a factorisation. Counting costs about 20 ns a token of the chunks that are counted.
class ProbeSppmi {
 public:
  explicit ProbeSppmi(const ProbeOptions& options);

  // Chooses words, given every slot's (decayed) count: half of them the most frequent, the others spread evenly over
  // the logarithm of the rank down to count_min. Words chosen earlier stay while their count is at least half of
  // count_min, unless a place is needed for one that has become one of the most frequent; so figures of different times
  // are of much the same words. A word that joins needs about a half-life until its counts are on a par.
  void follow(std::span<const double> counts);
  // These slots have changed hands (StreamVocabulary::map() names them): their words are no longer probed.
  void forget(std::span<const Slot> slots);

  // Counts the chunk, at time t, if its turn comes. Subsampled as training would, by a draw of (seed, number of this
  // call) alone. Slots past those of the last follow() are words without probe.
  void add(const Chunk& chunk, double t, const Subsampling& subsampling);

  const ProbeCounts& counts() const { return counts_; }
  int64_t memory_bytes() const;

  // The state as bytes, and back, for a vocabulary of so many slots. kDataLoss for bytes that are cut short or
  // impossible.
  std::string save() const;
  static Result<ProbeSppmi> restore(const ProbeOptions& options, std::string_view bytes, int64_t vocabulary_size);

 private:
  using Half = ProbeCounts::Half;

  int32_t probe_of(Slot slot) const {
    return static_cast<size_t>(slot) < probe_.size() ? probe_[static_cast<size_t>(slot)] : -1;
  }
  std::vector<Slot> choose(std::span<const double> counts) const;
  void set_words(const std::vector<Slot>& slots);
  void add_sentence(std::span<const int32_t> sentence, double weight, Half& half);

  ProbeOptions options_;
  ForwardDecay decay_;
  ProbeCounts counts_;
  std::vector<int32_t> probe_;       // by slot: the probe word's number, or -1
  std::vector<double> pair_weight_;  // by distance
  std::vector<double> side_weight_;  // of so many words on one side
  int64_t chunks_ = 0;               // given to add()
  std::vector<int32_t> kept_;
};

// The decayed SPPMI's factorisation: what measure_pip() takes. negative_probability goes by probe word.
// kInvalidArgument when nothing was counted yet.
Result<Oracle> make_oracle(const ProbeCounts& counts, std::span<const double> negative_probability,
                           const ProbeOptions& options, bool split_half = true);

// The figures of a snapshot's probe words with the references zero, permuted, untrained and (three times the work)
// split_half. Probabilities of negatives are taken from the snapshot's counts. Fails as make_oracle, or with
// kFailedPrecondition when the snapshot lacks one of the slots: it is older than the counts.
Result<PipReport> measure_probe(const ProbeCounts& counts, const Snapshot& snapshot, const ProbeOptions& options,
                                bool split_half = true);

}  // namespace streamvec
