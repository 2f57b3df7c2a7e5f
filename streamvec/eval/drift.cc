#include "streamvec/eval/drift.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/eval/gram.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/procrustes.h"
#include "streamvec/eval/set_file.h"
#include "streamvec/eval/shared_words.h"
#include "streamvec/eval/significance.h"

namespace streamvec {
namespace {

constexpr int64_t kWordsMin = 50;  // with fewer, quantiles of what is usual mean nothing
constexpr int32_t kOverlapNeighbours = 10;
constexpr double kMovedScore = 3;  // who moved so far is no witness for others

// Two moments measured against each other.
struct Comparison {
  SharedWords shared;
  NeighbourTable old_neighbours, new_neighbours;
  std::vector<double> log_evidence, change;
  // Where there are halves: what they agree on, over neighbours and over anchors.
  std::vector<double> agreed, agreed_profile;
};

Result<Comparison> measure(const StreamState& then, const StreamState& now, const DriftOptions& options) {
  std::vector<const Snapshot*> halves;
  if (then.has_halves() && now.has_halves()) halves = {then.half_a, then.half_b, now.half_a, now.half_b};
  Comparison comparison;
  STREAMVEC_ASSIGN_OR_RETURN(comparison.shared,
                             share_words(then.whole, now.whole, options.evidence_min, options.words_max, halves));
  if (comparison.shared.size() < kWordsMin)
    return error(Code::kFailedPrecondition, "only ", comparison.shared.size(),
                 " words were seen often enough on both sides, ", kWordsMin,
                 " are needed to tell drift from chance; compare snapshots with more text");
  const int32_t k = std::max(options.neighbours, std::max(options.shown, kOverlapNeighbours));
  comparison.old_neighbours = find_neighbours(comparison.shared.old_rows, options.candidates_max, k);
  comparison.new_neighbours = find_neighbours(comparison.shared.new_rows, options.candidates_max, k);
  for (const SharedWord& word : comparison.shared.words) comparison.log_evidence.push_back(std::log(word.evidence));
  return comparison;
}

// The changes by neighbours and anchors, without those that are left out.
void measure_changes(Comparison& pair, const DriftOptions& options, const std::vector<bool>& left_out) {
  const int32_t k = options.neighbours;
  pair.change = neighbour_changes(pair.shared, pair.old_neighbours, pair.new_neighbours, k, left_out);
  if (pair.shared.other_rows.empty()) return;
  pair.agreed = agreed_neighbour_changes(pair.shared, pair.old_neighbours, pair.new_neighbours, k, left_out);
  pair.agreed_profile = agreed_profile_changes(pair.shared, options.anchors, left_out);
}

struct Judgement {
  std::vector<double> score, p;
};

// How far each is from what is usual for its evidence, in spreads of the low side: that is chance, while the high side
// holds the words that moved.
std::vector<double> in_low_spreads(std::span<const double> x, std::span<const double> y) {
  const SpreadCurve curve(x, y);
  std::vector<double> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i] = (y[i] - curve.middle(x[i])) / curve.below(x[i]);
  return result;
}

// The scatter below the middle, mirrored, is what chance gives above it.
std::vector<double> mirrored_probabilities(const std::vector<double>& score) {
  std::vector<double> mirrored, p;
  for (const double z : score)
    if (z <= 0) mirrored.insert(mirrored.end(), {z, -z});
  const TailProbability tail(std::move(mirrored));
  for (const double z : score) p.push_back(tail(z));
  return p;
}

Judgement judge(const Comparison& pair) {
  Judgement judgement;
  if (pair.agreed.empty()) {
    judgement.score = in_low_spreads(pair.log_evidence, pair.change);
  } else {
    std::vector<double> both = in_low_spreads(pair.log_evidence, pair.agreed);
    const std::vector<double> profile = in_low_spreads(pair.log_evidence, pair.agreed_profile);
    for (size_t i = 0; i < both.size(); ++i) both[i] += profile[i];
    judgement.score = in_low_spreads(pair.log_evidence, both);
  }
  judgement.p = mirrored_probabilities(judgement.score);
  return judgement;
}

// A word that moved changes the neighbourhoods it left and came to, so the words there seem to have moved a little.
// Once it is known who moved, the changes are measured again by the neighbours and anchors that did not. A word moved
// by those as well is judged by all: words that moved together are each other's witnesses.
Judgement judge_by_stable_neighbours(Comparison& pair, const DriftOptions& options) {
  measure_changes(pair, options, {});
  const Judgement first = judge(pair);
  const std::vector<double> first_change = pair.change;
  std::vector<bool> moved(first.score.size());
  for (size_t i = 0; i < moved.size(); ++i) moved[i] = first.score[i] >= kMovedScore;
  measure_changes(pair, options, moved);
  Judgement judgement = judge(pair);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (!moved[i] || judgement.score[i] < kMovedScore) continue;
    judgement.score[i] = first.score[i];
    judgement.p[i] = first.p[i];
    pair.change[i] = first_change[i];
  }
  return judgement;
}

// There are too few words as frequent as the commonest to say what is usual for them.
void excuse_commonest(const Comparison& pair, const Vocabulary& vocabulary, double share_max, Judgement& judgement) {
  for (size_t i = 0; i < judgement.score.size(); ++i) {
    const auto count = static_cast<double>(vocabulary.count(pair.shared.words[i].new_slot));
    if (count <= share_max * static_cast<double>(vocabulary.tokens())) continue;
    judgement.score[i] = 0;
    judgement.p[i] = 1;
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::string> words_at(std::span<const Hit> hits, const Comparison& pair, const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (const Hit& hit : hits)
    if (hit.row >= 0) words.emplace_back(vocabulary.word(pair.shared.words[static_cast<size_t>(hit.row)].old_slot));
  return words;
}

// The old rows turned into the space of the new ones.
Result<Matrix> turned_rows(const SharedWords& shared, const DriftOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(const Alignment alignment,
                             align_on_stable(shared.old_rows.view(), shared.new_rows.view(), options.align));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix turned, shared.old_rows.copy());
  multiply(shared.old_rows.view(), alignment.rotation, turned.view());
  return turned;
}

double dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<size_t> by_falling(const std::vector<double>& score, int64_t count) {
  std::vector<size_t> order(score.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] > score[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(0, count))));
  return order;
}

