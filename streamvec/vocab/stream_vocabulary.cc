#include "streamvec/vocab/stream_vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

constexpr int64_t kSlotsMost = std::numeric_limits<Slot>::max();
constexpr int64_t kSketchBytesPerSlot = 64, kSketchBytesMin = int64_t{1} << 20,
                  kSketchBytesUnlimited = int64_t{1} << 24;
constexpr double kSketchCopies = 2;  // save() makes one
// Words' bytes with their headers, on average over the slots: room that is taken at once, and what may live at most.
constexpr size_t kWordRoomPerSlot = 48, kWordBytesPerSlotMax = 96, kWordBytesMin = size_t{1} << 16;
constexpr size_t kLeaversShare = 16, kLeaversMin = 16;

int64_t slots_max_of(const StreamVocabulary::Options& options) {
  return std::clamp<int64_t>(options.vocab_max > 0 ? options.vocab_max : options.slots_max, 1, kSlotsMost);
}

bool is_plain(const StreamVocabulary::Options& options) {
  return options.vocab_max <= 0 && std::isinf(options.half_life);
}

int64_t sketch_bytes_of(const StreamVocabulary::Options& options) {
  if (options.sketch_bytes > 0) return options.sketch_bytes;
  if (options.vocab_max <= 0) return kSketchBytesUnlimited;
  // Twice, because what is fitted in is a power of two.
  return std::max(kSketchBytesMin, 2 * kSketchBytesPerSlot * std::min(options.vocab_max, kSlotsMost) - 1);
}

bool usable(std::string_view word) {
  return !word.empty() && word.size() <= StreamVocabulary::kWordBytesMax;
}

}  // namespace

Status StreamVocabulary::check_memory(const Options& options) {
  if (is_plain(options)) return {};
  return streamvec::check_memory("a vocabulary of " + std::to_string(slots_max_of(options)) + " words",
                                 kSketchCopies * static_cast<double>(sketch_bytes_of(options)),
                                 "a smaller --vocab-max");
}

StreamVocabulary::StreamVocabulary(Options options)
    : options_(std::move(options)),
      slots_max_(slots_max_of(options_)),
      decay_(options_.half_life),
      hash_(mix(options_.seed, kHashSeed)),
      births_(std::make_unique<Births>(slots_max_)) {
  if (!is_plain(options_) && !options_.follows)
    sketch_.emplace(sketch_bytes_of(options_), mix(options_.seed, kSketchSeed));
}

StreamVocabulary StreamVocabulary::from(Options options, const Vocabulary& vocabulary, double t) {
  int64_t& most = options.vocab_max > 0 ? options.vocab_max : options.slots_max;
  most = std::max<int64_t>(most, vocabulary.size());
  StreamVocabulary stream(std::move(options));
  stream.go_to(t);
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    const std::string_view word = vocabulary.word(slot);
    stream.append(word, stream.hash_(word), static_cast<double>(vocabulary.count(slot)) * stream.now_weight_);
    stream.births_->set(slot, 0);
  }
  for (int64_t i = 0; stream.options_.form_of && i < vocabulary.alias_count(); ++i) {
    const std::string_view spelling = vocabulary.alias(i).spelling;
    stream.forms_.form(stream.options_.form_of, spelling, stream.hash_(spelling));
  }
  return stream;
}

void StreamVocabulary::go_to(double t) {
  const bool begun = !held_.empty() || statistics_.tokens > 0;
  if (!begun) decay_.start(t);
  now_ = begun ? std::max(now_, t) : t;
  if (const int64_t k = decay_.advance(now_); k > 0) {
    for (Held& held : held_) held.count = rescaled(held.count, k);
    for (Leaver& leaver : leavers_) leaver.count = rescaled(leaver.count, k);
    held_sum_ = rescaled(held_sum_, k);
    if (sketch_) sketch_->rescale(k);
  }
  now_weight_ = decay_.weight(now_);
  call_time_ = t;
  call_weight_ = decay_.weight(t);
}

