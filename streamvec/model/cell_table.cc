#include "streamvec/model/cell_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace streamvec {
namespace {

constexpr int64_t kBucketsFirst = 1'024, kBucketsMin = 16;
constexpr uint64_t kKeyMask = (uint64_t{1} << 48) - 1;
constexpr double kFaded = 0x1p-10;       // a cell this light has nothing to teach
constexpr uint32_t kMagic = 0x31434c47;  // "GLC1"

struct Header {
  uint32_t magic = kMagic, version = 1;
  int64_t cells = 0, landmark = 0;
  double now = 0;
};
struct Saved {
  uint64_t key = 0;
  double weight = 0;
};

}  // namespace

CellTable::CellTable(Options options) : options_(options), decay_(options.half_life), random_(mix(options.seed, 7)) {
  // While the table grows the old one, half as large, is there, too.
  const int64_t most = std::max(kBucketsMin, options_.memory_bytes / static_cast<int64_t>(sizeof(Bucket)) * 2 / 3);
  while (most >> (doublings_left_ + 1) >= kBucketsFirst) ++doublings_left_;
  buckets_.resize(static_cast<size_t>(most >> doublings_left_));
}

uint64_t CellTable::tagged(CellKey key) const {
  const auto generation = [&](Slot slot) -> uint64_t {
    return static_cast<size_t>(slot) < generations_.size() ? generations_[static_cast<size_t>(slot)] : 0;
  };
  return generation(key.low()) << 56 | generation(key.high()) << 48 | key.value();
}

bool CellTable::stale(uint64_t tagged_key) const {
  return tagged(CellKey(tagged_key & kKeyMask)) != tagged_key;
}

CellTable::Bucket& CellTable::bucket_of(uint64_t key) {
  return buckets_[static_cast<size_t>((mix(key & kKeyMask) >> 32) * buckets_.size() >> 32)];
}

int64_t CellTable::add(const Chunk& chunk, double t) {
  constexpr size_t kAhead = 16;
  std::vector<std::pair<uint64_t, float>> pairs;
  const std::lock_guard lock(mutex_);
  advance(t);
  const auto unit = static_cast<float>(decay_.weight(t) * 0x1p-32);
  visit_pairs(chunk, options_.window, [&](CellKey key, uint64_t units) {
    pairs.push_back({tagged(key), static_cast<float>(units) * unit});
  });
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i + kAhead < pairs.size()) __builtin_prefetch(&bucket_of(pairs[i + kAhead].first), 1);
    add(pairs[i].first, pairs[i].second);
  }
  return static_cast<int64_t>(pairs.size());
}

void CellTable::add(uint64_t key, float weight) {
  if (!(weight > 0)) return;  // so late that nothing is left of it
  Bucket& bucket = bucket_of(key);
  int empty = -1;
  for (int i = 0; i < kPlaces; ++i) {
    if (bucket.weights[i] == 0) {
      empty = i;
    } else if (bucket.keys[i] == key) {
      bucket.weights[i] += weight;
      return;
    }
  }
  if (empty < 0 && doublings_left_ > 0) {
    make_room();
    return add(key, weight);
  }
  if (empty < 0) return replace_lightest(bucket, key, weight);
  bucket.keys[empty] = key;
  bucket.weights[empty] = weight;
  ++used_;
}

void CellTable::replace_lightest(Bucket& bucket, uint64_t key, float weight) {
  int lightest = 0;
  for (int i = 0; i < kPlaces; ++i) {
    if (stale(bucket.keys[i])) {
      bucket.keys[i] = key;
      bucket.weights[i] = weight;
      return;
    }
    if (bucket.weights[i] < bucket.weights[lightest]) lightest = i;
  }
  float& sum = bucket.weights[lightest];
  sum += weight;
  if (random_.uniform() * sum < weight) bucket.keys[lightest] = key;
}

void CellTable::make_room() {
  std::vector<Bucket> old(buckets_.size() * 2);
  --doublings_left_;
  old.swap(buckets_);
  used_ = 0;
  for (const Bucket& bucket : old)
    for (int i = 0; i < kPlaces; ++i)
      if (bucket.weights[i] > 0 && !stale(bucket.keys[i])) add(bucket.keys[i], bucket.weights[i]);
}

