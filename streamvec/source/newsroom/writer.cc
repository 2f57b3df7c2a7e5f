#include "streamvec/source/newsroom/writer.h"

#include <algorithm>
#include <string_view>

#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/source/newsroom/coinage.h"
#include "streamvec/source/planted_sentences.h"

namespace streamvec::newsroom {
namespace {

using planted::Sentence;

constexpr float kChangedShare = 0.08F;                    // of the mentions of its class, for each word that changes
constexpr float kCoinedShare = 0.02F;                     // for all coined words of the class
constexpr float kKnownShare = 0.25F;                      // for all known compounds of the class
constexpr uint64_t kTitles = 1, kBodies = 2, kTraps = 3;  // streams of random numbers

struct ChangeWords {
  const char *word, *before, *after;
};
constexpr ChangeWords kChanges[] = {
    {"jaguar", "animals", "vehicles"}, {"bass", "animals", "instruments"}, {"polo", "sports", "clothes"}};

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

size_t class_index(const std::string& name) {
  const auto& classes = planted_truth().classes;
  const auto found =
      std::find_if(classes.begin(), classes.end(), [&](const auto& other) { return other.name == name; });
  STREAMVEC_CHECK(found != classes.end());
  return static_cast<size_t>(found - classes.begin());
}

Truth make_truth() {
  Truth truth{planted_truth().classes, planted_truth().relations, {}, {}};
  for (size_t i = 0; i < truth.classes.size(); ++i) {
    PlantedTruth::WordClass& word_class = truth.classes[i];
    const ClassCoinage& words = coinage()[i];
    word_class.words.insert(word_class.words.end(), words.known.begin(), words.known.end());
    for (const std::string& word : words.coined) truth.coined.push_back({word, word_class.name, true});
    for (const std::string& word : words.unseen) truth.coined.push_back({word, word_class.name, false});
  }
  for (const ChangeWords& change : kChanges) truth.changes.push_back({change.word, change.before, change.after});
  return truth;
}

// For each class, by index, the words that change and stand in it.
std::vector<planted::Words> changed_words(bool after) {
  std::vector<planted::Words> words(planted_truth().classes.size());
  for (const ChangeWords& change : kChanges)
    words[class_index(after ? change.after : change.before)].emplace_back(change.word);
  return words;
}

// Draws the words that stand for a class before or after the change.
std::string_view draw_member(bool after, size_t word_class, Random& random) {
  static const std::vector<planted::Words> changed[2] = {changed_words(false), changed_words(true)};
  const planted::Words& changing = changed[after][word_class];
  float at = random.uniform();
  const auto takes = [&at](float share) { return (at -= share) < 0; };
  if (takes(kChangedShare * static_cast<float>(changing.size()))) return planted::any(changing, random);
  if (after && takes(kCoinedShare)) return planted::any(coinage()[word_class].coined, random);
  if (takes(kKnownShare)) return planted::any(coinage()[word_class].known, random);
  return planted::usual_member(word_class, random);
}

std::string capitalised(std::string_view word) {
  std::string text(word);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// As people write it: a capital first, some commas, dashes and quotation marks.
std::string written(const Sentence& sentence, Random& random) {
  const bool quoted = random.below(10) == 0;
  std::string text = quoted ? "“" : "";
  for (size_t i = 0; i < sentence.size(); ++i) {
    text += i == 0 ? capitalised(sentence[i]) : std::string(sentence[i]);
    if (i + 1 == sentence.size()) break;
    const uint32_t mark = random.below(30);
    text += mark == 0 ? " — " : mark < 3 ? ", " : " ";
  }
  text += random.below(15) == 0 ? "!" : ".";
  return quoted ? text + "”" : text;
}

// `mark` is put in front of the sentence's words when there is one.
std::string written_paragraph(const planted::Member& member, std::string_view mark, Random& random) {
  std::string text;
  Sentence sentence;
  for (uint32_t count = 4 + random.below(4); count > 0; --count) {
    planted::make_sentence(random, member, sentence);
    if (!mark.empty()) sentence.insert(sentence.begin(), mark);
    text += (text.empty() ? "" : " ") + written(sentence, random);
  }
  return text;
}

std::vector<std::string> written_paragraphs(bool after, std::string_view mark, Random& random) {
  const planted::Member member = [after](size_t word_class, Random& draws) {
    return draw_member(after, word_class, draws);
  };
  std::vector<std::string> paragraphs(4 + random.below(4));
  for (std::string& paragraph : paragraphs) paragraph = written_paragraph(member, mark, random);
  return paragraphs;
}

}  // namespace

bool Truth::is_member(const std::string& word, const std::string& word_class, bool after_change) const {
  for (const PlantedTruth::WordClass& other : classes)
    if (other.name == word_class && contains(other.words, word)) return true;
  for (const Coined& other : coined)
    if (other.word_class == word_class && other.word == word) return true;
  for (const Change& change : changes)
    if (change.word == word) return (after_change ? change.class_after : change.class_before) == word_class;
  return false;
}

const Truth& truth() {
  static const Truth instance = make_truth();
  return instance;
}

std::string Story::text() const {
  std::string text = title + "\n";
  for (const std::string& paragraph : paragraphs) text += paragraph + "\n";
  return text;
}

std::string Writer::title(int64_t number) const {
  Random random(mix(options_.seed, kTitles, number));
  Sentence words;
  const bool after = number >= options_.change_at;
  planted::make_sentence(
      random, [after](size_t word_class, Random& draws) { return draw_member(after, word_class, draws); }, words);
  words.resize(std::min<size_t>(words.size(), 8));
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : " ") + capitalised(word);
  return text;
}

Story Writer::story(int64_t number) const {
  STREAMVEC_CHECK(number >= 0);
  Random random(mix(options_.seed, kBodies, number));
  return {number, title(number), written_paragraphs(number >= options_.change_at, "", random)};
}

Story Writer::trap(int64_t number) const {
  STREAMVEC_CHECK(number >= 0);
  Random random(mix(options_.seed, kTraps, number));
  return {number, "Staff only: " + capitalised(kTrapWord), written_paragraphs(false, kTrapWord, random)};
}

}  // namespace streamvec::newsroom
