#include "streamvec/model/cell_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace streamvec {
namespace {

constexpr int64_t kBucketsFirst = 1'024, kBucketsMin = 16;
constexpr uint64_t kKeyMask = (uint64_t{1} << 48) - 1;
constexpr uint8_t kGenerationLast = 255;
constexpr double kFaded = 0x1p-10;           // a cell this light has nothing to teach
constexpr uint32_t kCellMagic = 0x31434c47;  // "GLC1"

// glove.bin: a Header, then blocks of cells, then a block of none. Weights are as of the block's time, an occurrence
// then counting 1. Version 1 was one block to the end of the file, with weights relative to a landmark.
struct Header {
  uint32_t magic = kCellMagic, version = 2;
};

template <typename T>
std::string_view bytes_of(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

// False when the bytes are too few.
template <typename T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

// In the file; not unnamed, as a table's piece has them.
struct CellBlock {
  int64_t cells = 0, landmark = 0;
  double now = 0;
};
struct SavedCell {
  uint64_t key = 0;
  double weight = 0;
};

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
  if (++generations_[static_cast<size_t>(slot)] == kGenerationLast) drop_stale();
}

// A generation that came round again would make cells of words long gone those of another word.
void CellTable::drop_stale() {
  used_ = 0;
  for (Bucket& bucket : buckets_)
    for (int i = 0; i < kPlaces; ++i) {
      if (stale(bucket.keys[i])) bucket.weights[i] = 0;
      bucket.keys[i] &= kKeyMask;
      used_ += bucket.weights[i] > 0;
    }
  generations_.clear();
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

// Where writing is, and what was copied last.
struct CellTable::Piece {
  size_t next = 0, buckets = 0;  // the bucket to go on with, of so many
  CellBlock block;
  std::vector<SavedCell> cells;
};

// False when there is no more. When the table has grown meanwhile each bucket has become two neighbours.
bool CellTable::copy_piece(Piece& piece) const {
  constexpr size_t kBucketsAtOnce = 4'096;
  const std::lock_guard lock(mutex_);
  if (piece.buckets > 0) piece.next *= buckets_.size() / piece.buckets;
  piece.buckets = buckets_.size();
  if (piece.next == piece.buckets) return false;
  piece.cells.clear();
  const double unit = 1 / decay_.weight(now_);
  for (const size_t end = std::min(piece.next + kBucketsAtOnce, piece.buckets); piece.next < end; ++piece.next) {
    const Bucket& bucket = buckets_[piece.next];
    for (int i = 0; i < kPlaces; ++i)
      if (bucket.weights[i] > 0 && !stale(bucket.keys[i]))
        piece.cells.push_back({bucket.keys[i] & kKeyMask, double{bucket.weights[i]} * unit});
  }
  piece.block = {.cells = static_cast<int64_t>(piece.cells.size()), .landmark = decay_.landmark(), .now = now_};
  return true;
}

Status CellTable::write(const std::function<Status(std::string_view)>& sink) const {
  const Header header;
  STREAMVEC_RETURN_IF_ERROR(sink(bytes_of(&header, 1)));
  Piece piece;
  while (copy_piece(piece)) {
    if (piece.cells.empty()) continue;
    STREAMVEC_RETURN_IF_ERROR(sink(bytes_of(&piece.block, 1)));
    STREAMVEC_RETURN_IF_ERROR(sink(bytes_of(piece.cells.data(), piece.cells.size())));
  }
  const CellBlock none;
  return sink(bytes_of(&none, 1));
}

Status CellTable::restore(std::string_view bytes, int64_t slots) {
  const auto damaged = [](const char* why) { return error(Code::kDataLoss, "glove.bin ", why); };
  const std::lock_guard lock(mutex_);
  Header header;
  if (!take(bytes, header)) return damaged("is cut short");
  if (header.magic != kCellMagic || (header.version != 1 && header.version != 2))
    return damaged("holds no co-occurrence cells");
  for (bool first = true;; first = false) {
    CellBlock block;
    if (!take(bytes, block)) return damaged("is cut short");
    if (header.version == 2 && block.cells == 0 && block.landmark == 0 && block.now == 0) break;
    if (block.cells < 0 || static_cast<uint64_t>(block.cells) > bytes.size() / sizeof(SavedCell) ||
        !std::isfinite(block.now) || block.now < now_)
      return damaged("has a block of cells that cannot be");
    if (first) decay_.start(block.now);
    advance(block.now);
    ForwardDecay saved = decay_;
    if (header.version == 1) saved.set_landmark(block.landmark);
    const double unit = header.version == 1 ? decay_.weight(now_) / saved.weight(now_) : decay_.weight(now_);
    for (int64_t i = 0; i < block.cells; ++i) {
      SavedCell cell;
      take(bytes, cell);
      const CellKey key(cell.key);
      const auto weight = static_cast<float>(cell.weight * unit);
      if (cell.key > kKeyMask || key.low() > key.high() || key.high() >= slots || !(cell.weight > 0) ||
          !std::isfinite(weight))
        return damaged("names a cell that cannot be");
      add(cell.key, weight);
    }
    if (header.version == 1) break;
  }
  return bytes.empty() ? Status() : damaged("has another length than it says");
}

}  // namespace streamvec
