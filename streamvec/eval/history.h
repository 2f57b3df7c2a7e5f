// What a stream's vectors were at earlier times: small immutable snapshots in a model directory.
//
//   DIR/history/<step>.safetensors     `input`: vectors of the most frequent words at that time, falling by count;
//                                      metadata: step, time (unix seconds), tokens, model, XXH3 sums of words and
//                                      values
//   DIR/history/<step>.vocab.tsv       those words with their counts then
//   DIR/history/<step>-a.*, <step>-b.* the same for models of the stream's two halves: the null of drift.h
//
// Each file is written beside, synced and renamed, the words first: a snapshot is there once its .safetensors is.
// Both are thinned so that the times between those kept grow with their age, like 1, 2, 4, 8: recent change is seen
// finely, old change coarsely, and the bytes do not grow with the stream. The oldest and the newest always stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// When a snapshot was taken.
struct StreamMoment {
  int64_t step = 0;    // names the snapshot: not negative
  int64_t time_s = 0;  // of the text, where it has dates, else of the clock; unix seconds
  int64_t tokens = 0;  // read until then
};

struct HistoryEntry {
  StreamMoment moment;
  std::string path;  // of the .safetensors
};

// The two halves of one moment.
struct HistoryHalves {
  HistoryEntry a, b;
};

// The halves of two moments, as find_drift() wants them.
struct HalvesThenAndNow {
  Snapshot old_a, old_b, new_a, new_b;
};

// One writer at a time (the holder of the model directory's lock); any number of readers beside it, who may find that
// an entry they listed is gone. Not thread-safe.
class History {
 public:
  struct Options {
    int64_t words_max = 20'000;  // of a snapshot: 16 MB for 200 values; more: drift of rarer words
    int64_t entries_max = 24;    // kept; at least 2
    int64_t halves_max = 8;      // pairs of halves kept; at least 2: drift is measured between two
  };
  explicit History(const std::string& model_dir) : History(model_dir, Options()) {}
  History(const std::string& model_dir, Options options);

  // Saves, syncs, then thins. A snapshot of the same step is replaced. On an error what was there stays.
  Status add(const Snapshot& snapshot, const StreamMoment& moment);
  Status add_halves(const Snapshot& a, const Snapshot& b, const StreamMoment& moment);

  // The model goes on from `step`: what was taken later is of text that is to be read again, and goes.
  Status forget_after(int64_t step);

  // Rising by step; none when there is no history. Files that cannot be read are passed over, with a line each in
  // `notes` (may be nullptr); names that are not ours are ignored.
  Result<std::vector<HistoryEntry>> list(std::vector<std::string>* notes = nullptr) const;
  Result<std::vector<HistoryHalves>> list_halves(std::vector<std::string>* notes = nullptr) const;

  // The halves nearest to two steps, of the old one the last before it where there are such. Nothing when that is the
  // same pair twice, or when one does not load, which `notes` then tells.
  Result<std::optional<HalvesThenAndNow>> load_halves(int64_t old_step, int64_t new_step,
                                                      std::vector<std::string>* notes = nullptr) const;

  // The whole, checked against its sums (files of other programs may have none). kDataLoss, kNotFound, with the path.
  static Result<Snapshot> load(const HistoryEntry& entry);

 private:
  Status save(const Snapshot& snapshot, const StreamMoment& moment, const std::string& name);
  Status thin();
  Result<std::vector<HistoryEntry>> list_named(std::string_view suffix, std::vector<std::string>* notes) const;

  std::string dir_;
  Options options_;
};

// Which of these rising steps to drop so that `count_max` stay, spaced as said above: their indexes, in the order to
// drop them.
std::vector<size_t> steps_to_drop(std::vector<int64_t> steps, int64_t count_max);

}  // namespace streamvec
