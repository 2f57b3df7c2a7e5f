// Which words changed their meaning between two snapshots of a stream, and whether that is more than chance.
//
// What is compared. Words are matched by spelling. Vectors are made unit, centred on the mean of the frequent words and
// made unit again. A word's *change* is the standard deviation, over its 25 nearest neighbours then and its 25 nearest
// now, of how its cosine to them changed: old neighbours fall away and new ones come near, while a word that merely
// lies denser or looser among the same neighbours gets little. Neighbours that moved themselves are left out in a
// second round, so that the words around them do not seem to move. It needs no alignment, and on dated abstracts
// of 2016-2026 it ranked words better than the aligned cosine and than the cosine of similarities to anchor words;
// other measures over the same neighbours came close. The cosine after alignment on stable words (procrustes.h) and the
// overlap of the 10 nearest are shown beside it.
//
// What is chance. Vectors of rare words differ from sample to sample, and two snapshots of one stream share most of
// their text, so that neither the change itself nor a comparison of two other models says what is too much. Halves do:
// the stream's documents are dealt to two models that never see a sentence of each other's. What changed by chance in
// one did not in the other; what the language changed, both saw. So a word is judged by how far the halves agree on its
// change (shared_words.h), over its neighbours and over 2,000 frequent words. By chance that is as often too little as
// too much: what lies below the middle of the words of like evidence (1 / (1/n + 1/m) with the counts on both sides),
// mirrored, is the null. It holds what moves all words alike, too (topics, more text, further training). The *score* is
// the distance from that middle in spreads of the low side, *p* the probability of such a score under the null, and an
// alert keeps the share of false ones at false_discovery_rate.
//
// Without halves the change itself is judged in the same way, by the words of like evidence: less sharp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/align_options.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct DriftOptions {
  double evidence_min = 20;            // words with less on both sides together are not judged: see above
  double share_max = 0.01;             // words that are more of the text are not judged: "the" has no like to go by
  int64_t words_max = 50'000;          // judged: those with most evidence
  int64_t candidates_max = 10'000;     // neighbours are sought among so many of them; time grows with both
  int64_t anchors = 2'000;             // frequent words; more: slower
  int32_t neighbours = 25;             // more: steadier, and slower to see that one sense of several changed
  double false_discovery_rate = 0.05;  // of the alerts: the share that may be chance (Benjamini, Hochberg)
  double alert_score_min = 3;          // no alert below; more: only the plainest cases
  int64_t listed_max = 100;            // words in the report, greatest score first
  int32_t shown = 10;                  // neighbours named for each, then and now
  AlignOptions align;
};

// A stream at one moment: its model, and those of its halves where they were trained. Borrowed.
struct StreamState {
  const Snapshot& whole;
  const Snapshot *half_a = nullptr, *half_b = nullptr;

  bool has_halves() const { return half_a != nullptr && half_b != nullptr; }
};

struct WordDrift {
  std::string word;
  double score = 0;    // in spreads beyond the usual; below 2 is ordinary
  double p = 1;        // under the null
  bool alert = false;  // p passes the false discovery rate, and the score alert_score_min
  double change = 0;   // of cosines, see above; 0 is none
  double cosine = 0;   // between then and now after alignment
  double overlap = 0;  // of the 10 nearest then and now: common / all (Jaccard)
  int64_t count_old = 0, count_new = 0;
  std::vector<std::string> neighbours_old, neighbours_new;
};

struct DriftReport {
  bool calibrated = false;       // by halves; else by the changes alone
  int64_t words = 0;             // judged
  int64_t alerts = 0;            // among all of them
  double usual_change = 0;       // the median over all words
  std::vector<WordDrift> moved;  // greatest score first
};

// One thread. kInvalidArgument: vectors of different length. kFailedPrecondition: fewer than 50 words in common with
// enough evidence. Halves count when both sides have them; words that a half does not know are then not judged. Rows
// that are zero or not finite are words without evidence.
Result<DriftReport> find_drift(const StreamState& then, const StreamState& now, const DriftOptions& options = {});

// Cosine, overlap, counts and neighbours (among all words of each snapshot, by their plain cosine) for words asked for,
// in their order; score, p and change are left as they are. On a side that does not know the word its count is 0 and
// its neighbours are none. kInvalidArgument as above; kFailedPrecondition when there is no word in common.
Result<std::vector<WordDrift>> compare_words(const Snapshot& old_snapshot, const Snapshot& new_snapshot,
                                             std::span<const std::string> words, const DriftOptions& options = {});

}  // namespace streamvec
