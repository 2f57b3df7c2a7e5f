// Word analogies: a is to b as c is to ... d, found by arithmetic on unit vectors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/products.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct AnalogySet {
  struct Section {
    std::string name;  // "" for questions before the first ": name" line
    std::vector<std::array<std::string, 4>> questions;
  };
  std::string name;
  std::vector<Section> sections;  // in the file's order, those without questions left out
};

struct AnalogyOptions {
  // Words come from this many most frequent words (by count; ties: the lower slot), both those of the questions and the
  // answers looked through. More: harder questions count too, and each is harder. 0: all words.
  int64_t vocab = 30'000;
};

struct AnalogyScore {
  std::string name;
  int64_t questions = 0;
  int64_t covered = 0;          // all four words are among the words looked through
  int64_t cos_add_correct = 0;  // x.b - x.a + x.c is greatest for d, a, b and c left out
  int64_t cos_mul_correct = 0;  // likewise for s(x.b) s(x.c) / (s(x.a) + 0.001), s(t) = (1 + t) / 2

  // correct / covered, as word2vec's compute-accuracy counts; NaN when nothing is covered.
  double cos_add_accuracy() const;
  double cos_mul_accuracy() const;
};

struct AnalogyResult {
  AnalogyScore total;  // its name is the set's
  std::vector<AnalogyScore> sections;
};

// Reads four words a line under ": section" lines; blank lines and '#' comments skipped. kInvalidArgument with path
// and line when a line has other than four words, or when there are no questions.
Result<AnalogySet> read_analogy_set(const std::string& path);

// Words are looked up as written, else case-folded. kResourceExhausted when there is no memory for the unit vectors;
// the errors of `products`.
Result<AnalogyResult> measure_analogy(const Snapshot& snapshot, const AnalogySet& set,
                                      const AnalogyOptions& options = {}, Products& products = cpu_products());

}  // namespace streamvec