std::vector<std::string> nearest_words(const NeighbourIndex& index, const std::string& word, int32_t k) {
  std::vector<std::string> words;
  if (const auto found = index.nearest(word, k); found.ok())
    for (const Neighbour& neighbour : *found) words.emplace_back(index.vocabulary().word(neighbour.slot));
  return words;
}

double jaccard(std::span<const std::string> a, std::span<const std::string> b) {
  a = a.first(std::min<size_t>(a.size(), kOverlapNeighbours));
  b = b.first(std::min<size_t>(b.size(), kOverlapNeighbours));
  const auto common = static_cast<double>(std::count_if(
      a.begin(), a.end(), [&](const std::string& word) { return std::find(b.begin(), b.end(), word) != b.end(); }));
  const double all = static_cast<double>(a.size() + b.size()) - common;
  return all > 0 ? common / all : 0;
}

// Everything but score, p and alert of the word in this row.
WordDrift describe(const Comparison& pair, const Matrix& turned, int64_t row, const Snapshot& old_snapshot,
                   const Snapshot& new_snapshot, int32_t shown) {
  const SharedWord& shared = pair.shared.words[static_cast<size_t>(row)];
  WordDrift word;
  word.word = old_snapshot.vocabulary.word(shared.old_slot);
  word.change = pair.change[static_cast<size_t>(row)];
  word.cosine = dot(turned.view().row_span(row), pair.shared.new_rows.view().row_span(row));
  word.overlap =
      jaccard(pair.old_neighbours.of(row, kOverlapNeighbours), pair.new_neighbours.of(row, kOverlapNeighbours));
  word.count_old = old_snapshot.vocabulary.count(shared.old_slot);
  word.count_new = new_snapshot.vocabulary.count(shared.new_slot);
  word.neighbours_old = words_at(pair.old_neighbours.of(row, shown), pair, old_snapshot.vocabulary);
  word.neighbours_new = words_at(pair.new_neighbours.of(row, shown), pair, old_snapshot.vocabulary);
  return word;
}

}  // namespace

Result<DriftReport> find_drift(const StreamState& then, const StreamState& now, const DriftOptions& options) {
  const Snapshot &old_snapshot = then.whole, &new_snapshot = now.whole;
  STREAMVEC_ASSIGN_OR_RETURN(Comparison pair, measure(then, now, options));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix turned, turned_rows(pair.shared, options));
  Judgement judgement = judge_by_stable_neighbours(pair, options);
  excuse_commonest(pair, new_snapshot.vocabulary, options.share_max, judgement);
  const double p_max = discovery_threshold(judgement.p, options.false_discovery_rate);
  const auto alert = [&](size_t i) { return judgement.p[i] <= p_max && judgement.score[i] >= options.alert_score_min; };
  DriftReport report;
  report.calibrated = !pair.agreed.empty();
  report.words = pair.shared.size();
  report.usual_change = median(pair.change);
  for (size_t i = 0; i < pair.change.size(); ++i) report.alerts += alert(i);
  for (const size_t i : by_falling(judgement.score, options.listed_max)) {
    WordDrift word = describe(pair, turned, static_cast<int64_t>(i), old_snapshot, new_snapshot, options.shown);
    word.score = judgement.score[i];
    word.p = judgement.p[i];
    word.alert = alert(i);
    report.moved.push_back(std::move(word));
  }
  return report;
}

Result<std::vector<WordDrift>> compare_words(const Snapshot& old_snapshot, const Snapshot& new_snapshot,
                                             std::span<const std::string> words, const DriftOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(const SharedWords shared, share_words(old_snapshot, new_snapshot, 0, options.words_max));
  if (shared.size() == 0) return error(Code::kFailedPrecondition, "the two snapshots have no word in common");
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix turned, turned_rows(shared, options));
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex old_index, NeighbourIndex::make(old_snapshot));
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex new_index, NeighbourIndex::make(new_snapshot));
  std::vector<WordDrift> found;
  for (const std::string& name : words) {
    const Slot old_slot = find_word(old_snapshot.vocabulary, name), new_slot = find_word(new_snapshot.vocabulary, name);
    WordDrift& word = found.emplace_back();
    word.word = name;
    if (old_slot != kNoSlot) word.count_old = old_snapshot.vocabulary.count(old_slot);
    if (new_slot != kNoSlot) word.count_new = new_snapshot.vocabulary.count(new_slot);
    word.neighbours_old = nearest_words(old_index, name, options.shown);
    word.neighbours_new = nearest_words(new_index, name, options.shown);
    word.overlap = jaccard(word.neighbours_old, word.neighbours_new);
    const auto at = std::find_if(shared.words.begin(), shared.words.end(), [&](const SharedWord& both) {
      return both.old_slot == old_slot && both.new_slot == new_slot;
    });
    if (at == shared.words.end()) continue;
    const int64_t row = at - shared.words.begin();
    word.cosine = dot(turned.view().row_span(row), shared.new_rows.view().row_span(row));
  }
  return found;
}

}  // namespace streamvec
