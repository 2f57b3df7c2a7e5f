// The vocabulary of a stream without end: words are admitted when they have become frequent, fade as the stream moves
// on, and leave when another word has earned the slot. Memory does not grow with the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/forward_decay.h"
#include "streamvec/core/status.h"
#include "streamvec/vocab/admission_sketch.h"
#include "streamvec/vocab/births.h"
#include "streamvec/vocab/character_list.h"
#include "streamvec/vocab/counter.h"
#include "streamvec/vocab/form.h"
#include "streamvec/vocab/form_cache.h"
#include "streamvec/vocab/huge_pages.h"
#include "streamvec/vocab/shared_vocabulary_message.h"
#include "streamvec/vocab/slot_index.h"
#include "streamvec/vocab/vocabulary.h"
#include "streamvec/vocab/word_arena.h"
#include "streamvec/vocab/word_hash.h"

namespace streamvec {

// Words outside are counted in a sketch of fixed size. A word is admitted when its decayed count, rounded, reaches
// min_count; while there are vocab_max words, it must also exceed the decayed count of the word that leaves for it,
// else it waits in the sketch. The one that leaves is the least by decayed count, of equals the one not seen for
// longest: from time to time the least sixteenth is singled out and leaves in that order; a word seen since then has a
// second chance, and one admitted since then is spared, until the next time. A sweep over all slots per V/16 words that
// leave: O(1) each, amortised. A word that left is in the sketch with all its count, and starts anew if it returns.
//
// Slots are dense and never stand empty once filled. That a slot has changed hands is seen by its birth: the vocabulary
// counts admissions, stamp() is the count, born(slot) the count at which the slot's present word was admitted. Text is
// mapped to slots together with stamp() after the call; later on, a token of it means the same word still if and only
// if born(slot) <= the text's stamp. (The check of (slot, generation) pairs, for 4 bytes a token and 8 a chunk.)
//
// Without vocab_max and half_life this is plain counting: candidates are counted exactly instead (memory grows with the
// words of the text, as word2vec's does), so that after any text the words and counts are those of a counting pass with
// the same min_count, and no slot ever changes hands. What one pass cannot give: a word's first min_count - 1
// occurrences are not trained on, slots go by admission instead of by count, and while text arrives the sampling
// tables know the counts so far, not the final ones.
//
// Everything is under the caller's lock, except born() and stamp(), which any thread may call at any time. One text and
// one seed give one result. Movable; born() and stamp() must not be in use meanwhile.
class StreamVocabulary {
 public:
  struct Options {
    int64_t min_count = 3;
    int64_t vocab_max = 0;                      // slots; 0: no limit, nobody leaves
    double half_life = ForwardDecay::kForever;  // in the unit of map()'s t; smaller: follows the stream faster
    bool half_life_seconds = false;             // that unit: the documents' time; else tokens
    FormOf form_of = {};                        // stop words, stems; empty: every word as it is
    // Appends the characters of a word that are to be kept (characters()), at most so many; empty: none are.
    std::function<void(std::string_view word, std::u32string& to)> characters_of = {};
    int64_t characters_max = 0;
    uint64_t seed = 1;                     // of all hashing; should be unknown to whoever writes the text
    int64_t sketch_bytes = 0;              // 0: 64 a slot of vocab_max, at least 1 MB (16 MB without vocab_max)
    int64_t slots_max = int64_t{1} << 31;  // without vocab_max: nobody is admitted past so many words
    bool follows = false;                  // who has a slot is decided elsewhere (follow()); map() admits nobody
  };
  struct Statistics {      // since the stream began, restarts included
    int64_t tokens = 0;    // words given to map()
    int64_t outside = 0;   // those of them that had no slot
    int64_t admitted = 0;  // words that got a slot
    int64_t evicted = 0;   // words that lost theirs
  };

  // kResourceExhausted when there is no memory for what is taken at once and by the first save(): to be asked before
  // one is made.
  static Status check_memory(const Options& options);
  explicit StreamVocabulary(Options options);
  // Goes on from words counted elsewhere, in the same slots, born at 0; the counts are as of time t. All of them stay,
  // even when they are more than vocab_max: the limit is then their number.
  static StreamVocabulary from(Options options, const Vocabulary& vocabulary, double t);

