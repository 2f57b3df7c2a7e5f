#include "streamvec/eval/cooccurrence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr uint32_t kUnitsMax = std::numeric_limits<uint32_t>::max();

uint32_t add_units(uint32_t a, uint32_t b) {
  return a > kUnitsMax - b ? kUnitsMax : a + b;
}

// Row in the upper half, column in the lower: sorted keys go row by row.
uint64_t key_of(Slot row, Slot column) {
  return uint64_t{static_cast<uint32_t>(row)} << 32 | static_cast<uint32_t>(column);
}
Slot row_of(uint64_t key) {
  return static_cast<Slot>(key >> 32);
}
Slot column_of(uint64_t key) {
  return static_cast<Slot>(key);
}

struct Entry {
  uint64_t key = kEmpty;
  uint32_t units = 0;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
};

// Open addressing, linear probing, at most three quarters full. Grows by doubling.
class PairTable {
 public:
  int64_t size() const { return size_; }

  void add(uint64_t key, uint32_t units) {
    if (size_ * 4 >= static_cast<int64_t>(entries_.size()) * 3) grow();
    Entry& entry = *find(key);
    size_ += entry.key == Entry::kEmpty;
    entry = {key, add_units(entry.units, units)};
  }

  // The entries in order of their keys; the table is empty afterwards.
  std::vector<Entry> take_sorted() {
    std::vector<Entry> entries = std::exchange(entries_, {});
    std::erase_if(entries, [](const Entry& entry) { return entry.key == Entry::kEmpty; });
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    size_ = 0;
    return entries;
  }

 private:
  Entry* find(uint64_t key) {
    const size_t mask = entries_.size() - 1;
    size_t place = mix(key) & mask;
    while (entries_[place].key != key && entries_[place].key != Entry::kEmpty) place = (place + 1) & mask;
    return &entries_[place];
  }

  void grow() {
    const std::vector<Entry> old =
        std::exchange(entries_, std::vector<Entry>(std::max<size_t>(1024, entries_.size() * 2)));
    for (const Entry& entry : old)
      if (entry.key != Entry::kEmpty) *find(entry.key) = entry;
  }

  std::vector<Entry> entries_;
  int64_t size_ = 0;
};

PairCounts make_empty(int32_t size, int32_t window) {
  PairCounts counts;
  counts.window = window;
  counts.begin.assign(static_cast<size_t>(size) + 1, 0);
  return counts;
}

// Two sources of (key, units) in rising order become one. A source has done(), key(), units(), next().
template <class A, class B>
PairCounts merge(int32_t size, int32_t window, A a, B b, int64_t expected) {
  PairCounts sum = make_empty(size, window);
  sum.column.reserve(static_cast<size_t>(expected));
  sum.units.reserve(static_cast<size_t>(expected));
  while (!a.done() || !b.done()) {
    const uint64_t key = std::min(a.done() ? Entry::kEmpty : a.key(), b.done() ? Entry::kEmpty : b.key());
    uint32_t units = 0;
    if (!a.done() && a.key() == key) units = add_units(units, a.units()), a.next();
    if (!b.done() && b.key() == key) units = add_units(units, b.units()), b.next();
    sum.column.push_back(column_of(key));
    sum.units.push_back(units);
    ++sum.begin[static_cast<size_t>(row_of(key)) + 1];
  }
  for (size_t i = 1; i < sum.begin.size(); ++i) sum.begin[i] += sum.begin[i - 1];
  return sum;
}

class CountsCursor {
 public:
  explicit CountsCursor(const PairCounts& counts) : counts_(counts) { skip_empty_rows(); }
  bool done() const { return at_ == counts_.column.size(); }
  uint64_t key() const { return key_of(row_, counts_.column[at_]); }
  uint32_t units() const { return counts_.units[at_]; }
  void next() {
    ++at_;
    skip_empty_rows();
  }

 private:
  void skip_empty_rows() {
    while (!done() && static_cast<int64_t>(at_) >= counts_.begin[static_cast<size_t>(row_) + 1]) ++row_;
  }
  const PairCounts& counts_;
  size_t at_ = 0;
  Slot row_ = 0;
};

