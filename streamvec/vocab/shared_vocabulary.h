// One vocabulary for the streams of several nodes: every node counts its own text, one of them leads, admits and evicts
// by the rules of one process, and all have the same words in the same slots. No clock, no thread, no network: whoever
// runs it carries reports to the leader and changes back, in order (transport/reliable_link.h).
//
// A node looks words up in a follower of the shared vocabulary (StreamVocabulary::follower), so that it waits for
// nobody: a word that is new to it has no slot until the leader has heard of it and answered. Reports are told often
// (RoundTrips says when), so that what is missed are the first words of a stream, as when a word has yet to reach
// min_count. A report that is lost with its node is text that was not counted; one that comes twice counts once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// The leader's side. Not thread-safe.
class SharedVocabulary {
 public:
  // `clock_tokens`: half-lives are in tokens, those of all nodes together; else times are those of the reports.
  SharedVocabulary(StreamVocabulary vocabulary, bool clock_tokens);

  // Counts what a node has counted, and admits. False, and nothing is done, for a report that came before, or after a
  // later one of the same node.
  bool receive(uint32_t node, const VocabularyReport& report);
  // Slots have changed hands since take_changes(), or counts are to be told.
  bool has_changes() const;
  // What has changed since the last time. With counts when the weight of what was counted since they were last told is
  // a tenth of all: a node adds to them what it counts itself.
  VocabularyChanges take_changes();
  VocabularyChanges no_changes() const;  // how much was counted, and when, is told all the same

  // What one lacks that has heard of the changes up to there, with the counts of all words. REQUIRES: all changes are
  // taken.
  VocabularyChanges changes_since(uint64_t stamp) const;
  // The counts of all words, and no change that was not taken yet. REQUIRES: has_changes() is not for slots.
  VocabularyChanges counts_now() const;

  const StreamVocabulary& vocabulary() const { return vocabulary_; }

 private:
  bool counts_due() const;

  StreamVocabulary vocabulary_;
  const bool clock_tokens_;
  std::map<uint32_t, int64_t> last_report_;  // by node
  std::vector<Slot> changed_, admitted_;     // since the last changes; of the report at hand
  uint64_t told_stamp_;
  int64_t told_at_tokens_ = 0;  // when counts were told
};

// The node's side: when a report is due, and whether text may be mapped while answers are outstanding. Not thread-safe.
class RoundTrips {
 public:
  static constexpr int64_t kOutsideDue = 1'024;  // words outside make a report due at once ...
  static constexpr double kReportEvery = 0.1;    // ... and anything after so many seconds
  static constexpr int64_t kOutsideMax = 4'096;  // not answered yet: text waits, or what it has could not be learnt

  bool is_due(const StreamVocabulary& follower, double now_s) const;
  // Somebody waits for what was mapped so far to be counted: it is due at once. Returns the report that it is in.
  int64_t hurry(const StreamVocabulary& follower);
  bool has_answered(int64_t number) const { return answered_ >= number; }
  void reported(const VocabularyReport& report, double now_s);
  void answered(int64_t number);  // the leader has counted the reports up to this one
  bool text_may_come(const StreamVocabulary& follower) const;

 private:
  double reported_s_ = 0;
  int64_t reported_ = 0, hurried_ = 0, answered_ = 0;  // reports
  std::map<int64_t, int64_t> outstanding_;             // words outside, by report
  int64_t outstanding_outside_ = 0;
};

}  // namespace streamvec
