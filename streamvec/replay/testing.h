// What the tests of the replay table share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "streamvec/replay/table.h"

namespace streamvec {

inline Deadline at_once() {
  return Deadline::after({});
}

inline std::shared_ptr<const ReplayItem> item_of(int32_t number, uint64_t record = 0, size_t slots = 4) {
  auto item = std::make_shared<ReplayItem>();
  item->chunk.slots.assign(slots, number);
  item->chunk.sentence_ends = {1, static_cast<int32_t>(slots)};
  item->stamp = static_cast<uint64_t>(number) * 3;
  item->record = record;
  item->source = number % 5;
  item->time_s = 1'000 + number;
  item->t = number;
  return item;
}

inline int32_t number_of(const ReplaySample& sample) {
  return sample.item->chunk.slots.at(0);
}

// Small, with room on all sides: sampling starts with the first insert.
inline ReplayOptions small(ReplaySelector selector, int64_t capacity = 8, double samples_per_insert = 4) {
  ReplayOptions options;
  options.selector = selector;
  options.capacity = capacity;
  options.limiter = {.samples_per_insert = samples_per_insert, .size_min = 1, .inserts_ahead_max = 1'000'000};
  return options;
}

inline std::unique_ptr<ReplayTable> table_of(const ReplayOptions& options) {
  auto table = ReplayTable::create(options);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return std::move(table).value();
}

inline void insert_numbers(ReplayTable& table, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; ++i) {
    const Status status = table.insert(item_of(i), at_once());
    ASSERT_TRUE(status.ok()) << i << ": " << status.message();
  }
}

// What sample() hands out now, at most `count`.
inline std::vector<ReplaySample> take(ReplayTable& table, int64_t count) {
  std::vector<ReplaySample> samples;
  for (int64_t left = count; left > 0;) {
    const auto got = table.sample(left, at_once(), samples);
    if (!got.ok() || *got == 0) break;
    left -= *got;
  }
  return samples;
}

}  // namespace streamvec
