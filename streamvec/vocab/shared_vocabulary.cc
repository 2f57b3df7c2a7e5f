#include "streamvec/vocab/shared_vocabulary.h"

#include <algorithm>
#include <utility>

namespace streamvec {
namespace {

// Each time every node works out anew how fast training moves rows, 10 ms for 100,000 words: at a 50th that took as
// long as all pushes, and fewer of them were made.
constexpr double kCountsShare = 1.0 / 10;
constexpr int64_t kCountsTokensMin = 10'000;

}  // namespace

SharedVocabulary::SharedVocabulary(StreamVocabulary vocabulary, bool clock_tokens)
    : vocabulary_(std::move(vocabulary)), clock_tokens_(clock_tokens), told_stamp_(vocabulary_.stamp()) {}

bool SharedVocabulary::receive(uint32_t node, const VocabularyReport& report) {
  int64_t& last = last_report_[node];
  if (report.number <= last) return false;
  last = report.number;
  const double t = clock_tokens_ ? static_cast<double>(vocabulary_.statistics().tokens) : report.t;
  vocabulary_.count(report, t, admitted_);
  changed_.insert(changed_.end(), admitted_.begin(), admitted_.end());
  return true;
}

bool SharedVocabulary::counts_due() const {
  const auto since = static_cast<double>(vocabulary_.statistics().tokens - told_at_tokens_);
  return vocabulary_.size() > 0 && since >= kCountsTokensMin && since >= kCountsShare * vocabulary_.weights_sum();
}

bool SharedVocabulary::has_changes() const {
  return vocabulary_.stamp() != told_stamp_ || counts_due();
}

VocabularyChanges SharedVocabulary::take_changes() {
  VocabularyChanges changes;
  changes.after = std::exchange(told_stamp_, vocabulary_.stamp());
  changes.stamp = told_stamp_;
  changes.tokens = vocabulary_.statistics().tokens;
  changes.now = vocabulary_.now();
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const Slot slot : std::exchange(changed_, {}))
    changes.changes.push_back(
        {slot, vocabulary_.born(slot), vocabulary_.weight(slot), std::string(vocabulary_.word(slot))});
  changes.characters = vocabulary_.characters_since(changes.after);
  if (!counts_due()) return changes;
  told_at_tokens_ = changes.tokens;
  changes.counts = counts_now().counts;
  return changes;
}

VocabularyChanges SharedVocabulary::changes_since(uint64_t stamp) const {
  VocabularyChanges changes = vocabulary_.changes_since(stamp);
  changes.counts = counts_now().counts;
  return changes;
}

VocabularyChanges SharedVocabulary::no_changes() const {
  VocabularyChanges changes;
  changes.after = changes.stamp = told_stamp_;
  changes.tokens = vocabulary_.statistics().tokens;
  changes.now = vocabulary_.now();
  return changes;
}

VocabularyChanges SharedVocabulary::counts_now() const {
  VocabularyChanges changes = no_changes();
  for (Slot slot = 0; slot < vocabulary_.size(); ++slot)
    changes.counts.push_back(static_cast<float>(vocabulary_.weight(slot)));
  return changes;
}

bool RoundTrips::is_due(const StreamVocabulary& follower, double now_s) const {
  if (follower.unreported_outside() >= kOutsideDue || hurried_ > reported_) return true;
  return follower.unreported() > 0 && now_s - reported_s_ >= kReportEvery;
}

int64_t RoundTrips::hurry(const StreamVocabulary& follower) {
  hurried_ = std::max(hurried_, reported_ + (follower.unreported() > 0 ? 1 : 0));
  return hurried_;
}

void RoundTrips::reported(const VocabularyReport& report, double now_s) {
  reported_s_ = now_s;
  reported_ = report.number;
  outstanding_[report.number] = report.outside;
  outstanding_outside_ += report.outside;
}

void RoundTrips::answered(int64_t number) {
  answered_ = std::max(answered_, number);
  while (!outstanding_.empty() && outstanding_.begin()->first <= number) {
    outstanding_outside_ -= outstanding_.begin()->second;
    outstanding_.erase(outstanding_.begin());
  }
}

bool RoundTrips::text_may_come(const StreamVocabulary& follower) const {
  return follower.unreported_outside() + outstanding_outside_ < kOutsideMax;
}

}  // namespace streamvec