class EntryCursor {
 public:
  explicit EntryCursor(const std::vector<Entry>& entries) : entries_(entries) {}
  bool done() const { return at_ == entries_.size(); }
  uint64_t key() const { return entries_[at_].key; }
  uint32_t units() const { return entries_[at_].units; }
  void next() { ++at_; }

 private:
  const std::vector<Entry>& entries_;
  size_t at_ = 0;
};

// Takes sentences; new pairs wait in a table until it is full, and are then merged into the counts.
class PairCounter {
 public:
  PairCounter(int32_t size, const PairCountOptions& options)
      : options_(options), counts_(make_empty(size, options.pairs.window)) {}

  Status add(std::span<const Slot> sentence) {
    const size_t window = static_cast<size_t>(options_.pairs.window);
    for (size_t i = 0; i < sentence.size(); ++i)
      for (size_t d = 1; d <= window && i + d < sentence.size(); ++d) {
        const auto [low, high] = std::minmax(sentence[i], sentence[i + d]);
        const auto units = static_cast<uint32_t>(window - d + 1);
        table_.add(key_of(low, high), low == high ? 2 * units : units);  // a word beside itself: both orders
      }
    return table_.size() < options_.buffer_max ? Status() : flush();
  }

  Result<PairCounts> finish() {
    STREAMVEC_RETURN_IF_ERROR(flush());
    return std::move(counts_);
  }

 private:
  Status flush() {
    const std::vector<Entry> entries = table_.take_sorted();
    const int64_t bound = counts_.pairs() + static_cast<int64_t>(entries.size());
    counts_ = merge(counts_.size(), counts_.window, CountsCursor(counts_), EntryCursor(entries), bound);
    if (counts_.pairs() <= options_.pairs_max) return {};
    return error(Code::kResourceExhausted, "the text has more than ", options_.pairs_max,
                 " distinct word pairs; measure with less text or a smaller vocabulary");
  }

  PairCountOptions options_;
  PairTable table_;
  PairCounts counts_;
};

}  // namespace

std::vector<double> PairCounts::marginals() const {
  std::vector<double> sums(static_cast<size_t>(size()));
  for (Slot i = 0; i < size(); ++i)
    for (int64_t k = begin[static_cast<size_t>(i)]; k < begin[static_cast<size_t>(i) + 1]; ++k) {
      sums[static_cast<size_t>(i)] += weight(k);
      if (column[static_cast<size_t>(k)] != i) sums[static_cast<size_t>(column[static_cast<size_t>(k)])] += weight(k);
    }
  return sums;
}

Result<PairCounts> count_pairs(const SentenceStream& stream, const Vocabulary& vocabulary,
                               const PairCountOptions& options) {
  STREAMVEC_RETURN_IF_ERROR(check(options.pairs));
  PairCounter counter(vocabulary.size(), options);
  STREAMVEC_RETURN_IF_ERROR(
      visit_subsampled(stream, vocabulary, options.pairs,
                       [&](int64_t, std::span<const Slot> sentence) { return counter.add(sentence); }));
  return counter.finish();
}

Result<std::array<PairCounts, 2>> count_pairs_of_halves(const SentenceStream& stream, const Vocabulary& vocabulary,
                                                        const PairCountOptions& options) {
  STREAMVEC_RETURN_IF_ERROR(check(options.pairs));
  PairCounter counters[2] = {{vocabulary.size(), options}, {vocabulary.size(), options}};
  STREAMVEC_RETURN_IF_ERROR(visit_subsampled(
      stream, vocabulary, options.pairs,
      [&](int64_t number, std::span<const Slot> sentence) { return counters[number % 2].add(sentence); }));
  std::array<PairCounts, 2> halves;
  for (size_t h = 0; h < 2; ++h) {
    STREAMVEC_ASSIGN_OR_RETURN(halves[h], counters[h].finish());
  }
  return halves;
}

PairCounts add(const PairCounts& a, const PairCounts& b) {
  STREAMVEC_CHECK_EQ(a.size(), b.size());
  STREAMVEC_CHECK_EQ(a.window, b.window);
  return merge(a.size(), a.window, CountsCursor(a), CountsCursor(b), a.pairs() + b.pairs());
}

}  // namespace streamvec
