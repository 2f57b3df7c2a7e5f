#include "streamvec/model/cooccurrence.h"

#include <algorithm>
#include <cstring>
#include <queue>
#include <span>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kCellBytes = sizeof(CountedCell);
constexpr int64_t kCapacityMin = 1'024, kCapacityFirst = 65'536;
constexpr size_t kBatch = 64;  // pairs whose places are fetched together: more would overflow the miss buffers
constexpr int64_t kRunBuffer = 4'096;
constexpr int64_t kStoredBytes = sizeof(uint16_t) + sizeof(float);

}  // namespace

// ---- counting

CellCounter::CellCounter(Options options) : options_(std::move(options)) {
  // While the table grows the old one, half as large, is there, too.
  capacity_max_ = std::max(kCapacityMin, options_.memory_bytes / kCellBytes * 2 / 3);
  while (capacity_max_ >> (doublings_left_ + 1) >= kCapacityFirst) ++doublings_left_;
  table_.resize(static_cast<size_t>(capacity_max_ >> doublings_left_));
  memory_bytes_max_ = memory_bytes();
  batch_.reserve(kBatch);
}

Status CellCounter::add(const Chunk& chunk) {
  Status status;
  const auto count_batch = [&] {
    if (status.ok()) status = make_room();
    if (!status.ok()) return;
    for (const CountedCell& cell : batch_) add(cell.key, cell.units);
    batch_.clear();
  };
  visit_pairs(chunk, options_.window, [&](CellKey key, uint64_t units) {
    if (!status.ok()) return;
    __builtin_prefetch(&table_[place_of(key.value())], 1);
    batch_.push_back({key.value(), units});
    if (batch_.size() == kBatch) count_batch();
  });
  count_batch();
  return status;
}

size_t CellCounter::place_of(uint64_t key) const {
  return static_cast<size_t>((mix(key) >> 32) * table_.size() >> 32);
}

void CellCounter::add(uint64_t key, uint64_t units) {
  size_t place = place_of(key);
  while (table_[place].units != 0 && table_[place].key != key) place = place + 1 == table_.size() ? 0 : place + 1;
  used_ += table_[place].units == 0;
  table_[place].key = key;
  table_[place].units += units;
}

// Room for a batch: at most three quarters are used.
Status CellCounter::make_room() {
  const auto capacity = static_cast<int64_t>(table_.size());
  if (used_ + static_cast<int64_t>(kBatch) <= capacity / 4 * 3) return {};
  if (doublings_left_ == 0) return spill();
  grow();
  return {};
}

void CellCounter::grow() {
  std::vector<CountedCell> old(static_cast<size_t>(capacity_max_ >> --doublings_left_));
  old.swap(table_);
  memory_bytes_max_ = std::max(memory_bytes_max_, memory_bytes() + static_cast<int64_t>(old.size()) * kCellBytes);
  used_ = 0;
  for (const CountedCell& cell : old)
    if (cell.units != 0) add(cell.key, cell.units);
}

int64_t CellCounter::sort() {
  const auto end =
      std::partition(table_.begin(), table_.end(), [](const CountedCell& cell) { return cell.units != 0; });
  std::sort(table_.begin(), end, [](const CountedCell& a, const CountedCell& b) { return a.key < b.key; });
  return end - table_.begin();
}

Status CellCounter::spill() {
  if (!file_) {
    STREAMVEC_ASSIGN_OR_RETURN(file_, TemporaryFile::create(options_.dir));
  }
  const int64_t cells = sort();
  runs_.push_back({file_->size(), cells});
  STREAMVEC_RETURN_IF_ERROR(file_->append(table_.data(), cells * kCellBytes));
  std::fill(table_.begin(), table_.end(), CountedCell());
  used_ = 0;
  return {};
}

// ---- merging

// The runs of all counters as one, by rising key, equal keys added up.
class CellMerge {
 public:
  explicit CellMerge(std::vector<CellCounter>& counters) {
    for (CellCounter& counter : counters) {
      for (const CellCounter::Run& run : counter.runs_)
        inputs_.push_back({&*counter.file_, run.offset, run.cells, {}, {}});
      const int64_t cells = counter.sort();
      inputs_.push_back({nullptr, 0, 0, {}, std::span(counter.table_).first(static_cast<size_t>(cells))});
    }
  }
  // Tables go to files first, where some did before: then the result may have their memory.
  static Status settle(std::vector<CellCounter>& counters) {
    if (std::all_of(counters.begin(), counters.end(), [](const CellCounter& one) { return one.runs() == 0; }))
      return {};
    for (CellCounter& counter : counters) {
      STREAMVEC_RETURN_IF_ERROR(counter.spill());
      counter.table_ = {};
    }
    return {};
  }

  int64_t cells_at_most() const {
    int64_t cells = 0;
    for (const Input& input : inputs_) cells += input.left + static_cast<int64_t>(input.ready.size());
    return cells;
  }

  Status write(CellStore& store) {
    for (size_t i = 0; i < inputs_.size(); ++i) STREAMVEC_RETURN_IF_ERROR(queue(i));
    CountedCell sum;
    while (!next_.empty()) {
      const auto [key, i] = next_.top();
      next_.pop();
      const CountedCell cell = inputs_[i].ready.front();
      inputs_[i].ready = inputs_[i].ready.subspan(1);
      STREAMVEC_RETURN_IF_ERROR(queue(i));
      if (sum.units != 0 && sum.key != key) STREAMVEC_RETURN_IF_ERROR(put(sum, store));
      sum = {key, sum.units != 0 && sum.key == key ? sum.units + cell.units : cell.units};
    }
    if (sum.units != 0) STREAMVEC_RETURN_IF_ERROR(put(sum, store));
    return end_tile(store);
  }