void StreamVocabulary::map(std::span<const std::string_view> words, double t, std::span<Slot> slots,
                           std::vector<Slot>& admitted) {
  STREAMVEC_CHECK_EQ(words.size(), slots.size());
  go_to(t);
  begin_call(admitted);
  const int64_t evicted_before = statistics_.evicted;
  for (size_t begin = 0; begin < words.size(); begin += kAhead) {
    const size_t count = std::min(kAhead, words.size() - begin);
    map_some(words.subspan(begin, count), begin, slots.subspan(begin, count));
  }
  statistics_.tokens += static_cast<int64_t>(words.size());
  unreported_tokens_ += static_cast<int64_t>(words.size());
  if (statistics_.evicted > evicted_before) forget_text_of_leavers(slots);
  call_admitted_ = nullptr;
}

void StreamVocabulary::begin_call(std::vector<Slot>& admitted) {
  admitted.clear();
  call_admitted_ = &admitted;
  call_admitted_at_.clear();
  call_stamp_ = stamp();
  call_position_ = 0;
}

void StreamVocabulary::map_some(std::span<const std::string_view> words, size_t begin, std::span<Slot> slots) {
  std::array<uint64_t, kAhead> hashes;
  look_up(words, hashes, slots);
  const int64_t admitted_before = statistics_.admitted;
  for (size_t i = 0; i < words.size(); ++i) {
    // What was looked up holds until somebody is admitted, which may also take a slot from another.
    if (statistics_.admitted != admitted_before && usable(words[i])) slots[i] = find(hashes[i], words[i]);
    if (slots[i] != kNoSlot && !has_other_form(slots[i])) {
      count(slots[i]);
      continue;
    }
    call_position_ = begin + i;
    if (usable(words[i])) slots[i] = meet(words[i], hashes[i]);
    statistics_.outside += slots[i] == kNoSlot;
    unreported_outside_ += slots[i] == kNoSlot;
  }
}

// Passes over a few words, each of which waits for memory that the pass before has asked for.
void StreamVocabulary::look_up(std::span<const std::string_view> words, std::span<uint64_t> hashes,
                               std::span<Slot> slots) const {
  for (size_t i = 0; i < words.size(); ++i) {
    hashes[i] = usable(words[i]) ? hash_(words[i]) : 0;
    index_.prefetch(hashes[i]);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    slots[i] = index_.first(hashes[i]);
    if (slots[i] != kNoSlot) __builtin_prefetch(&held_[static_cast<size_t>(slots[i])], 1);
  }
  for (size_t i = 0; i < words.size(); ++i)
    if (slots[i] != kNoSlot) __builtin_prefetch(words_.at(held_[static_cast<size_t>(slots[i])].ref));
  for (size_t i = 0; i < words.size(); ++i) {
    slots[i] = usable(words[i]) ? find(hashes[i], words[i]) : kNoSlot;
    if (slots[i] == kNoSlot && sketch_) sketch_->prefetch(hashes[i]);
  }
}

Slot StreamVocabulary::find(uint64_t hash, std::string_view word) const {
  return index_.find(hash, [&](Slot slot) {
    const Held& held = held_[static_cast<size_t>(slot)];
    return held.hash == hash && (held.ref & 0xffff) == word.size() &&
           word_bytes::equal(words_.at(held.ref), word.data(), word.size());
  });
}

Slot StreamVocabulary::find(std::string_view word) const {
  return usable(word) ? find(hash_(word), word) : kNoSlot;
}

Slot StreamVocabulary::find_form(std::string_view word) {
  if (!options_.form_of || !usable(word)) return find(word);
  if (const Slot slot = find(word); slot != kNoSlot && !has_other_form(slot)) return slot;
  const std::optional<std::string_view> form = forms_.form(options_.form_of, word, hash_(word));
  return form ? find(*form) : kNoSlot;
}

void StreamVocabulary::count(Slot slot, int64_t times) {
  Held& counted = held(slot);
  const double weight = call_weight_ * static_cast<double>(times);
  counted.count += weight;
  counted.seen = std::max(counted.seen, call_time_);
  held_sum_ += weight;
  if (!options_.follows) return;
  int64_t& unreported = unreported_[static_cast<size_t>(slot)];
  if (unreported == 0) unreported_slots_.push_back(slot);
  unreported += times;
}

// A word that has no slot as it stands, or counts for another.
Slot StreamVocabulary::meet(std::string_view word, uint64_t hash) {
  if (!options_.form_of) return offer(word, hash);
  const std::optional<std::string_view> form = forms_.form(options_.form_of, word, hash);
  if (!form || !usable(*form)) return kNoSlot;
  if (*form == word) return offer(word, hash);
  const uint64_t form_hash = hash_(*form);
  const Slot slot = find(form_hash, *form);
  if (slot == kNoSlot) return offer(*form, form_hash);
  count(slot);
  return slot;
}

