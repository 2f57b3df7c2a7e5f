// What a model learned in the demo, held against what was planted in its text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/streamvec/output.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/drift.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/source/newsroom/writer.h"

namespace streamvec::cli {

// One question put to the model. What was not planted is not asked, and passes.
struct Finding {
  std::string name;   // "neighbours", "analogies", "changes", "coined", "robots", "boilerplate"
  std::string claim;  // what is counted: "neighbours are of the word's class"
  int64_t right = 0, asked = 0;
  double wanted = 0.8;  // share of right answers that counts as found

  bool found() const { return asked == 0 || static_cast<double>(right) >= wanted * static_cast<double>(asked); }
};

struct DemoReport {
  std::vector<Finding> findings;
  std::string text;  // for people: examples of each kind, then a line per finding and the verdict

  bool found() const;  // all of it
  Json json() const;   // {"found":bool, NAME:{"right":..,"asked":..}, ...}
};

// - neighbours: of the 5 nearest of some words of each class, those of its class
// - analogies: a is to b as c is to d, over all pairs of each relation
// - changes: words that changed their meaning, found when `drift` has them among its first (three times as many as were
//   planted), most of the old neighbours it names are of the old class and most of the new of the new one
// - coined: of the 5 nearest of each coined word that articles use, those of its class
// - robots: the word that only forbidden pages hold is not known
// - boilerplate: of 10,000 words read, those that are not boilerplate
// `truth` may have parts that are empty. A word that the model does not know has no right answers.
Result<DemoReport> report_on_demo(const Snapshot& snapshot, const DriftReport& drift, const newsroom::Truth& truth);

}  // namespace streamvec::cli
