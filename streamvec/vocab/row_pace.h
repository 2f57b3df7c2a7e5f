// How much longer than others' the steps of rare words' rows are.
//
// One rate for all rows leaves those of words that are met a few times near to where they began, whatever was there to
// be learnt: after an epoch of 17 million words they are little more than the mean of all rows. A row of a word that
// training meets T times takes steps sqrt(1000 / T) times as long as the rate says (its output row, which is drawn as a
// negative besides, sqrt(100 / T) times), between 1 and `pace_max` times. docs/BENCHMARKS.md (Longer steps for rare
// words) has how that was found: what it gains in one epoch, and that in five it costs nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// A value; read by many threads at once.
class RowPace {
 public:
  struct Options {
    double pace_max = 1;  // of an input row, half of it of an output row; 1: all rows have the pace 1
    double passes = 1;    // how often training goes over what was counted
  };
  // All rows have the pace 1.
  RowPace() = default;
  // By counts of words, by slot. Rows of words without a count (those of imported vectors) have the pace 1.
  RowPace(std::span<const double> counts, const Options& options);
  RowPace(const Vocabulary& vocabulary, const Options& options)
      : RowPace(std::vector<double>(vocabulary.counts().begin(), vocabulary.counts().end()), options) {}

  // A slot that was not there yet when the counts were taken has a new word: its pace is the longest.
  float input(Slot slot) const { return at(slot).input; }
  float output(Slot slot) const { return at(slot).output; }
  // Whether there is any other pace than 1.
  bool any() const { return longest_.input > 1; }
  // Gives a slot the paces that `from` has for a slot of its own.
  void take(Slot slot, const RowPace& from, Slot its);

 private:
  struct Paces {
    float input = 1, output = 1;
  };
  const Paces& at(Slot slot) const {
    const auto index = static_cast<size_t>(slot);
    return index < paces_.size() ? paces_[index] : longest_;
  }

  std::vector<Paces> paces_;  // by slot
  Paces longest_;
};

}  // namespace streamvec
