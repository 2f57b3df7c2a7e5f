// What the words of a stream were near to at earlier times, read from DIR/history (eval/history.h).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/drift.h"
#include "streamvec/eval/moments.h"
#include "streamvec/serve/served_model.h"

namespace streamvec {

// A word at one moment.
struct Station {
  StreamMoment when;
  int64_t count = 0;   // 0: it was not known then, and the rest says nothing
  double cosine = 0;   // to the newest moment of the history, as `streamvec drift` has it (eval/drift.h)
  double overlap = 0;  // of its 10 nearest with those of the newest moment: common / all (Jaccard)
  std::vector<Neighbour> neighbours;
  std::vector<std::string> words;  // of the neighbours
};

struct DriftAnswer {
  StreamMoment from, to;
  DriftReport report;
};

// Keeps what it has read, up to a bound. Takes seconds at first, then milliseconds. Not thread-safe.
class HistoryReader {
 public:
  struct Options {
    int64_t bytes_max = int64_t{512} << 20;  // of snapshots kept; 17 MB for 20,000 words of 200 values
    int64_t reports_max = 16;                // of drift kept
  };
  explicit HistoryReader(std::string directory) : HistoryReader(std::move(directory), Options()) {}
  HistoryReader(std::string directory, Options options) : directory_(std::move(directory)), options_(options) {}

  // The word through all moments, oldest first, the served model last where it is newer. kNotFound when no moment knows
  // it; moments that do not load are passed over. A model without history has one station.
  Result<std::vector<Station>> path(const ServedModel& model, const std::string& word, int32_t k);

  // Words that moved most between two moments, each a step, a time or "" (the newest; the first that had a quarter of
  // its text). kFailedPrecondition: there are no two moments, or too few words in common.
  Result<DriftAnswer> drift(const ServedModel& model, const std::string& from, const std::string& to, int64_t count);

 private:
  // Most frequent words first; rows of length 1.
  struct Kept {
    std::string sign;  // of its file
    Snapshot snapshot;
    std::string compared;                // the sign of another, or a model's number
    std::vector<float> cosines_to_that;  // by slot; 0 of words that are not in both
  };
  std::shared_ptr<Kept> load(const HistoryEntry& entry);
  static Result<double> cosine(Kept& from, Slot slot, const std::string& sign, const Snapshot& onto);

  const std::string directory_;
  const Options options_;
  std::list<std::shared_ptr<Kept>> kept_;  // used last first
  std::map<std::string, DriftAnswer> reports_;
};

}  // namespace streamvec