// Counts a word outside, and lets it in if it has earned it.
Slot StreamVocabulary::offer(std::string_view word, uint64_t hash, int64_t times) {
  if (options_.follows) return wait_for_report(word);
  if (plain()) return offer_plainly(word, hash, times);
  const double estimate = sketch_->add(hash, static_cast<float>(call_weight_ * static_cast<double>(times)));
  if (estimate < (static_cast<double>(options_.min_count) - 0.5) * now_weight_) return kNoSlot;
  if (!full()) return room_for(word, kNoSlot) ? admit(append(word, hash, estimate)) : kNoSlot;
  if (options_.vocab_max <= 0) return kNoSlot;
  const Slot leaver = next_leaver();
  if (estimate <= held(leaver).count || !room_for(word, leaver)) return kNoSlot;
  evict(leaver);
  occupy(leaver, word, hash, estimate);
  return admit(leaver);
}

Slot StreamVocabulary::offer_plainly(std::string_view word, uint64_t hash, int64_t times) {
  if (full()) {
    if (candidates_.types() > 0) candidates_ = WordCounter();
    return kNoSlot;
  }
  const int64_t counted = options_.min_count <= 1 ? times : candidates_.add(word, times);
  if (counted < options_.min_count) return kNoSlot;
  candidates_.forget(word);
  return admit(append(word, hash, static_cast<double>(counted)));
}

// Words of unusual length must not make the memory grow without bound.
bool StreamVocabulary::room_for(std::string_view word, Slot leaver) const {
  const size_t freed = leaver == kNoSlot ? 0 : WordArena::cost(held_[static_cast<size_t>(leaver)].ref & 0xffff);
  const size_t bound = std::max(kWordBytesMin, kWordBytesPerSlotMax * static_cast<size_t>(slots_max_));
  return words_.live_bytes() - freed + WordArena::cost(word.size()) <= bound;
}

Slot StreamVocabulary::append(std::string_view word, uint64_t hash, double count) {
  if (held_.size() == held_.capacity()) {
    const size_t most = static_cast<size_t>(slots_max_);
    const size_t slots = std::min(most, std::max<size_t>(1'024, 2 * held_.size()));
    held_.reserve(slots);
    index_.reserve(static_cast<int64_t>(slots));
    words_.reserve(kWordRoomPerSlot * slots);
  }
  const Slot slot = size();
  held_.emplace_back();
  occupy(slot, word, hash, count);
  return slot;
}

void StreamVocabulary::occupy(Slot slot, std::string_view word, uint64_t hash, double count) {
  const WordArena::Ref ref =
      words_.store(slot, word, [this](Slot owner, WordArena::Ref moved) { held(owner).ref = moved; });
  held(slot) = {count, call_time_, ref, hash};
  index_.insert(hash, slot);
  held_sum_ += count;
  if (!options_.form_of) return;
  const std::optional<std::string> form = settled_form(options_.form_of, word);
  has_other_form_.resize(held_.size());
  has_other_form_[static_cast<size_t>(slot)] = form && *form != word;
}

// The slot's new word begins here: text before this position is not its own.
Slot StreamVocabulary::admit(Slot slot) {
  const bool listed = births_->has(slot) && born(slot) > call_stamp_;
  births_->add(slot);
  call_admitted_at_.push_back(call_position_);
  if (!listed) call_admitted_->push_back(slot);
  ++statistics_.admitted;
  if (options_.characters_of) meet_characters(slot);
  return slot;
}

void StreamVocabulary::evict(Slot slot) {
  const Held& leaver = held(slot);
  sketch_->raise(leaver.hash, static_cast<float>(leaver.count));
  index_.erase(leaver.hash, slot);
  words_.release(leaver.ref);
  held_sum_ -= leaver.count;
  ++leavers_gone_;
  ++statistics_.evicted;
}

// The least word that was not seen since it was singled out: its count is the same.
Slot StreamVocabulary::next_leaver() {
  for (;; choose_leavers())
    for (; leavers_gone_ < leavers_.size(); ++leavers_gone_)
      if (const Leaver& leaver = leavers_[leavers_gone_]; held(leaver.slot).count == leaver.count) return leaver.slot;
}

void StreamVocabulary::choose_leavers() {
  const auto before = [](const Leaver& a, const Leaver& b) {
    if (a.count != b.count) return a.count < b.count;
    return a.seen != b.seen ? a.seen < b.seen : a.slot < b.slot;
  };
  std::vector<Leaver> all(held_.size());
  for (size_t slot = 0; slot < all.size(); ++slot)
    all[slot] = {held_[slot].count, held_[slot].seen, static_cast<Slot>(slot)};
  const size_t chosen = std::min(all.size(), std::max(kLeaversMin, all.size() / kLeaversShare));
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(chosen);
  if (end != all.end()) std::nth_element(all.begin(), end, all.end(), before);
  std::sort(all.begin(), end, before);
  leavers_.assign(all.begin(), end);
  leavers_gone_ = 0;
}

// Few slots change hands in a call: a small table of their lowest bits keeps the births of the others from being read.
void StreamVocabulary::forget_text_of_leavers(std::span<Slot> slots) const {
  std::array<bool, 4'096> changed{};
  const auto place = [&](Slot slot) { return static_cast<size_t>(slot) % changed.size(); };
  for (const Slot slot : *call_admitted_) changed[place(slot)] = true;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot || !changed[place(slots[i])] || born(slots[i]) <= call_stamp_) continue;
    if (i < call_admitted_at_[born(slots[i]) - call_stamp_ - 1]) slots[i] = kNoSlot;
  }
}

