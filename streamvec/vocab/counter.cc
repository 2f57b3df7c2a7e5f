#include "streamvec/vocab/counter.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace streamvec {
namespace {

// What a vocabulary may gain: a word and how often it occurred.
struct Candidate {
  std::string_view word;
  int64_t count;
};

int64_t room(const Vocabulary& vocabulary, const VocabularyLimits& limits) {
  const int64_t most = limits.vocab_max > 0 ? limits.vocab_max : std::numeric_limits<Slot>::max();
  return std::max<int64_t>(0, most - vocabulary.size());
}

// Appends the most frequent candidates. Only as many as there is room for are sorted.
void add_frequent(std::vector<Candidate> candidates, const VocabularyLimits& limits, Vocabulary& vocabulary) {
  const int64_t min_count = std::max<int64_t>(1, limits.min_count);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.count < min_count; });
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.count != b.count ? a.count > b.count : a.word < b.word;
  };
  const auto kept = std::min(static_cast<int64_t>(candidates.size()), room(vocabulary, limits));
  std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(), before);
  candidates.resize(static_cast<size_t>(kept));
  int64_t bytes = 0;
  for (const Candidate& candidate : candidates) bytes += static_cast<int64_t>(candidate.word.size());
  vocabulary.reserve(kept, bytes);
  for (const Candidate& candidate : candidates) vocabulary.add(candidate.word, candidate.count);
}

// Types gathered by their form. A type keeps the number of its form, kDropped, or kKnown when the vocabulary has it.
class Forms {
 public:
  static constexpr int32_t kDropped = -1, kKnown = -2;

  explicit Forms(int64_t types) { form_of_type_.reserve(static_cast<size_t>(types)); }

  void add_known() { form_of_type_.push_back(kKnown); }
  void add(const std::optional<std::string>& form) {
    const bool usable = form && form->size() <= WordTable::kWordBytesMax;
    form_of_type_.push_back(usable ? number(*form) : kDropped);
  }
  int32_t form(size_t type) const { return form_of_type_[type]; }  // the form it counts for
  std::string_view word(size_t form) const { return table_.bytes(refs_[form]); }
  size_t size() const { return refs_.size(); }

 private:
  int32_t number(std::string_view form) {
    const int32_t there = table_.find(form);
    if (there >= 0) return there;
    const auto next = static_cast<int32_t>(refs_.size());
    refs_.push_back(table_.insert(form, next));
    return next;
  }
  WordTable table_;
  std::vector<WordTable::Ref> refs_;
  std::vector<int32_t> form_of_type_;
};

// In an order that does not depend on who counted what first.
void add_aliases(std::vector<Vocabulary::Alias> aliases, Vocabulary& vocabulary) {
  std::sort(aliases.begin(), aliases.end(), [](const Vocabulary::Alias& a, const Vocabulary::Alias& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.spelling < b.spelling;
  });
  for (const Vocabulary::Alias& alias : aliases) vocabulary.add_alias(alias.spelling, alias.slot);
}

}  // namespace

WordCounter::WordCounter(int64_t types_max) : types_max_(types_max) {
  STREAMVEC_CHECK(types_max >= 0);
}

int64_t WordCounter::types_max_for(int64_t vocab_max) {
  return vocab_max <= 0 ? 0 : std::max<int64_t>(int64_t{1} << 18, 8 * std::min<int64_t>(vocab_max, int64_t{1} << 27));
}

void WordCounter::add(std::span<const std::string_view> words) {
  found_.resize(words.size());
  table_.find(words, found_);
  const int64_t prunes_before = prunes_;
  for (size_t i = 0; i < words.size(); ++i) {
    // What was looked up holds until types leave, which renumbers those that stay.
    if (found_[i] >= 0 && prunes_ == prunes_before) {
      ++counts_[static_cast<size_t>(found_[i])];
      ++tokens_;
    } else {
      add(words[i]);
    }
  }
}

int64_t WordCounter::add(std::string_view word, int64_t times) {
  STREAMVEC_CHECK(times >= 0);
  if (word.empty() || word.size() > WordTable::kWordBytesMax) return 0;
  tokens_ += times;
  if (const int32_t type = table_.find(word); type >= 0) return counts_[static_cast<size_t>(type)] += times;
  append(word, times, error_max_);
  if (types_max_ > 0 && types() > types_max_) prune();
  return times;
}

void WordCounter::forget(std::string_view word) {
  const int32_t type = table_.find(word);
  if (type < 0) return;
  tokens_ -= counts_[static_cast<size_t>(type)];
  counts_[static_cast<size_t>(type)] = 0;
  missed_[static_cast<size_t>(type)] = 0;
}

void WordCounter::append(std::string_view word, int64_t times, int64_t missed) {
  STREAMVEC_CHECK(counts_.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()));
  refs_.push_back(table_.insert(word, static_cast<int32_t>(counts_.size())));
  counts_.push_back(times);
  missed_.push_back(missed);
}

