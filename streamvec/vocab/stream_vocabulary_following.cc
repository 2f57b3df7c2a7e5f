// A StreamVocabulary that is part of one that several nodes share (shared_vocabulary.h).
#include <algorithm>
#include <utility>

#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {
namespace {

constexpr int64_t kReportWordsMax = 1 << 14;         // the rest waits for the next report
constexpr uint64_t kUnheardMax = uint64_t{1} << 32;  // changes that one had told somebody, or itself, and not this node

}  // namespace

StreamVocabulary StreamVocabulary::follower(Options options, const StreamVocabulary& shared) {
  options.follows = true;
  int64_t& most = options.vocab_max > 0 ? options.vocab_max : options.slots_max;
  most = std::max<int64_t>(most, shared.size());
  StreamVocabulary follower(std::move(options));
  follower.copy_words(shared);
  follower.unreported_.resize(follower.held_.size());
  follower.births_->set_count(shared.stamp());
  return follower;
}

StreamVocabulary StreamVocabulary::successor(const StreamVocabulary& follower) {
  Options options = follower.options_;
  options.follows = false;
  StreamVocabulary shared(std::move(options));
  shared.copy_words(follower);
  shared.births_->set_count(follower.stamp() + kUnheardMax);
  return shared;
}

// With births and counts, into an empty one.
void StreamVocabulary::copy_words(const StreamVocabulary& other) {
  go_to(other.now_);
  for (Slot slot = 0; slot < other.size(); ++slot) {
    const std::string_view word = other.word(slot);
    append(word, hash_(word), other.weight(slot) * now_weight_);
    births_->set(slot, other.born(slot));
  }
  statistics_ = other.statistics_;
  characters_ = other.characters_;
}

void StreamVocabulary::begin_characters(std::span<const char32_t> known) {
  for (const char32_t character : known) characters_.add(character, 0);
}

std::vector<MetCharacter> StreamVocabulary::characters_since(uint64_t stamp) const {
  const std::span<const MetCharacter> met = characters_.since(stamp);
  return {met.begin(), met.end()};
}

void StreamVocabulary::meet_characters(Slot slot) {
  std::u32string characters;
  options_.characters_of(word(slot), characters);
  for (const char32_t character : characters)
    if (std::ssize(characters_.all()) < options_.characters_max) characters_.add(character, born(slot));
}

VocabularyChanges StreamVocabulary::changes_since(uint64_t stamp) const {
  VocabularyChanges changes;
  changes.after = stamp;
  changes.stamp = this->stamp();
  changes.tokens = statistics_.tokens;
  changes.now = now_;
  for (Slot slot = 0; slot < size(); ++slot)
    if (born(slot) > stamp || stamp == 0)
      changes.changes.push_back({slot, born(slot), weight(slot), std::string(word(slot))});
  changes.characters = characters_since(stamp);
  return changes;
}

// A word outside: counted until the next report.
Slot StreamVocabulary::wait_for_report(std::string_view word) {
  if (candidates_.types() < kWaitingMax || candidates_.count(word) > 0) candidates_.add(word);
  return kNoSlot;
}

VocabularyReport StreamVocabulary::take_report() {
  VocabularyReport report;
  report.number = ++reports_;
  report.stamp = stamp();
  report.t = now_;
  report.tokens = std::exchange(unreported_tokens_, 0);
  report.outside = std::exchange(unreported_outside_, 0);
  std::sort(unreported_slots_.begin(), unreported_slots_.end());
  for (const Slot slot : std::exchange(unreported_slots_, {}))
    if (const int64_t times = std::exchange(unreported_[static_cast<size_t>(slot)], 0); times > 0)
      report.slots.emplace_back(slot, times);
  WordCounter rest;
  for (int64_t type = 0; type < candidates_.types(); ++type) {
    if (type < kReportWordsMax)
      report.words.emplace_back(candidates_.word_at(type), candidates_.count_at(type));
    else
      rest.add(candidates_.word_at(type), candidates_.count_at(type));
  }
  candidates_ = std::move(rest);
  return report;
}

Status StreamVocabulary::follow(const VocabularyChanges& changes, std::vector<Slot>& admitted) {
  admitted.clear();
  if (changes.stamp < stamp()) return {};
  if (changes.after > stamp())
    return error(Code::kDataLoss, "the shared vocabulary went from change ", changes.after, " to ", changes.stamp,
                 ", this node knows it up to ", stamp(), "; start the cluster again");
  go_to(changes.now);
  for (const VocabularyChanges::Change& change : changes.changes) {
    if (change.slot > size() || (change.slot == size() && full()))
      return error(Code::kDataLoss, "the shared vocabulary has a word in slot ", change.slot, ", this node has ",
                   size(), " of at most ", slots_max_, "; give all nodes the same --vocab-max");
    const uint64_t hash = hash_(change.word);
    if (change.slot == size()) {
      append(change.word, hash, change.count * now_weight_);
      unreported_.push_back(0);
    } else if (born(change.slot) < change.born) {
      // What was counted for the word that leaves is still its own.
      if (const int64_t times = std::exchange(unreported_[static_cast<size_t>(change.slot)], 0); times > 0)
        candidates_.add(word(change.slot), times);
      const Held& leaver = held(change.slot);
      index_.erase(leaver.hash, change.slot);
      words_.release(leaver.ref);
      held_sum_ -= leaver.count;
      occupy(change.slot, change.word, hash, change.count * now_weight_);
      ++statistics_.evicted;
    } else {
      continue;
    }
    births_->set(change.slot, change.born);
    ++statistics_.admitted;
    admitted.push_back(change.slot);
  }
  for (const MetCharacter& met : changes.characters)
    if (met.born > stamp() && !characters_.add(met.character, met.born))
      return error(Code::kDataLoss, "the shared vocabulary has met character ", static_cast<uint32_t>(met.character),
                   " twice; start the cluster again");
  births_->set_count(changes.stamp);
  statistics_.tokens = std::max(statistics_.tokens, changes.tokens);
  if (changes.counts.size() != held_.size()) return {};
  held_sum_ = 0;
  for (size_t slot = 0; slot < held_.size(); ++slot) {
    held_[slot].count = changes.counts[slot] * now_weight_;
    held_sum_ += held_[slot].count;
  }
  add(unreported_);
  return {};
}

void StreamVocabulary::add(std::span<const int64_t> times) {
  for (size_t slot = 0; slot < times.size(); ++slot) {
    const double more = static_cast<double>(times[slot]) * now_weight_;
    held_[slot].count += more;
    held_sum_ += more;
  }
}

void StreamVocabulary::count(const VocabularyReport& report, double t, std::vector<Slot>& admitted) {
  go_to(t);
  begin_call(admitted);
  for (const auto& [slot, times] : report.slots)
    if (slot < size() && valid(slot, report.stamp)) count(slot, times);
  for (const auto& [word, times] : report.words) {
    if (word.empty() || word.size() > kWordBytesMax || times <= 0) continue;
    const uint64_t hash = hash_(word);
    const Slot slot = find(hash, word);
    slot != kNoSlot ? count(slot, times) : static_cast<void>(offer(word, hash, times));
  }
  statistics_.tokens += report.tokens;
  statistics_.outside += report.outside;
  call_admitted_ = nullptr;
}

}  // namespace streamvec