void CellTable::advance(double t) {
  now_ = std::max(now_, t);
  const int64_t k = decay_.advance(now_);
  if (k == 0) return;
  used_ = 0;
  for (Bucket& bucket : buckets_)
    for (float& weight : bucket.weights) {
      weight = rescaled(weight, k);
      used_ += weight > 0;
    }
}

void CellTable::forget(Slot slot) {
  const std::lock_guard lock(mutex_);
  if (static_cast<size_t>(slot) >= generations_.size()) generations_.resize(static_cast<size_t>(slot) + 1);
  ++generations_[static_cast<size_t>(slot)];
}

void CellTable::draw(int64_t count, Random& random, std::vector<Drawn>& cells) {
  cells.clear();
  const std::lock_guard lock(mutex_);
  const auto unit = static_cast<float>(1 / decay_.weight(now_));
  // A table that is nearly empty would be searched for ever.
  for (int64_t tries = 8 * count; tries > 0 && static_cast<int64_t>(cells.size()) < count; --tries) {
    Bucket& bucket = buckets_[random.below(static_cast<uint32_t>(buckets_.size()))];
    const uint32_t place = random.below(kPlaces);
    if (bucket.weights[place] == 0) continue;
    const CellKey key(bucket.keys[place] & kKeyMask);
    const float x = bucket.weights[place] * unit;
    if (x < kFaded || stale(bucket.keys[place])) {
      bucket.weights[place] = 0;
      --used_;
      continue;
    }
    const bool turned = (random.next() & 1) != 0;
    cells.push_back({turned ? key.high() : key.low(), turned ? key.low() : key.high(), x});
  }
}

int64_t CellTable::cells() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

int64_t CellTable::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(buckets_.capacity() * sizeof(Bucket) + generations_.capacity());
}

Status CellTable::write(const std::function<Status(std::string_view)>& sink) const {
  const std::lock_guard lock(mutex_);
  std::vector<Saved> ready;
  const auto bytes = [](const auto* values, size_t count) {
    return std::string_view(reinterpret_cast<const char*>(values), count * sizeof(*values));
  };
  Header header{.landmark = decay_.landmark(), .now = now_};
  for (const Bucket& bucket : buckets_)
    for (int i = 0; i < kPlaces; ++i) header.cells += bucket.weights[i] > 0 && !stale(bucket.keys[i]);
  STREAMVEC_RETURN_IF_ERROR(sink(bytes(&header, 1)));
  for (const Bucket& bucket : buckets_) {
    for (int i = 0; i < kPlaces; ++i)
      if (bucket.weights[i] > 0 && !stale(bucket.keys[i]))
        ready.push_back({bucket.keys[i] & kKeyMask, bucket.weights[i]});
    if (ready.size() < 4'096) continue;
    STREAMVEC_RETURN_IF_ERROR(sink(bytes(ready.data(), ready.size())));
    ready.clear();
  }
  return sink(bytes(ready.data(), ready.size()));
}

Status CellTable::restore(std::string_view bytes, int64_t slots) {
  const auto damaged = [](const char* why) { return error(Code::kDataLoss, "glove.bin ", why); };
  Header header;
  if (bytes.size() < sizeof header) return damaged("is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.magic != kMagic || header.version != 1) return damaged("holds no co-occurrence cells");
  if (header.cells < 0 || bytes.size() % sizeof(Saved) != 0 ||
      bytes.size() / sizeof(Saved) != static_cast<uint64_t>(header.cells) || !std::isfinite(header.now))
    return damaged("has another length than it says");
  const std::lock_guard lock(mutex_);
  decay_.set_landmark(header.landmark);
  now_ = header.now;
  for (; !bytes.empty(); bytes.remove_prefix(sizeof(Saved))) {
    Saved cell;
    std::memcpy(&cell, bytes.data(), sizeof cell);
    const CellKey key(cell.key);
    if (cell.key > kKeyMask || key.low() > key.high() || key.high() >= slots || !(cell.weight > 0) ||
        !std::isfinite(static_cast<float>(cell.weight)))
      return damaged("names a cell that cannot be");
    add(cell.key, static_cast<float>(cell.weight));
  }
  return {};
}

}  // namespace streamvec