  // What looks words up for a vocabulary that several nodes share (shared_vocabulary.h): the same words in the same
  // slots, born as they are there. From then on map() counts for take_report(), and follow() says what has changed.
  static StreamVocabulary follower(Options options, const StreamVocabulary& shared);
  // The other way round, where whoever had the vocabulary is gone: as far as a follower knows it, words in their slots,
  // births and counts. Changes are numbered on past any number that another can have heard of; words outside are
  // counted anew. REQUIRES: as the constructor, of the follower's options without `follows`.
  static StreamVocabulary successor(const StreamVocabulary& follower);
  // What one lacks that has heard of the changes up to there, without counts; of none, all words, those too that were
  // there before the first. REQUIRES: stamp <= stamp().
  VocabularyChanges changes_since(uint64_t stamp) const;
  // Characters as they were met, the same on all nodes that have heard of the same changes. begin_characters(): those
  // that all know from before the first.
  void begin_characters(std::span<const char32_t> known);
  std::span<const MetCharacter> characters() const { return characters_.all(); }
  std::vector<MetCharacter> characters_since(uint64_t stamp) const;
  // What map() has counted since the last report. Of the words outside at most kWaitingMax types wait for a report:
  // occurrences of further ones are not counted. REQUIRES for these three: options().follows.
  static constexpr int64_t kWaitingMax = 1 << 16;
  VocabularyReport take_report();
  int64_t unreported() const { return unreported_tokens_; }           // words given to map() since then ...
  int64_t unreported_outside() const { return unreported_outside_; }  // ... that had no slot
  // Takes over what has changed; `admitted` gets the slots whose row must start anew. Changes that are known already
  // change nothing. kDataLoss when some before these were missed, or they cannot be.
  Status follow(const VocabularyChanges& changes, std::vector<Slot>& admitted);
  // Adds to the counts, by slot: of a follower that was told all counts, what it has reported and they have not in them
  // yet. What it has not reported it adds by itself.
  void add(std::span<const int64_t> times);
  // Counts what another node's map() has counted, at time t, and admits, as map() does. Occurrences in slots that have
  // changed hands since the node looked them up are left out.
  void count(const VocabularyReport& report, double t, std::vector<Slot>& admitted);

  // Counts every word as an occurrence at time t, admits, and gives each word's slot, kNoSlot for those outside.
  // `admitted` gets the slots, each once, whose row must start anew. A slot that changes hands within the call is
  // kNoSlot for its earlier word, so that everything in `slots` is valid at stamp(). Empty words and words longer than
  // kWordBytesMax are outside. REQUIRES: slots.size() == words.size(), t finite; t should not fall.
  static constexpr size_t kWordBytesMax = WordArena::kWordBytesMax;
  void map(std::span<const std::string_view> words, double t, std::span<Slot> slots, std::vector<Slot>& admitted);

  // Thread-safe, lock-free. REQUIRES for born(): 0 <= slot < size() when the slot was heard of.
  uint64_t stamp() const { return births_->count(); }
  uint64_t born(Slot slot) const { return births_->born(slot); }
  bool valid(Slot slot, uint64_t stamp) const { return born(slot) <= stamp; }

  int32_t size() const { return static_cast<int32_t>(held_.size()); }
  Slot find(std::string_view word) const;  // kNoSlot when it is outside; its form is not sought
  Slot find_form(std::string_view word);   // that of its form, as map() would give it
  std::string_view word(Slot slot) const { return words_.bytes(held_[static_cast<size_t>(slot)].ref); }
  double weight(Slot slot) const { return held_[static_cast<size_t>(slot)].count / now_weight_; }
  double last_seen(Slot slot) const { return held_[static_cast<size_t>(slot)].seen; }
  // Decayed counts by slot, an occurrence now counting 1: for samplers.
  std::vector<double> weights() const;
  double weights_sum() const { return held_sum_ / now_weight_; }
  // How far the words' shares are from what they were with these counts, by slot: total variation, half the sum of the
  // absolute differences. One pass, nothing is copied. REQUIRES: sum is that of the counts, and greater than 0; no more
  // counts than slots.
  double share_change(std::span<const double> counts, double sum) const;
  // What an occurrence at t counts now: 2^-((now() - t) / half_life). REQUIRES: t <= now().
  double weight_of_age(double t) const { return decay_.weight(t) / now_weight_; }
  double now() const { return now_; }  // the latest t
  const Statistics& statistics() const { return statistics_; }
  const Options& options() const { return options_; }

