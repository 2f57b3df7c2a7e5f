#include "streamvec/cluster/met_counts.h"

#include <algorithm>

#include "streamvec/vocab/shared_vocabulary.h"

namespace streamvec {

MetCounts::MetCounts(Hybrid* hybrid) : hybrid_(hybrid) {
  if (hybrid_ == nullptr) return;
  // What a checkpoint had is known to all.
  for (Slot slot = 0; slot < hybrid_->options().words_max; ++slot) known_.push_back(hybrid_->met(slot));
}

void MetCounts::begin(Slot slot) {
  if (hybrid_ != nullptr) known_[static_cast<size_t>(slot)] = 0;
}

bool MetCounts::is_due(double now_s) const {
  return hybrid_ != nullptr && hybrid_->met_here() > told_here_ && now_s - told_s_ >= RoundTrips::kReportEvery;
}

std::vector<std::pair<Slot, int64_t>> MetCounts::take(double now_s, int64_t words) {
  std::vector<std::pair<Slot, int64_t>> since;
  if (hybrid_ == nullptr) return since;
  told_s_ = now_s;
  told_here_ = hybrid_->met_here();
  for (Slot slot = 0; slot < words; ++slot) {
    const int64_t met = hybrid_->met(slot);
    int64_t& known = known_[static_cast<size_t>(slot)];
    if (met > known) since.emplace_back(slot, met - known);
    known = met;
  }
  return since;
}

void MetCounts::told(std::span<const uint32_t> all, std::span<const int64_t> on_their_way) {
  for (size_t slot = 0; slot < std::min({all.size(), on_their_way.size(), known_.size()}); ++slot) {
    const int64_t more = int64_t{all[slot]} + on_their_way[slot] - known_[slot];
    if (more <= 0) continue;
    hybrid_->add_met(static_cast<Slot>(slot), more);
    known_[slot] += more;
  }
}

void MetCounts::add(const VocabularyReport& report, const StreamVocabulary& words) {
  if (hybrid_ == nullptr) return;
  for (const auto& [slot, times] : report.met)
    if (slot < words.size() && words.valid(slot, report.stamp)) hybrid_->add_met(slot, times);
}

std::vector<uint32_t> MetCounts::all(int64_t words, const VocabularyChanges& changes) const {
  std::vector<uint32_t> met;
  if (hybrid_ == nullptr) return met;
  for (Slot slot = 0; slot < words; ++slot) met.push_back(static_cast<uint32_t>(hybrid_->met(slot)));
  for (const VocabularyChanges::Change& change : changes.changes) met[static_cast<size_t>(change.slot)] = 0;
  return met;
}

}  // namespace streamvec