std::vector<double> StreamVocabulary::weights() const {
  std::vector<double> all(held_.size());
  for (size_t slot = 0; slot < all.size(); ++slot) all[slot] = held_[slot].count / now_weight_;
  return all;
}

double StreamVocabulary::share_change(std::span<const double> counts, double sum) const {
  STREAMVEC_CHECK(counts.size() <= held_.size());
  const double part = 1 / held_sum_, part_before = 1 / sum;
  // Several sums side by side: one alone waits for each addition to end.
  constexpr size_t kSums = 4;
  std::array<double, kSums> apart{};
  size_t i = 0;
  for (; i + kSums <= counts.size(); i += kSums)
    for (size_t k = 0; k < kSums; ++k) apart[k] += std::abs(held_[i + k].count * part - counts[i + k] * part_before);
  for (; i < counts.size(); ++i) apart[0] += std::abs(held_[i].count * part - counts[i] * part_before);
  for (; i < held_.size(); ++i) apart[1] += held_[i].count * part;
  return (apart[0] + apart[1] + apart[2] + apart[3]) / 2;
}

Vocabulary StreamVocabulary::to_vocabulary() const {
  Vocabulary vocabulary;
  vocabulary.reserve(size(), static_cast<int64_t>(words_.live_bytes()));
  for (Slot slot = 0; slot < size(); ++slot) vocabulary.add(word(slot), std::llround(weight(slot)));
  std::vector<Vocabulary::Alias> aliases;
  forms_.for_each([&](std::string_view spelling, const std::optional<std::string_view>& form) {
    const Slot slot = form ? vocabulary.find(*form) : kNoSlot;
    if (slot != kNoSlot && vocabulary.find(spelling) == kNoSlot) aliases.push_back({spelling, slot});
  });
  for (Slot slot = 0; slot < size(); ++slot) {
    if (!has_other_form(slot)) continue;
    const Slot other = vocabulary.find(settled_form(options_.form_of, word(slot)).value());
    if (other != kNoSlot) aliases.push_back({word(slot), other});
  }
  std::sort(aliases.begin(), aliases.end(), [](const Vocabulary::Alias& a, const Vocabulary::Alias& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.spelling < b.spelling;
  });
  for (const Vocabulary::Alias& alias : aliases) vocabulary.add_alias(alias.spelling, alias.slot);
  return vocabulary;
}

int64_t StreamVocabulary::memory_bytes() const {
  return static_cast<int64_t>(sizeof *this + held_.capacity() * sizeof(Held) + leavers_.capacity() * sizeof(Leaver) +
                              call_admitted_at_.capacity() * sizeof(size_t) + has_other_form_.capacity() / 8) +
         index_.memory_bytes() + words_.memory_bytes() + births_->memory_bytes() + candidates_.memory_bytes() +
         forms_.memory_bytes() + (sketch_ ? sketch_->memory_bytes() : 0);
}

}  // namespace streamvec
