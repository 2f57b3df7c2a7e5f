#include "streamvec/sync/shard.h"

#include <cstring>

namespace streamvec {

Result<Shard> Shard::make(RowKey key_end, int64_t dim) {
  Shard shard;
  shard.places_.assign(key_end, -1);
  STREAMVEC_ASSIGN_OR_RETURN(shard.values_, Matrix::make(0, dim, key_end));
  return shard;
}

int64_t Shard::add(RowKey key) {
  if (places_[key] >= 0) return places_[key];
  ++size_;
  if (free_.empty()) {
    const int64_t place = values_.rows();
    values_.grow(place + 1);
    touched_.push_back(0);
    return places_[key] = static_cast<int32_t>(place);
  }
  const int64_t place = free_.back();
  free_.pop_back();
  touched_[static_cast<size_t>(place)] = 0;
  std::memset(row(place), 0, sizeof(float) * static_cast<size_t>(values_.stride()));
  return places_[key] = static_cast<int32_t>(place);
}

void Shard::remove(RowKey key) {
  if (places_[key] < 0) return;
  free_.push_back(places_[key]);
  places_[key] = -1;
  --size_;
}

std::vector<RowKey> Shard::keys() const {
  std::vector<RowKey> keys;
  keys.reserve(static_cast<size_t>(size_));
  for (RowKey key = 0; key < places_.size(); ++key)
    if (places_[key] >= 0) keys.push_back(key);
  return keys;
}

}  // namespace streamvec
