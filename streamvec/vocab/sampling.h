// Random draws that follow the words' counts: negatives, and which occurrences of frequent words are skipped.
// All tables are built in O(slots) from a Vocabulary or from counts by slot (which may be decayed, and need not be
// whole numbers), do not keep them, and are read by many threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/row_pace.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// count^power for every slot, scaled to the sum 1; all equal when no word has a count (imported vectors have none).
std::vector<double> unigram_probabilities(std::span<const double> counts, double power = 0.75);
std::vector<double> unigram_probabilities(const Vocabulary& vocabulary, double power = 0.75);

// Draws slots with the given probabilities: Walker's alias method in Vose's construction. 8 bytes a slot; one random
// number and one cache line a draw. Probabilities are kept to 2^-32.
class AliasTable {
 public:
  // REQUIRES: at least one slot, values >= 0 with a positive sum (need not be 1).
  explicit AliasTable(std::span<const double> weights);
  explicit AliasTable(const Vocabulary& vocabulary, double power = 0.75)
      : AliasTable(unigram_probabilities(vocabulary, power)) {}

  Slot sample(Random& random) const {
    const uint64_t bits = random.next();
    const uint64_t column = ((bits >> 32) * columns_.size()) >> 32;
    const Column& drawn = columns_[column];
    return static_cast<uint32_t>(bits) < drawn.own ? static_cast<Slot>(column) : drawn.other;
  }
  int32_t size() const { return static_cast<int32_t>(columns_.size()); }

  struct Column {
    uint32_t own;  // the column's own slot for lower halves below this; a full column is its own other
    Slot other;
  };
  std::span<const Column> columns() const { return columns_; }  // for those who draw elsewhere

 private:
  std::vector<Column> columns_;
};

// Draws K slots at once, one from each of K equal strata of the distribution function: u_k = (k + r_k) / K. Over the
// K draws each slot is expected as often as in K independent draws, with less variance: frequent words come in every
// set, and a set holds fewer repetitions. The draws come in rising order of slot. 12 bytes a slot; the inverse is
// found by a guide table (Chen and Asau 1974) in O(1) expected.
class StratifiedSampler {
 public:
  // REQUIRES: as AliasTable.
  explicit StratifiedSampler(std::span<const double> weights);
  explicit StratifiedSampler(const Vocabulary& vocabulary, double power = 0.75)
      : StratifiedSampler(unigram_probabilities(vocabulary, power)) {}

  // Fills `out` with out.size() draws.
  void sample(Random& random, std::span<Slot> out) const;
  // The slot whose share of 0 .. 2^64 - 2 holds `at`. REQUIRES: at < 2^64 - 1.
  Slot invert(uint64_t at) const;

  // What invert() goes by, for those who do the same elsewhere: begin at guide()[at >> shift()].
  std::span<const uint64_t> ends() const { return ends_; }
  std::span<const Slot> guide() const { return guide_; }
  int shift() const { return shift_; }

 private:
  std::vector<uint64_t> ends_;  // of each slot's share, exclusive; a slot without weight ends where it begins
  std::vector<Slot> guide_;     // where to begin for the topmost bits of `at`
  int shift_ = 63;              // 64 - log2 of the guide's size
};

// Which occurrences of frequent words are kept, as word2vec decides it: a word of frequency f (its count through the
// sum of all counts) with probability (sqrt(f / sample) + 1) * sample / f.
class Subsampling {
 public:
  // sample = 0 keeps all. REQUIRES: sample >= 0.
  Subsampling(const Vocabulary& vocabulary, double sample);
  Subsampling(std::span<const double> counts, double sample);

  // A slot that was not there yet when the table was built has a new word, and new words are rare: it is kept.
  bool keep(Slot slot, uint32_t random) const {
    const auto index = static_cast<size_t>(slot);
    return index >= thresholds_.size() || random <= thresholds_[index];
  }
  double probability(Slot slot) const { return (thresholds_[static_cast<size_t>(slot)] + 1.0) * 0x1p-32; }
  std::span<const uint32_t> thresholds() const { return thresholds_; }  // by slot; 2^32 - 1 keeps all

 private:
  std::vector<uint32_t> thresholds_;
};

// What draws and steps need to know of the counts. Built anew when the vocabulary has changed; read by every thread.
struct SamplingTables {
  SamplingTables(const Vocabulary& vocabulary, double sample, const RowPace::Options& pace_options = {})
      : negatives(vocabulary), subsampling(vocabulary, sample), pace(vocabulary, pace_options) {}
  SamplingTables(std::span<const double> counts, double sample, const RowPace::Options& pace_options = {})
      : negatives(unigram_probabilities(counts)), subsampling(counts, sample), pace(counts, pace_options) {}
  StratifiedSampler negatives;
  Subsampling subsampling;
  RowPace pace;
};

}  // namespace streamvec
