#include "streamvec/replay/union.h"

#include <algorithm>
#include <cmath>

namespace streamvec {
namespace {

constexpr double kDrawsMax = 1 << 16;

}  // namespace

void ReplayUnion::receive(uint32_t node, const ReplayShare& share) {
  const auto [found, is_new] = tables_.try_emplace(node, Table{share, 0});
  Table& table = found->second;
  // Of a table that went on from a checkpoint the draws of before say nothing of now.
  if (!is_new) table.draws += static_cast<double>(std::max<int64_t>(share.sampled - table.share.sampled, 0));
  table.share = share;
  double all = 0;
  for (const auto& [id, one] : tables_) all += one.draws;
  for (auto& [id, one] : tables_)
    if (all > kDrawsMax) one.draws /= 2;
}

bool ReplayUnion::draws(const Table& table) {
  return table.draws > 0 && std::isfinite(table.share.log2_sum) && table.share.least > 0 &&
         std::isfinite(table.share.least);
}

std::optional<float> ReplayUnion::reference(uint32_t node) const {
  const auto found = tables_.find(node);
  if (found == tables_.end() || !draws(found->second)) return std::nullopt;
  const auto log2_rate = [](const Table& table) { return table.share.log2_sum - std::log2(table.draws); };
  double most = -std::numeric_limits<double>::infinity();
  for (const auto& [id, table] : tables_)
    if (draws(table)) most = std::max(most, log2_rate(table) - std::log2(table.share.least));
  const auto reference = static_cast<float>(std::exp2(log2_rate(found->second) - most));
  return reference > 0 && std::isfinite(reference) ? std::optional(reference) : std::nullopt;
}

}  // namespace streamvec