// Every type whose count cannot exceed the median of all upper bounds leaves. In Misra and Gries' words: that much is
// taken off each counter, and at least types_max / 2 counters pay it in full, hence the bound on count_error_max().
void WordCounter::prune() {
  std::vector<int64_t> bounds(counts_.size());
  for (size_t type = 0; type < bounds.size(); ++type) bounds[type] = upper(type);
  const auto median = bounds.begin() + types_max_ / 2;
  std::nth_element(bounds.begin(), median, bounds.end(), std::greater<>());
  const int64_t bound = std::max(*median, error_max_);  // the median is lower when most types were forgotten
  WordCounter kept(types_max_);
  for (size_t type = 0; type < counts_.size(); ++type)
    if (upper(type) > bound) kept.append(word(type), counts_[type], missed_[type]);
  kept.tokens_ = tokens_;
  kept.error_max_ = bound;
  kept.prunes_ = prunes_ + 1;
  kept.found_.swap(found_);
  *this = std::move(kept);
}

void WordCounter::merge(const WordCounter& other) {
  STREAMVEC_CHECK(this != &other);
  const int64_t error_here = error_max_;
  for (size_t type = 0; type < missed_.size(); ++type)
    if (other.error_max_ > 0 && other.table_.find(word(type)) < 0) missed_[type] += other.error_max_;
  for (size_t type = 0; type < other.counts_.size(); ++type) {
    const int32_t here = table_.find(other.word(type));
    if (here < 0) {
      append(other.word(type), other.counts_[type], other.missed_[type] + error_here);
    } else {
      counts_[static_cast<size_t>(here)] += other.counts_[type];
      missed_[static_cast<size_t>(here)] += other.missed_[type];
    }
  }
  tokens_ += other.tokens_;
  error_max_ += other.error_max_;
  if (types_max_ > 0 && types() > types_max_) prune();
}

int64_t WordCounter::count(std::string_view word) const {
  const int32_t type = table_.find(word);
  return type < 0 ? 0 : counts_[static_cast<size_t>(type)];
}

int64_t WordCounter::memory_bytes() const {
  return table_.memory_bytes() + static_cast<int64_t>(refs_.capacity() * sizeof(WordTable::Ref) +
                                                      (counts_.capacity() + missed_.capacity()) * sizeof(int64_t));
}

Vocabulary WordCounter::make_vocabulary(const VocabularyLimits& limits, const FormOf& form_of) const {
  Vocabulary vocabulary;
  extend(vocabulary, limits, form_of);
  return vocabulary;
}

void WordCounter::extend(Vocabulary& vocabulary, const VocabularyLimits& limits, const FormOf& form_of) const {
  if (form_of) return extend_by_form(vocabulary, limits, form_of);
  std::vector<Candidate> candidates;
  for (size_t type = 0; type < counts_.size(); ++type) {
    const Slot slot = vocabulary.find(word(type));
    if (slot != kNoSlot)
      vocabulary.add_count(slot, counts_[type]);
    else
      candidates.push_back({word(type), counts_[type]});
  }
  add_frequent(std::move(candidates), limits, vocabulary);
}

void WordCounter::extend_by_form(Vocabulary& vocabulary, const VocabularyLimits& limits, const FormOf& form_of) const {
  Forms forms(types());
  for (size_t type = 0; type < counts_.size(); ++type) {
    const Slot slot = vocabulary.find_token(word(type));
    const bool alias = slot != kNoSlot && vocabulary.word(slot) != word(type);
    const std::optional<std::string> form = alias ? std::nullopt : settled_form(form_of, word(type));
    if (slot != kNoSlot && (!form || *form == word(type))) {
      vocabulary.add_count(slot, counts_[type]);
      forms.add_known();
    } else {
      forms.add(form);
    }
  }
  std::vector<int64_t> totals(forms.size());
  for (size_t type = 0; type < counts_.size(); ++type)
    if (const int32_t form = forms.form(type); form >= 0) totals[static_cast<size_t>(form)] += counts_[type];
  std::vector<Candidate> candidates;
  for (size_t form = 0; form < totals.size(); ++form) {
    const Slot slot = vocabulary.find(forms.word(form));
    if (slot != kNoSlot)
      vocabulary.add_count(slot, totals[form]);
    else
      candidates.push_back({forms.word(form), totals[form]});
  }
  add_frequent(std::move(candidates), limits, vocabulary);
  std::vector<Vocabulary::Alias> aliases;
  for (size_t type = 0; type < counts_.size(); ++type) {
    if (forms.form(type) < 0) continue;
    const Slot slot = vocabulary.find(forms.word(static_cast<size_t>(forms.form(type))));
    if (slot != kNoSlot && vocabulary.find_token(word(type)) != slot) aliases.push_back({word(type), slot});
  }
  add_aliases(std::move(aliases), vocabulary);
}

}  // namespace streamvec