 private:
  struct Input {
    TemporaryFile* file;
    int64_t offset, left;  // in the file, behind the buffer
    std::vector<CountedCell> buffer;
    std::span<const CountedCell> ready;
  };
  using Next = std::pair<uint64_t, size_t>;  // key, input

  Status queue(size_t i) {
    Input& input = inputs_[i];
    if (input.ready.empty() && input.left > 0) {
      input.buffer.resize(static_cast<size_t>(std::min(input.left, kRunBuffer)));
      const auto cells = static_cast<int64_t>(input.buffer.size());
      STREAMVEC_RETURN_IF_ERROR(input.file->read(input.offset, input.buffer.data(), cells * kCellBytes));
      input.offset += cells * kCellBytes;
      input.left -= cells;
      input.ready = input.buffer;
    }
    if (!input.ready.empty()) next_.push({input.ready.front().key, i});
    return {};
  }

  Status put(const CountedCell& cell, CellStore& store) {
    const CellKey key(cell.key);
    if (!places_.empty() && key.tile() != tile_) STREAMVEC_RETURN_IF_ERROR(end_tile(store));
    tile_ = key.tile();
    places_.push_back(key.place());
    x_.push_back(static_cast<float>(static_cast<double>(cell.units) * 0x1p-32));
    store.cells_ += key.low() == key.high() ? 1 : 2;
    store.fingerprint_ += mix(cell.key, cell.units);
    return {};
  }

  // In pieces of cells drawn at random: a dense tile that is trained on in one go would pull its rows away from what
  // the others taught them.
  Status end_tile(CellStore& store) {
    Random random(tile_);
    for (size_t i = places_.size(); i > 1; --i) {
      const size_t other = random.below(static_cast<uint32_t>(i));
      std::swap(places_[i - 1], places_[other]);
      std::swap(x_[i - 1], x_[other]);
    }
    for (size_t begin = 0; begin < places_.size(); begin += CellStore::kTileCellsMax) {
      const size_t count = std::min(places_.size() - begin, CellStore::kTileCellsMax);
      STREAMVEC_RETURN_IF_ERROR(write_piece(begin, count, store));
    }
    places_.clear();
    x_.clear();
    return {};
  }

  Status write_piece(size_t begin, size_t count, CellStore& store) {
    const auto low = static_cast<Slot>(tile_ >> 16), high = static_cast<Slot>(tile_ & 65535);
    store.tiles_.push_back({low << CellKey::kTileBits, high << CellKey::kTileBits, static_cast<int32_t>(count),
                            store.file_ ? store.file_->size() : static_cast<int64_t>(store.bytes_.size())});
    STREAMVEC_RETURN_IF_ERROR(write_bytes(&places_[begin], count * sizeof(uint16_t), store));
    return write_bytes(&x_[begin], count * sizeof(float), store);
  }

  static Status write_bytes(const void* bytes, size_t count, CellStore& store) {
    if (store.file_) return store.file_->append(bytes, static_cast<int64_t>(count));
    const char* from = static_cast<const char*>(bytes);
    store.bytes_.insert(store.bytes_.end(), from, from + count);
    return {};
  }

  std::vector<Input> inputs_;
  std::priority_queue<Next, std::vector<Next>, std::greater<Next>> next_;
  uint32_t tile_ = 0;
  std::vector<uint16_t> places_;
  std::vector<float> x_;
};

Result<CellStore> CellStore::merge(std::vector<CellCounter> counters, int64_t memory_bytes, const std::string& dir) {
  CellStore store;
  STREAMVEC_RETURN_IF_ERROR(CellMerge::settle(counters));
  CellMerge merge(counters);
  const int64_t bytes_at_most = merge.cells_at_most() * kStoredBytes;
  if (bytes_at_most > memory_bytes) {
    STREAMVEC_ASSIGN_OR_RETURN(store.file_, TemporaryFile::create(dir));
  } else {
    store.bytes_.reserve(static_cast<size_t>(bytes_at_most));
  }
  STREAMVEC_RETURN_IF_ERROR(merge.write(store));
  return store;
}

Status CellStore::read(const Tile& tile, Cells& cells) const {
  const auto count = static_cast<size_t>(tile.cells);
  cells.places.resize(count);
  cells.x.assign((count + 15) / 16 * 16, 1.0f);
  const auto places_bytes = static_cast<int64_t>(count * sizeof(uint16_t));
  const auto x_bytes = static_cast<int64_t>(count * sizeof(float));
  if (file_) {
    STREAMVEC_RETURN_IF_ERROR(file_->read(tile.offset, cells.places.data(), places_bytes));
    return file_->read(tile.offset + places_bytes, cells.x.data(), x_bytes);
  }
  std::memcpy(cells.places.data(), bytes_.data() + tile.offset, static_cast<size_t>(places_bytes));
  std::memcpy(cells.x.data(), bytes_.data() + tile.offset + places_bytes, static_cast<size_t>(x_bytes));
  return {};
}

}  // namespace streamvec
