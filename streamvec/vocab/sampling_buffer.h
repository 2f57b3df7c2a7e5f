// The sampling tables of a vocabulary that changes: in use while the next ones are built, renewed when it matters.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/sampling.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// Tables are renewed when the distribution of words has moved by `change_max` (total variation: half the sum of the
// absolute differences of the words' shares) since they were built. That is computed only when it can have come about:
// when so large a share of all counts is new, or of all slots has new words. Building 100,000 slots takes about 5 ms.
//
// Between renewals tables are a little old, which does no harm. A negative drawn for a slot that has changed hands is a
// negative like any other: the slot has a row (slots never stand empty), the draw is made without looking at any text,
// and its probability is off by the share of one rare word. Nothing of the old word reaches the new one. Words
// admitted since are not drawn as negatives yet, and are always kept when frequent words are thinned out.
class SamplingTablesBuffer {
 public:
  struct Options {
    double sample = 2e-3;        // as Subsampling
    double change_max = 0.01;    // smaller: follows more closely, builds more often
    RowPace::Options pace = {};  // with paces, tables are renewed as well when all counts have changed by a quarter
  };
  explicit SamplingTablesBuffer(Options options) : options_(options) {}

  // Thread-safe. nullptr until there was a word.
  std::shared_ptr<const SamplingTables> tables() const;

  // To be called under the vocabulary's lock, now and then (once per call of map()). True when new tables are due: the
  // counts have been copied, and build() should follow, without the lock; tables() gives the old ones until then.
  bool stage(const StreamVocabulary& vocabulary);
  // Builds what was staged last and puts it in place. Thread-safe; does nothing when somebody else has built it.
  void build();

  // The counts the tables were built of, and how far the search for change has come: after restore() tables() and all
  // that follows are as they would have been. kDataLoss for bytes that save() did not write. Under the vocabulary's
  // lock, with nothing staged.
  std::string save() const;
  Status restore(std::string_view bytes);

 private:
  struct Mark {  // of the vocabulary
    double sum = 0, time = 0;
    int64_t admitted = 0;
  };
  bool may_have_changed(const StreamVocabulary& vocabulary) const;
  void remember(const std::vector<double>& counts);
  void put(const std::vector<double>& counts, int64_t number);

  const Options options_;
  Mark checked_;
  std::vector<double> built_of_;  // counts of the newest tables staged or built
  double built_sum_ = 0;          // of those
  mutable std::mutex mutex_;      // of what follows
  std::vector<double> staged_;
  int64_t staged_number_ = 0, tables_number_ = 0;  // a builder that was overtaken puts nothing in place
  std::shared_ptr<const SamplingTables> tables_;
};

}  // namespace streamvec
