#include "streamvec/cluster/untold_counts.h"

#include <algorithm>
#include <utility>

namespace streamvec {

void UntoldCounts::reported(VocabularyReport report) {
  const int64_t number = report.number;
  unanswered_[number] = std::move(report);
}

void UntoldCounts::answered(int64_t number, uint64_t known, bool counts_told, const StreamVocabulary& words) {
  for (std::vector<int64_t>* sums : {&inside_, &outside_, &met_}) sums->resize(static_cast<size_t>(words.size()), 0);
  const auto end = unanswered_.upper_bound(number);
  for (auto report = unanswered_.begin(); report != end; ++report) {
    answered_ = report->first;
    for (const auto& [slot, times] : report->second.slots)
      if (words.valid(slot, report->second.stamp)) inside_[static_cast<size_t>(slot)] += times;
    for (const auto& [slot, times] : report->second.met)
      if (words.valid(slot, report->second.stamp)) met_[static_cast<size_t>(slot)] += times;
    for (const auto& [word, times] : report->second.words)
      if (const Slot slot = words.find(word); slot != kNoSlot && words.valid(slot, known))
        outside_[static_cast<size_t>(slot)] += times;
  }
  unanswered_.erase(unanswered_.begin(), end);
  if (!counts_told) return;
  for (std::vector<int64_t>* sums : {&inside_, &outside_, &met_}) std::fill(sums->begin(), sums->end(), 0);
}

void UntoldCounts::begin(Slot slot) {
  for (std::vector<int64_t>* sums : {&inside_, &outside_, &met_})
    if (static_cast<size_t>(slot) < sums->size()) (*sums)[static_cast<size_t>(slot)] = 0;
}

std::vector<int64_t> UntoldCounts::unanswered(std::vector<std::pair<Slot, int64_t>> VocabularyReport::*part,
                                              const StreamVocabulary& words) const {
  std::vector<int64_t> sums(static_cast<size_t>(words.size()), 0);
  for (const auto& [number, report] : unanswered_)
    for (const auto& [slot, times] : report.*part)
      if (words.valid(slot, report.stamp)) sums[static_cast<size_t>(slot)] += times;
  return sums;
}

void UntoldCounts::leave_out_own(VocabularyReport& report) {
  report.slots.clear();
  report.met.clear();
  report.tokens = report.outside = 0;
}

std::vector<VocabularyReport> UntoldCounts::all(const StreamVocabulary& words, bool own) const {
  std::vector<VocabularyReport> reports;
  VocabularyReport sums;
  sums.number = answered_;
  sums.stamp = words.stamp();
  sums.t = words.now();
  for (size_t slot = 0; slot < inside_.size(); ++slot) {
    if (const int64_t times = outside_[slot] + (own ? 0 : inside_[slot]); times > 0)
      sums.slots.emplace_back(static_cast<Slot>(slot), times);
    if (!own && met_[slot] > 0) sums.met.emplace_back(static_cast<Slot>(slot), met_[slot]);
  }
  if (answered_ > 0) reports.push_back(std::move(sums));
  for (const auto& [number, report] : unanswered_) {
    reports.push_back(report);
    if (own) leave_out_own(reports.back());
  }
  return reports;
}

}  // namespace streamvec
