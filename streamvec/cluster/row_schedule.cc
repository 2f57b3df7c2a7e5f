#include "streamvec/cluster/row_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace streamvec {
namespace {

constexpr int kClasses = 24;

}  // namespace

RowSchedule::RowSchedule(std::span<const float> pull, int64_t nodes)
    : rows_(kClasses, std::vector<uint64_t>((pull.size() + 63) / 64)) {
  set_nodes(nodes);
  const float most = pull.empty() ? 0 : *std::max_element(pull.begin(), pull.end());
  most_ = static_cast<double>(most);
  for (size_t key = 0; key < pull.size(); ++key) {
    const double times = pull[key] > 0 ? std::ceil(std::log2(most / pull[key])) : 0;  // not known: it is new
    const int first = static_cast<int>(std::min<double>(times, kClasses - 1));
    for (int k = first; k < kClasses; ++k) rows_[static_cast<size_t>(k)][key / 64] |= uint64_t{1} << (key % 64);
  }
}

void RowSchedule::set_nodes(int64_t nodes) {
  const auto others = static_cast<double>(std::max<int64_t>(nodes - 1, 1));
  others_ = others * std::sqrt(others);
}

std::span<const uint64_t> RowSchedule::due(int64_t push, double steps) const {
  if (push % kAllEvery == 0 || most_ <= 0) return rows_.back();
  const int turn = std::countr_zero(static_cast<uint64_t>(push));
  const double every_time = steps > 0 ? std::floor(std::log2(most_ * others_ * steps / kWorth)) : 0;
  return rows_[static_cast<size_t>(std::clamp<double>(turn + every_time, 0, kClasses - 1))];
}

}  // namespace streamvec
