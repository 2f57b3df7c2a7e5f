#include "streamvec/sync/shard.h"

#include <algorithm>
#include <cstring>

namespace streamvec {

Result<Shard> Shard::make(int64_t rows_max, int64_t dim) {
  Shard shard;
  STREAMVEC_ASSIGN_OR_RETURN(shard.values_, Matrix::make(0, dim, rows_max));
  return shard;
}

int64_t Shard::add(RowKey key) {
  const auto [found, is_new] = places_.try_emplace(key, -1);
  if (!is_new) return found->second;
  if (free_.empty()) {
    found->second = values_.rows();
    values_.grow(found->second + 1);
    touched_.push_back(0);
  } else {
    found->second = free_.back();
    free_.pop_back();
    touched_[static_cast<size_t>(found->second)] = 0;
    std::memset(row(found->second), 0, sizeof(float) * static_cast<size_t>(values_.stride()));
  }
  return found->second;
}

void Shard::remove(RowKey key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  free_.push_back(found->second);
  places_.erase(found);
}

int64_t Shard::find(RowKey key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? -1 : found->second;
}

std::vector<RowKey> Shard::keys() const {
  std::vector<RowKey> keys;
  keys.reserve(places_.size());
  for (const auto& [key, place] : places_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace streamvec
