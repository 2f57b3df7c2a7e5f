#include "apps/streamvec/demo_report.h"

#include <algorithm>

#include "streamvec/eval/analogy.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/source/newsroom/site.h"

namespace streamvec::cli {
namespace {

using newsroom::Truth;
using Words = std::vector<std::string>;

constexpr size_t kWordsShown = 2;         // of each class
constexpr size_t kCoinedShown = 4;        // of all coined words
constexpr size_t kMovedPerChange = 3;     // moved words looked at for each one planted
constexpr int32_t kNeighbours = 5;        // of each word
constexpr int64_t kTokensAsked = 10'000;  // the scale of the share of boilerplate

// Nothing when the word is not known.
Words nearest_words(const NeighbourIndex& index, const std::string& word) {
  const Result<std::vector<Neighbour>> found = index.nearest(word, kNeighbours);
  Words words;
  if (found.ok())
    for (const Neighbour& neighbour : *found) words.emplace_back(index.vocabulary().word(neighbour.slot));
  return words;
}

int64_t count_members(const Truth& truth, const Words& words, const std::string& word_class, bool after) {
  return std::count_if(words.begin(), words.end(),
                       [&](const std::string& word) { return truth.is_member(word, word_class, after); });
}

// "tiger: wolf bear !car", strangers marked.
std::string listed(const Truth& truth, const Words& words, const std::string& word_class, bool after) {
  std::string text;
  for (const std::string& word : words) text += (truth.is_member(word, word_class, after) ? " " : " !") + word;
  return text;
}

Finding look_at_classes(const NeighbourIndex& index, const Truth& truth, std::string& text) {
  Finding finding{"neighbours", "neighbours are of the word's class"};
  if (!truth.classes.empty()) text += "Nearest words of some words of each class (! marks strangers)\n";
  for (const PlantedTruth::WordClass& planted : truth.classes) {
    text += "  " + planted.name + "\n";
    for (size_t i = 0; i < std::min(kWordsShown, planted.words.size()); ++i) {
      const Words found = nearest_words(index, planted.words[i]);
      text += "    " + planted.words[i] + ":" + listed(truth, found, planted.name, true) + "\n";
      finding.right += count_members(truth, found, planted.name, true);
      finding.asked += kNeighbours;
    }
  }
  return finding;
}

AnalogySet questions_of(const Truth& truth) {
  AnalogySet set{.name = "planted", .sections = {}};
  for (const PlantedTruth::Relation& relation : truth.relations) {
    AnalogySet::Section section{.name = relation.name, .questions = {}};
    for (const auto& [a, b] : relation.pairs)
      for (const auto& [c, d] : relation.pairs)
        if (a != c) section.questions.push_back({a, b, c, d});
    set.sections.push_back(std::move(section));
  }
  return set;
}

Result<Finding> ask_analogies(const Snapshot& snapshot, const Truth& truth, std::string& text) {
  Finding finding{"analogies", "analogies are right"};
  if (truth.relations.empty()) return finding;
  STREAMVEC_ASSIGN_OR_RETURN(const AnalogyResult result, measure_analogy(snapshot, questions_of(truth)));
  text += "Analogies\n";
  for (size_t i = 0; i < result.sections.size(); ++i) {
    const AnalogyScore& section = result.sections[i];
    const auto& pairs = truth.relations[i].pairs;
    text += "  " + section.name + " (" + pairs[0].first + " : " + pairs[0].second + " = " + pairs[1].first +
            " : ?): " + std::to_string(section.cos_add_correct) + " of " + std::to_string(section.questions) +
            " right\n";
  }
  finding.right = result.total.cos_add_correct;
  finding.asked = result.total.questions;
  return finding;
}

bool most(int64_t count, size_t of) {
  return 2 * count > static_cast<int64_t>(of);
}

Finding look_at_changes(const DriftReport& drift, const Truth& truth, std::string& text) {
  Finding finding{"changes", "changes of meaning are found"};
  finding.asked = static_cast<int64_t>(truth.changes.size());
  if (truth.changes.empty()) return finding;
  text += "Words that changed their meaning most (* marks those that were planted)\n";
  for (size_t i = 0; i < std::min(drift.moved.size(), kMovedPerChange * truth.changes.size()); ++i) {
    const WordDrift& moved = drift.moved[i];
    const auto planted = std::find_if(truth.changes.begin(), truth.changes.end(),
                                      [&](const Truth::Change& change) { return change.word == moved.word; });
    const bool known = planted != truth.changes.end();
    const auto shown = [](Words words) {
      words.resize(std::min<size_t>(words.size(), kNeighbours));
      std::string names;
      for (const std::string& word : words) names += " " + word;
      return names;
    };
    text += std::string(known ? "  * " : "    ") + moved.word + ": from" + shown(moved.neighbours_old) + " to" +
            shown(moved.neighbours_new) + "\n";
    if (!known) continue;
    const Words &then = moved.neighbours_old, &now = moved.neighbours_new;
    finding.right += most(count_members(truth, then, planted->class_before, false), then.size()) &&
                     most(count_members(truth, now, planted->class_after, true), now.size());
  }
  return finding;
}

Finding look_at_coined(const NeighbourIndex& index, const Truth& truth, std::string& text) {
  Finding finding{"coined", "neighbours of coined words are of their class"};
  std::vector<const Truth::Coined*> used;
  for (const Truth::Coined& coined : truth.coined)
    if (coined.used) used.push_back(&coined);
  if (!used.empty()) text += "Some new words, and how often they were met\n";
  const size_t step = std::max<size_t>(1, used.size() / kCoinedShown);
  for (size_t i = 0; i < used.size(); ++i) {
    const Slot slot = index.vocabulary().find(used[i]->word);
    const Words found = nearest_words(index, used[i]->word);
    finding.right += count_members(truth, found, used[i]->word_class, true);
    finding.asked += kNeighbours;
    if (i % step != 0) continue;
    text += "  " + used[i]->word + " (" + std::to_string(slot == kNoSlot ? 0 : index.vocabulary().count(slot)) +
            "):" + listed(truth, found, used[i]->word_class, true) + "\n";
  }
  return finding;
}

Finding look_for_traps(const Vocabulary& vocabulary) {
  const bool fell = vocabulary.find(newsroom::kTrapWord) != kNoSlot;
  return {"robots", "words of forbidden pages were left alone", fell ? 0 : 1, 1, 1};
}

Finding look_for_boilerplate(const Vocabulary& vocabulary) {
  int64_t count = 0;
  for (const std::string& word : newsroom::boilerplate_words())
    if (const Slot slot = vocabulary.find(word); slot != kNoSlot) count += vocabulary.count(slot);
  const int64_t tokens = std::max<int64_t>(1, vocabulary.tokens());
  const auto share = static_cast<double>(count) / static_cast<double>(tokens);
  return {"boilerplate", "words read are no boilerplate",
          kTokensAsked - static_cast<int64_t>(share * static_cast<double>(kTokensAsked)), kTokensAsked, 0.95};
}

}  // namespace

bool DemoReport::found() const {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.found(); });
}

