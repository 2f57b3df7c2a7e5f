#include "streamvec/eval/analogy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "streamvec/eval/neighbours.h"
#include "streamvec/eval/set_file.h"

namespace streamvec {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Slot> most_frequent(const Vocabulary& vocabulary, int64_t limit) {
  std::vector<Slot> slots(static_cast<size_t>(vocabulary.size()));
  std::iota(slots.begin(), slots.end(), 0);
  std::stable_sort(slots.begin(), slots.end(),
                   [&](Slot a, Slot b) { return vocabulary.count(a) > vocabulary.count(b); });
  if (limit > 0 && limit < static_cast<int64_t>(slots.size())) slots.resize(static_cast<size_t>(limit));
  return slots;
}

// Questions whose words are all known, as rows of the words looked through, with the row that is right.
struct CoveredQuestions {
  std::vector<AnalogyQuestion> questions;
  std::vector<int32_t> answers;
};

class RowLookup {
 public:
  RowLookup(const Vocabulary& vocabulary, std::span<const Slot> slots)
      : vocabulary_(vocabulary), rows_(static_cast<size_t>(vocabulary.size()), -1) {
    for (size_t row = 0; row < slots.size(); ++row) rows_[static_cast<size_t>(slots[row])] = static_cast<int32_t>(row);
  }
  int32_t find(std::string_view word) const {
    const Slot slot = find_word(vocabulary_, word);
    return slot == kNoSlot ? -1 : rows_[static_cast<size_t>(slot)];
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<int32_t> rows_;
};

CoveredQuestions cover(const AnalogySet::Section& section, const RowLookup& lookup) {
  CoveredQuestions covered;
  for (const auto& words : section.questions) {
    int32_t rows[4];
    std::transform(words.begin(), words.end(), rows, [&](const std::string& word) { return lookup.find(word); });
    if (*std::min_element(rows, rows + 4) < 0) continue;
    covered.questions.push_back({rows[0], rows[1], rows[2]});
    covered.answers.push_back(rows[3]);
  }
  return covered;
}

Result<AnalogyScore> score_section(MatrixView<const float> rows, const AnalogySet::Section& section,
                                   const RowLookup& lookup, Products& products) {
  const CoveredQuestions covered = cover(section, lookup);
  std::vector<AnalogyAnswer> found(covered.questions.size());
  STREAMVEC_RETURN_IF_ERROR(products.best_analogies(rows, covered.questions, found));
  AnalogyScore score{section.name, static_cast<int64_t>(section.questions.size()),
                     static_cast<int64_t>(covered.questions.size()), 0, 0};
  for (size_t i = 0; i < found.size(); ++i) {
    score.cos_add_correct += found[i].cos_add == covered.answers[i];
    score.cos_mul_correct += found[i].cos_mul == covered.answers[i];
  }
  return score;
}

}  // namespace

double AnalogyScore::cos_add_accuracy() const {
  return ratio(cos_add_correct, covered);
}
double AnalogyScore::cos_mul_accuracy() const {
  return ratio(cos_mul_correct, covered);
}

Result<AnalogySet> read_analogy_set(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<SetLine> lines, read_set_file(path));
  AnalogySet set{set_name(path), {{}}};
  for (const SetLine& line : lines) {
    const std::vector<std::string>& fields = line.fields;
    if (fields.front().starts_with(':')) {
      std::string name = fields.front().substr(1);
      for (size_t i = 1; i < fields.size(); ++i) name += (name.empty() ? "" : " ") + fields[i];
      set.sections.push_back({std::move(name), {}});
      continue;
    }
    if (fields.size() != 4)
      return error(Code::kInvalidArgument, path, ":", line.number, ": ", fields.size(), " words, wanted 4: a b c d");
    set.sections.back().questions.push_back({fields[0], fields[1], fields[2], fields[3]});
  }
  std::erase_if(set.sections, [](const AnalogySet::Section& section) { return section.questions.empty(); });
  if (set.sections.empty()) return error(Code::kInvalidArgument, path, " holds no questions");
  return set;
}

Result<AnalogyResult> measure_analogy(const Snapshot& snapshot, const AnalogySet& set, const AnalogyOptions& options,
                                      Products& products) {
  const std::vector<Slot> slots = most_frequent(snapshot.vocabulary, options.vocab);
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix rows, unit_rows(snapshot.input.view(), slots));
  const RowLookup lookup(snapshot.vocabulary, slots);
  AnalogyResult result;
  result.total.name = set.name;
  for (const AnalogySet::Section& section : set.sections) {
    STREAMVEC_ASSIGN_OR_RETURN(const AnalogyScore score, score_section(rows.view(), section, lookup, products));
    result.sections.push_back(score);
    result.total.questions += score.questions;
    result.total.covered += score.covered;
    result.total.cos_add_correct += score.cos_add_correct;
    result.total.cos_mul_correct += score.cos_mul_correct;
  }
  return result;
}

}  // namespace streamvec
