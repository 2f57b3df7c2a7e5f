#include "streamvec/vocab/shared_vocabulary_message.h"

#include <cmath>
#include <limits>

#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr uint64_t kTimesMax = uint64_t{1} << 53;
constexpr uint64_t kCharacterMax = 0x10FFFF;

Status unreadable(const char* what, size_t offset) {
  return error(Code::kInvalidArgument, "a message about ", what, " that nobody can read from byte ", offset,
               " on; the sender runs another version");
}

int64_t get_times(StateReader& in) {
  const uint64_t times = in.get_varint();
  if (times > kTimesMax) in.fail();
  return in.ok() ? static_cast<int64_t>(times) : 0;
}

// The next of rising slots, told by how far it is from the last one.
Slot get_slot(StateReader& in, uint64_t& next) {
  const uint64_t gap = in.get_varint();
  if (gap > std::numeric_limits<Slot>::max() || next + gap > std::numeric_limits<Slot>::max()) in.fail();
  next += gap;
  return in.ok() ? static_cast<Slot>(next++) : 0;
}

void put_slots(const std::vector<std::pair<Slot, int64_t>>& slots, StateWriter& out) {
  out.put(static_cast<uint64_t>(slots.size()));
  uint64_t next = 0;
  for (const auto& [slot, times] : slots) {
    out.put_varint(static_cast<uint64_t>(slot) - next);
    out.put_varint(static_cast<uint64_t>(times));
    next = static_cast<uint64_t>(slot) + 1;
  }
}

std::vector<std::pair<Slot, int64_t>> get_slots(StateReader& in) {
  std::vector<std::pair<Slot, int64_t>> slots;
  const int64_t count = in.get_count(2);
  uint64_t next = 0;
  for (int64_t i = 0; i < count && in.ok(); ++i) {
    const Slot slot = get_slot(in, next);
    slots.emplace_back(slot, get_times(in));
  }
  return slots;
}

double get_weight(StateReader& in) {
  const auto weight = in.get<double>();
  if (!(weight >= 0) || !std::isfinite(weight)) in.fail();
  return in.ok() ? weight : 0;
}

}  // namespace

std::string encode(const VocabularyReport& report) {
  StateWriter out;
  out.put(report.number);
  out.put(report.stamp);
  out.put(report.t);
  out.put(report.tokens);
  out.put(report.outside);
  put_slots(report.slots, out);
  out.put(static_cast<uint64_t>(report.words.size()));
  for (const auto& [word, times] : report.words) {
    out.put_text(word);
    out.put_varint(static_cast<uint64_t>(times));
  }
  put_slots(report.met, out);
  return out.take();
}

Result<VocabularyReport> decode_vocabulary_report(std::string_view bytes) {
  StateReader in(bytes);
  VocabularyReport report;
  report.number = in.get<int64_t>();
  report.stamp = in.get<uint64_t>();
  report.t = in.get<double>();
  report.tokens = in.get<int64_t>();
  report.outside = in.get<int64_t>();
  if (!std::isfinite(report.t) || report.tokens < 0 || report.outside < 0) in.fail();
  report.slots = get_slots(in);
  const int64_t words = in.get_count(3);
  for (int64_t i = 0; i < words && in.ok(); ++i) {
    const std::string_view word = in.get_text();
    report.words.emplace_back(word, get_times(in));
  }
  report.met = get_slots(in);
  if (!in.ok() || !in.at_end()) return unreadable("counted words", in.offset());
  return report;
}

std::string encode(const VocabularyChanges& changes) {
  StateWriter out;
  out.put(changes.after);
  out.put(changes.stamp);
  out.put(changes.tokens);
  out.put(changes.now);
  out.put(static_cast<uint64_t>(changes.changes.size()));
  uint64_t next = 0;
  for (const VocabularyChanges::Change& change : changes.changes) {
    out.put_varint(static_cast<uint64_t>(change.slot) - next);
    out.put_varint(change.born);
    out.put(change.count);
    out.put_text(change.word);
    next = static_cast<uint64_t>(change.slot) + 1;
  }
  out.put(static_cast<uint64_t>(changes.characters.size()));
  for (const MetCharacter& met : changes.characters) {
    out.put_varint(met.character);
    out.put_varint(met.born);
  }
  out.put(static_cast<uint64_t>(changes.counts.size()));
  out.put_all(std::span<const float>(changes.counts));
  return out.take();
}

Result<VocabularyChanges> decode_vocabulary_changes(std::string_view bytes) {
  StateReader in(bytes);
  VocabularyChanges changes;
  changes.after = in.get<uint64_t>();
  changes.stamp = in.get<uint64_t>();
  changes.tokens = in.get<int64_t>();
  changes.now = in.get<double>();
  if (changes.stamp < changes.after || changes.tokens < 0 || !std::isfinite(changes.now)) in.fail();
  const int64_t slots = in.get_count(12);
  uint64_t next = 0;
  for (int64_t i = 0; i < slots && in.ok(); ++i) {
    VocabularyChanges::Change change;
    change.slot = get_slot(in, next);
    change.born = in.get_varint();
    change.count = get_weight(in);
    change.word = in.get_text();
    if (change.born > changes.stamp || change.word.empty()) in.fail();
    if (change.born <= changes.after && changes.after > 0) in.fail();
    changes.changes.push_back(std::move(change));
  }
  const int64_t characters = in.get_count(2);
  uint64_t last = changes.after + 1;
  for (int64_t i = 0; i < characters && in.ok(); ++i) {
    const uint64_t character = in.get_varint(), born = in.get_varint();
    if (character > kCharacterMax || born < last || born > changes.stamp) in.fail();
    last = born;
    changes.characters.push_back({static_cast<char32_t>(character), born});
  }
  const int64_t counts = in.get_count(sizeof(float));
  changes.counts.resize(static_cast<size_t>(counts));
  in.get_all(std::span<float>(changes.counts));
  for (const float count : changes.counts)
    if (!(count >= 0) || !std::isfinite(count)) in.fail();
  if (!in.ok() || !in.at_end()) return unreadable("a shared vocabulary", in.offset());
  return changes;
}

}  // namespace streamvec