Json DemoReport::json() const {
  Json json = {{"found", found()}};
  for (const Finding& finding : findings)
    if (finding.asked > 0) json[finding.name] = {{"right", finding.right}, {"asked", finding.asked}};
  return json;
}

Result<DemoReport> report_on_demo(const Snapshot& snapshot, const DriftReport& drift, const Truth& truth) {
  STREAMVEC_ASSIGN_OR_RETURN(const NeighbourIndex index, NeighbourIndex::make(snapshot));
  DemoReport report;
  report.findings.push_back(look_at_classes(index, truth, report.text));
  STREAMVEC_ASSIGN_OR_RETURN(Finding analogies, ask_analogies(snapshot, truth, report.text));
  report.findings.push_back(std::move(analogies));
  report.findings.push_back(look_at_changes(drift, truth, report.text));
  report.findings.push_back(look_at_coined(index, truth, report.text));
  report.findings.push_back(look_for_traps(snapshot.vocabulary));
  report.findings.push_back(look_for_boilerplate(snapshot.vocabulary));
  for (const Finding& finding : report.findings)
    if (finding.asked > 0)
      report.text += std::to_string(finding.right) + " of " + std::to_string(finding.asked) + " " + finding.claim +
                     (finding.found() ? "\n" : ": TOO FEW\n");
  report.text += report.found() ? "The planted truth was found.\n" : "The planted truth was NOT found.\n";
  return report;
}

}  // namespace streamvec::cli
