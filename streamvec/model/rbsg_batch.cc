#include "streamvec/model/rbsg_batch.h"

#include <algorithm>

#include "streamvec/core/status.h"

namespace streamvec {

namespace {

// The first characters in one number, which orders words as far as they differ there.
uint64_t first_characters(std::span<const CharacterId> word) {
  uint64_t key = 0;
  for (size_t i = 0; i < 4; ++i) key = key << 16 | (i < word.size() ? word[i] : 0);
  return key;
}

bool comes_before(std::span<const CharacterId> first, std::span<const CharacterId> second) {
  const auto [x, y] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  if (x == first.end() || y == second.end()) return first.size() < second.size();
  return *x < *y;
}

}  // namespace

void order_by_spelling(std::span<const std::span<const CharacterId>> words, std::vector<int32_t>& order) {
  struct Keyed {
    uint64_t key;
    int32_t word;
  };
  std::vector<Keyed> keyed;
  for (size_t i = 0; i < words.size(); ++i) keyed.push_back({first_characters(words[i]), static_cast<int32_t>(i)});
  std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return a.key < b.key;
    const auto &first = words[static_cast<size_t>(a.word)], &second = words[static_cast<size_t>(b.word)];
    if (comes_before(first, second)) return true;
    return !comes_before(second, first) && a.word < b.word;
  });
  order.clear();
  for (const Keyed& each : keyed) order.push_back(each.word);
}

void cut_evenly(std::span<const std::span<const CharacterId>> ordered, int32_t parts, std::vector<int32_t>& cuts) {
  // New beginnings up to each word.
  std::vector<int64_t> ends;
  int64_t total = 0;
  std::span<const CharacterId> before;
  for (const auto& word : ordered) {
    total += std::distance(std::mismatch(word.begin(), word.end(), before.begin(), before.end()).first, word.end());
    ends.push_back(total);
    before = word;
  }
  cuts.assign(1, 0);
  for (int32_t part = 1; part < parts; ++part) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), total * part / parts);
    cuts.push_back(static_cast<int32_t>(at - ends.begin()));
  }
  cuts.push_back(static_cast<int32_t>(ordered.size()));
}

void RbsgPlan::build(const RbsgBatch& batch, float weight, std::span<const Spelling> spellings, int32_t parts) {
  for (Side& side : sides) {
    for (const Slot slot : side.slots) side.rows[static_cast<size_t>(slot)] = 0;
    side.rows.resize(spellings.size(), 0);
    side.met.clear();
  }
  collect(batch.centres, sides[0]);
  collect(batch.contexts, sides[1]);
  collect(batch.negatives, sides[1]);
  for (Side& side : sides) arrange(spellings, parts, side);

  const auto row = [&](int which, Slot slot) { return sides[which].rows[static_cast<size_t>(slot)] - 1; };
  pairs.clear();
  apart.clear();
  pool.outputs.clear();
  pool.weights.clear();
  for (size_t i = 0; i < batch.centres.size(); ++i)
    pairs.push_back({row(0, batch.centres[i]), row(1, batch.contexts[i])});
  if (batch.form == RbsgBatch::Negatives::kPerPair) {
    const size_t each = batch.centres.empty() ? 1 : batch.negatives.size() / batch.centres.size();
    for (size_t i = 0; i < batch.negatives.size(); ++i)
      if (batch.negatives[i] != batch.contexts[i / each])
        apart.push_back({pairs[i / each].centre, row(1, batch.negatives[i])});
    return;
  }
  std::vector<int32_t>& draws = order_;
  draws.assign(sides[1].slots.size(), 0);
  for (const Slot slot : batch.negatives) ++draws[static_cast<size_t>(row(1, slot))];
  for (size_t i = 0; i < draws.size(); ++i) {
    if (draws[i] == 0) continue;
    pool.outputs.push_back(static_cast<int32_t>(i));
    pool.weights.push_back(weight * static_cast<float>(draws[i]) / static_cast<float>(batch.negatives.size()));
  }
}

void RbsgPlan::collect(std::span<const Slot> slots, Side& side) {
  for (const Slot slot : slots) {
    int32_t& row = side.rows[static_cast<size_t>(slot)];
    if (row != 0) continue;
    row = 1;
    side.met.push_back(slot);
  }
}

void RbsgPlan::arrange(std::span<const Spelling> spellings, int32_t parts, Side& side) {
  met_words_.clear();
  for (const Slot slot : side.met) met_words_.emplace_back(spellings[static_cast<size_t>(slot)]);
  order_by_spelling(met_words_, order_);
  side.slots.clear();
  side.words.clear();
  for (const int32_t met : order_) {
    side.slots.push_back(side.met[static_cast<size_t>(met)]);
    side.words.push_back(met_words_[static_cast<size_t>(met)]);
    side.rows[static_cast<size_t>(side.slots.back())] = static_cast<int32_t>(side.slots.size());
  }
  cut_evenly(side.words, parts, side.cuts);
}

}  // namespace streamvec
