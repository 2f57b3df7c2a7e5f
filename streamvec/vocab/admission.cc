#include "streamvec/vocab/admission.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace streamvec {
namespace {
constexpr int64_t kDroppedMax = int64_t{1} << 16;
constexpr int64_t kAliasesPerWordMax = 16;  // on average: a form with endless spellings must not eat the memory
}  // namespace

Admission::Admission(Options options)
    : options_(std::move(options)), candidates_(std::max<int64_t>(2, options_.candidates_max)) {}

bool Admission::full(const Vocabulary& vocabulary) const {
  const int64_t most = options_.vocab_max > 0 ? options_.vocab_max : std::numeric_limits<Slot>::max();
  return vocabulary.size() >= most;
}

int32_t Admission::admit(std::span<const std::string_view> words, Vocabulary& vocabulary, std::span<Slot> slots) {
  const int32_t size_before = vocabulary.size();
  vocabulary.find(words, slots);
  for (size_t i = 0; i < words.size(); ++i) {
    if (slots[i] != kNoSlot)
      vocabulary.add_count(slots[i], 1);
    else if (!words[i].empty() && words[i].size() <= Vocabulary::kWordBytesMax)
      slots[i] = admit_one(words[i], vocabulary);
  }
  if (full(vocabulary) && candidates_.types() > 0)
    candidates_ = WordCounter(std::max<int64_t>(2, options_.candidates_max));
  return vocabulary.size() - size_before;
}

Slot Admission::admit_one(std::string_view word, Vocabulary& vocabulary) {
  // An earlier word of the same chunk may have brought this one in.
  if (const Slot slot = vocabulary.find(word); slot != kNoSlot) {
    vocabulary.add_count(slot, 1);
    return slot;
  }
  return options_.form_of ? admit_form(word, vocabulary) : count_candidate(word, vocabulary);
}

Slot Admission::admit_form(std::string_view word, Vocabulary& vocabulary) {
  if (dropped_.find(word) >= 0) return kNoSlot;
  const std::optional<std::string> form = settled_form(options_.form_of, word);
  if (!form || form->size() > Vocabulary::kWordBytesMax) {
    remember_dropped(word);
    return kNoSlot;
  }
  Slot slot = vocabulary.find(*form);
  if (slot != kNoSlot)
    vocabulary.add_count(slot, 1);
  else
    slot = count_candidate(*form, vocabulary);
  const bool room = vocabulary.alias_count() < kAliasesPerWordMax * vocabulary.size();
  if (slot != kNoSlot && room && vocabulary.find(word) == kNoSlot) vocabulary.add_alias(word, slot);
  return slot;
}

Slot Admission::count_candidate(std::string_view word, Vocabulary& vocabulary) {
  if (full(vocabulary)) return kNoSlot;
  const int64_t count = options_.min_count <= 1 ? 1 : candidates_.add(word);
  if (count < options_.min_count) return kNoSlot;
  candidates_.forget(word);
  return vocabulary.add(word, count);
}

void Admission::remember_dropped(std::string_view word) {
  if (dropped_.size() >= kDroppedMax) dropped_ = WordTable();
  dropped_.insert(word, 0);
}

}  // namespace streamvec