  // The words by slot with their decayed counts, rounded; the spellings met lately as aliases.
  Vocabulary to_vocabulary() const;
  int64_t memory_bytes()
      const;  // fixed once there are vocab_max words, but for long words (at most 4 x 96 bytes a slot)

  // The complete state as bytes: what goes on from restore() is equal to what would have gone on without, bit for bit.
  std::string save() const;
  // kDataLoss, with the offset, for bytes that are cut short, damaged or impossible; kFailedPrecondition when `options`
  // has another half-life or unit of it, turns plain counting on or off, or has no room for the words. min_count,
  // vocab_max and form_of may differ; seed and sketch size are the saved ones. Earlier versions did not save the unit:
  // it is the one given. Memory grows only with bytes that were really given.
  static Result<StreamVocabulary> restore(Options options, std::string_view bytes);

 private:
  struct Held {    // a slot: half a cache line
    double count;  // decayed, relative to the landmark
    double seen;
    WordArena::Ref ref;
    uint64_t hash;
  };
  struct Leaver {
    double count, seen;
    Slot slot;
  };
  class State;                          // saving and restoring
  static constexpr size_t kAhead = 64;  // words looked up at a time
  static constexpr uint64_t kHashSeed = 1, kSketchSeed = 2;

  bool plain() const { return sketch_ == std::nullopt; }
  bool full() const { return static_cast<int64_t>(held_.size()) >= slots_max_; }
  Held& held(Slot slot) { return held_[static_cast<size_t>(slot)]; }
  Slot find(uint64_t hash, std::string_view word) const;
  bool has_other_form(Slot slot) const { return options_.form_of && has_other_form_[static_cast<size_t>(slot)]; }
  void go_to(double t);
  void look_up(std::span<const std::string_view> words, std::span<uint64_t> hashes, std::span<Slot> slots) const;
  void map_some(std::span<const std::string_view> words, size_t begin, std::span<Slot> slots);
  Slot meet(std::string_view word, uint64_t hash);
  Slot offer(std::string_view word, uint64_t hash, int64_t times = 1);
  Slot offer_plainly(std::string_view word, uint64_t hash, int64_t times);
  Slot wait_for_report(std::string_view word);
  void copy_words(const StreamVocabulary& other);
  void begin_call(std::vector<Slot>& admitted);
  void count(Slot slot, int64_t times = 1);
  bool room_for(std::string_view word, Slot leaver) const;
  Slot append(std::string_view word, uint64_t hash, double count);
  void occupy(Slot slot, std::string_view word, uint64_t hash, double count);
  Slot admit(Slot slot);
  void meet_characters(Slot slot);
  void evict(Slot slot);
  Slot next_leaver();
  void choose_leavers();
  void forget_text_of_leavers(std::span<Slot> slots) const;

  Options options_;
  int64_t slots_max_;
  ForwardDecay decay_;
  WordHash hash_;
  double now_ = 0, now_weight_ = 1;
  SlotIndex index_;
  std::vector<Held, HugePageAllocator<Held>> held_;  // by slot
  WordArena words_;
  std::vector<bool> has_other_form_;  // with form_of, by slot: met in the text, its word counts for another
  double held_sum_ = 0;
  std::unique_ptr<Births> births_;
  CharacterList characters_;
  std::optional<AdmissionSketch> sketch_;  // none: plain counting
  WordCounter candidates_;                 // of plain counting; of a follower: words outside since the last report
  std::vector<int64_t> unreported_;        // of a follower, by slot
  std::vector<Slot> unreported_slots_;     // those that are not 0, in any order
  int64_t unreported_tokens_ = 0, unreported_outside_ = 0, reports_ = 0;
  std::vector<Leaver> leavers_;  // singled out to leave, in this order
  size_t leavers_gone_ = 0;
  FormCache forms_;
  Statistics statistics_;
  // Of the call of map() under way.
  double call_weight_ = 1, call_time_ = 0;
  uint64_t call_stamp_ = 0;               // before it
  size_t call_position_ = 0;              // the word being met
  std::vector<size_t> call_admitted_at_;  // position of each admission, by born - call_stamp_ - 1
  std::vector<Slot>* call_admitted_ = nullptr;
};

}  // namespace streamvec
