#include "streamvec/vocab/row_pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace streamvec {
namespace {

constexpr double kInputMet = 1000, kOutputMet = 100;  // occurrences past which a row has the pace 1

}  // namespace

RowPace::RowPace(std::span<const double> counts, const Options& options) {
  if (!(options.pace_max > 1) || !(std::accumulate(counts.begin(), counts.end(), 0.0) > 0)) return;
  const double output_max = std::max(options.pace_max / 2, 1.0);
  longest_ = {static_cast<float>(options.pace_max), static_cast<float>(output_max)};
  paces_.reserve(counts.size());
  for (const double count : counts) {
    const double met = count > 0 ? count * options.passes : kInputMet;  // of a word without a count nothing is known
    paces_.push_back({static_cast<float>(std::clamp(std::sqrt(kInputMet / met), 1.0, options.pace_max)),
                      static_cast<float>(std::clamp(std::sqrt(kOutputMet / met), 1.0, output_max))});
  }
}

void RowPace::take(Slot slot, const RowPace& from, Slot its) {
  const auto index = static_cast<size_t>(slot);
  if (index >= paces_.size()) paces_.resize(index + 1);
  paces_[index] = from.at(its);
  longest_ = from.longest_;
}

}  // namespace streamvec
